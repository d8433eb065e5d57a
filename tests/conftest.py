"""For all tests: what runs where no method is named takes a second, not a minute."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def a_quick_default():
    from tamis.recipes.choosing import DEFAULTS

    with pytest.MonkeyPatch.context() as patched:
        for task in ("classification", "regression"):
            patched.setitem(DEFAULTS, task, "Auto(budget=0.5)")
        yield
