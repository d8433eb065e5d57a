"""The public names of `tamis.datasets`."""

import inspect

import pytest

from tamis import datasets

MAKERS = [name for name in datasets.__all__ if name.startswith("make_")]


def test_all_is_sorted_and_is_what_can_be_imported():
    assert datasets.__all__ == sorted(datasets.__all__)
    assert all(callable(getattr(datasets, name)) for name in datasets.__all__)
    assert set(datasets.__all__) <= set(dir(datasets))


@pytest.mark.parametrize("name", MAKERS)
def test_makers_agree_on_their_first_parameters(name):
    parameters = inspect.signature(getattr(datasets, name)).parameters
    first, second, *_ = parameters.values()
    assert (first.name, first.kind) == ("n_samples", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert (second.name, second.default) == ("random_state", None)
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in list(parameters.values())[1:])
