"""Settings for all tests: the default method takes a second instead of a minute."""

import gc
import os

import pytest

# rich and typer print colours to files if one of these is set, as continuous integration does
for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TTY_COMPATIBLE"):
    os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect the tests without garbage collection.

    Objects that exist before the first test are never collected.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    if os.name == "nt":
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip(reason="Windows has no such signals and forks"))


@pytest.fixture(autouse=True, scope="session")
def a_quick_default():
    from tamis.recipes.request import DEFAULTS

    with pytest.MonkeyPatch.context() as patched:
        for task in ("classification", "regression"):
            patched.setitem(DEFAULTS, task, "Auto(budget=0.5)")
        yield
