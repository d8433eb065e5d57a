"""Compiled loops that are stored on disk: in shared, read-only, missing and damaged folders."""

import subprocess
import sys

import pytest

#: Calls two loops. Prints the results, the hits and misses of the cache, and the warnings.
LOOPS = """
import warnings
import numpy as np
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    from tamis.compiled.margin_set import dot, gather
    v = np.arange(4, dtype=KIND)
    print(float(dot(v, v)), gather(np.eye(4, dtype=KIND), np.arange(2), np.arange(2)).tolist())
print(*(sum(each.stats.cache_hits.values()) for each in (dot, gather)), end=" ")
print(*(sum(each.stats.cache_misses.values()) for each in (dot, gather)))
print([warning.category.__name__ for warning in found])
"""
#: Makes each folder appear read-only to numba, also for an administrator.
READ_ONLY = """
import tempfile
def refuse(*args, **options):
    raise PermissionError(13, "Permission denied")
tempfile.TemporaryFile = refuse
"""
#: A user without an entry in the list of users, as in many containers.
NO_HOME = """
import os, pwd
def unknown(user):
    raise KeyError(user)
pwd.getpwuid = unknown
os.environ.pop("HOME", None)
os.environ.pop("XDG_CACHE_HOME", None)
"""
RESULT = "14.0 [[1.0, 0.0], [0.0, 1.0]]"
COMPILED, STORED = "0 0 1 1", "1 1 0 0"


def start(tmp_path, before="", kind="float64"):
    """Start a process that stores its loops in a folder of the test."""
    code = f"import os\nos.environ['NUMBA_CACHE_DIR'] = 'cache'\nKIND = {kind!r}\n"
    return subprocess.Popen(
        [sys.executable, "-c", before + code + LOOPS],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip


def finish(process):
    """Return the lines that a process prints. It must print nothing on stderr."""
    out, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    return out.splitlines()


def test_loops_are_compiled_once(tmp_path):
    assert finish(start(tmp_path)) == [RESULT, COMPILED, "[]"]
    assert finish(start(tmp_path)) == [RESULT, STORED, "[]"]


def test_stored_loops_are_read_from_a_read_only_folder_without_a_warning(tmp_path):
    finish(start(tmp_path))
    assert finish(start(tmp_path, READ_ONLY)) == [RESULT, STORED, "[]"]


def test_without_a_writable_folder_each_process_compiles_and_warns_once(tmp_path):
    for _ in range(2):
        assert finish(start(tmp_path, READ_ONLY)) == [RESULT, COMPILED, "['CacheUnusable']"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pwd module")
def test_without_a_home_folder_no_folder_named_tilde_is_made(tmp_path):
    assert finish(start(tmp_path, READ_ONLY + NO_HOME)) == [RESULT, COMPILED, "['CacheUnusable']"]
    assert not (tmp_path / "~").exists()


def test_processes_that_store_loops_at_the_same_time_do_not_fail(tmp_path):
    kinds = ["float64", "float32"] * 2
    for process in [start(tmp_path, kind=kind) for kind in kinds]:
        assert finish(process)[::2] == [RESULT, "[]"]
    for kind in kinds[:2]:
        assert finish(start(tmp_path, kind=kind))[::2] == [RESULT, "[]"]


def test_a_loop_for_other_types_that_another_process_stored_under_the_name_is_not_used(tmp_path):
    for kind in ("float64", "float32"):
        finish(start(tmp_path, kind=kind))
    for first in tmp_path.rglob("*.1.nbc"):
        first.write_bytes(first.with_name(first.name.replace(".1.nbc", ".2.nbc")).read_bytes())
    assert finish(start(tmp_path)) == [RESULT, COMPILED, "[]"]
    assert finish(start(tmp_path)) == [RESULT, STORED, "[]"]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_files_are_replaced(tmp_path, suffix):
    finish(start(tmp_path))
    damaged = list(tmp_path.rglob(f"*.{suffix}"))
    assert len(damaged) == 2
    for file in damaged:
        file.write_bytes(file.read_bytes()[:20])
    assert finish(start(tmp_path)) == [RESULT, COMPILED, "[]"]
    assert finish(start(tmp_path)) == [RESULT, STORED, "[]"]
