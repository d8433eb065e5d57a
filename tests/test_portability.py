"""Behaviour of other systems, tried on this one: terminals, start methods and paths of Windows."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import PureWindowsPath

import pytest
from sklearn.datasets import load_wine

import tamis


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_terminal_without_unicode_gets_replacements(encoding):
    env = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "tamis.cli", "methods", "mrmr"]
    done = subprocess.run(command, env=env, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Maximum relevance, minimum redundancy" in done.stdout


def columns_in_a_process(selector):
    return selector.fit(*load_wine(return_X_y=True)).columns


def test_selectors_can_be_fitted_in_spawned_processes():
    """Windows and macOS start processes by spawn, which imports tamis again."""
    selector = tamis.recipe("mrmr", n_features_to_select=3)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(columns_in_a_process, (selector,))
    assert found == columns_in_a_process(selector)


def test_a_path_with_a_drive_letter_is_not_an_address(tmp_path):
    path = str(PureWindowsPath("C:\\data\\t.parquet"))
    with pytest.raises((ValueError, OSError), match=r"t\.parquet"):
        tamis.read(path)
    with pytest.raises((ValueError, OSError), match=r"t\.parquet"):
        tamis.recipe("mrmr").fit(path, target="y")
