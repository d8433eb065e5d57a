"""For all tests: what runs where no method is named takes a second, not a minute."""

import gc

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Gather ten thousand tests without looking for garbage among them, then or later.

    What is there before the first test stays to the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def a_quick_default():
    from tamis.recipes.request import DEFAULTS

    with pytest.MonkeyPatch.context() as patched:
        for task in ("classification", "regression"):
            patched.setitem(DEFAULTS, task, "Auto(budget=0.5)")
        yield
