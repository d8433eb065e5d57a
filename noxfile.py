#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9", "uv"]
# ///
"""Checks in environments of their own: Python versions, lowest versions, the wheel, other tools.

``make test`` needs no nox. ``pip install nox uv`` and ``nox --list`` show the sessions here, and
arguments after ``--`` are passed to pytest: ``nox -s lowest -- tests/contract``.
"""

import os

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
THREADS = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")}
#: Tests open files in UTF-8, also on Windows. tests/test_repository checks that the library names
#: the encoding of each file.
UTF8 = {"PYTHONUTF8": "1"}
FAST = ("-m", "not slow and not experiment")


def run_tests(session: nox.Session, *options: str) -> None:
    """Print the versions of the dependencies, and run the tests."""
    session.run("python", "-c", "from sklearn import show_versions; show_versions()")
    workers = ("-n", os.environ.get("TAMIS_TEST_WORKERS", "2"))
    session.run("python", "-m", "pytest", *workers, *options, *session.posargs, env=THREADS | UTF8)


@nox.session(python=PYTHONS, default=False)
def tests(session: nox.Session) -> None:
    """Run the tests with the newest versions that this Python supports."""
    session.install("--upgrade", "-e", ".[app,dask]", "-e", "book", "--group", "test")
    run_tests(session, *FAST)


@nox.session(python=PYTHONS[0], venv_backend="uv", default=False)
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions that pyproject.toml allows."""
    lowest = ("--resolution", "lowest-direct")
    session.install(*lowest, "-e", ".[app,dask]", "-e", "book", "--group", "test")
    run_tests(session, *FAST)


@nox.session(python=PYTHONS, default=False)
def wheel(session: nox.Session) -> None:
    """Build the sdist and the wheel, and install the wheel into a fresh environment."""
    session.install("--group", "test")
    # tamis is not installed here, so its warnings cannot be named
    options = ("--noconftest", "-o", "filterwarnings=error")
    session.run("python", "-m", "pytest", *options, "tests/test_distribution.py")


@nox.session(python=PYTHONS[0])
def types(session: nox.Session) -> None:
    """Check a file of typical use with mypy and pyright, as a user would."""
    session.install(".[app]", "--group", "types")
    # without the settings of this repository, which read tamis from its sources
    session.run("mypy", "--strict", "--config-file=", "tests/typical_use.py")
    session.run("pyright", "tests/typical_use.py")


@nox.session(python=PYTHONS[1], default=False)
def guests(session: nox.Session) -> None:
    """Hand selectors to other tools: skops, ONNX, MLflow, Optuna, skrub, AutoGluon.

    The pages on these tools and on Boruta, mrmr_selection and mlxtend are run as well.
    """
    session.install("-e", ".[app,dask]", "-e", "book", "--group", "test", "--group", "handover")
    pages = ("tests/test_documents.py", "-k", "guests or coming or libraries")
    # other tools warn about their own dependencies
    run_tests(session, "-W", "default", "tests/test_guests.py", *pages)


@nox.session(python=PYTHONS[1])
def review(session: nox.Session) -> None:
    """Check the repository against the guide of Scientific Python, and the workflows."""
    session.install("sp-repo-review[cli]", "--group", "workflows")
    session.run("sp-repo-review", ".")
    session.run("zizmor", "--offline", "--pedantic", ".github")


if __name__ == "__main__":
    nox.main()
