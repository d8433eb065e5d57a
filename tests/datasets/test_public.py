"""What `tamis.datasets` offers."""

import inspect

import pytest

from tamis import datasets

MAKERS = [name for name in datasets.__all__ if name.startswith("make_")]


def test_all_is_sorted_and_is_what_can_be_imported():
    defined = {
        name
        for name, value in vars(datasets).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert datasets.__all__ == sorted(defined)


@pytest.mark.parametrize("name", MAKERS)
def test_makers_agree_on_their_first_parameters(name):
    parameters = inspect.signature(getattr(datasets, name)).parameters
    first, second, *_ = parameters.values()
    assert (first.name, first.kind) == ("n_samples", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert (second.name, second.default) == ("random_state", None)
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in list(parameters.values())[1:])
