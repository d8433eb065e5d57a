"""Laws that every choice obeys.

Each law takes a choice and raises AssertionError if it is broken.
"""

from typing import Any

from sklearn.base import clone

from tamis.contract import Record
from tamis.contract.costs import FeatureCosts
from tamis.criteria import Scatter
from tamis.search import Forward
from tamis.testing.problem import make_table


def fit_with(choice: Any) -> Any:
    """Fit a forward search with the choice."""
    return search_with(choice).fit(*make_table())


def search_with(choice: Any) -> Any:
    """Return a forward search with the choice. Each column has the price 1."""
    costs = FeatureCosts({}, default=1.0)
    return Forward(Scatter("J3"), feature_costs=costs, n_features_to_select=choice)


def a_step_of_the_path_is_picked(choice: Any) -> None:
    """The picked step exists, and the search selects its subset."""
    search = fit_with(clone(choice))
    step = search.choice_.step
    assert 0 <= step < len(search.trace_), f"step {step} of {len(search.trace_)} steps"
    subset = search.trace_[step].subset
    assert sorted(subset) == search.get_support(indices=True).tolist()


def the_reason_is_a_sentence(choice: Any) -> None:
    """The reason starts with a capital letter or a number, and ends with a full stop."""
    reason = fit_with(clone(choice)).choice_.reason
    is_sentence = reason[:1].isupper() or reason[:1].isdigit()
    assert is_sentence, f"the reason is {reason!r}"
    assert reason.endswith("."), f"the reason is {reason!r}"


def picking_twice_gives_the_same(choice: Any) -> None:
    """A choice has no memory: the same search path gives the same step."""
    first, second = (fit_with(clone(choice)).choice_ for _ in range(2))
    assert first == second, f"{first} and then {second}"


def a_stored_record_gives_the_same(choice: Any) -> None:
    """Resuming from the stored record of a finished search changes nothing."""
    search = fit_with(clone(choice))
    stored = Record.from_dict(search.record_.to_dict())
    X, y = make_table()
    resumed = search_with(clone(choice))
    assert resumed.resume(X, y, record=stored).choice_ == search.choice_


def the_choice_stays_as_it_is(choice: Any) -> None:
    """A fit writes nothing into the choice."""
    given = clone(choice)
    before = repr(given)
    fit_with(given)
    assert repr(given) == before


LAWS = (
    a_step_of_the_path_is_picked,
    the_reason_is_a_sentence,
    picking_twice_gives_the_same,
    a_stored_record_gives_the_same,
    the_choice_stays_as_it_is,
)
