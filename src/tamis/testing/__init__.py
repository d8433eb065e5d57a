"""Checks for criteria, searches and choices of other packages.

:func:`check_criterion`, :func:`check_search` and :func:`check_choice` check every law that applies,
on a small table. They need no test runner. A broken law raises :class:`LawBroken`, an
AssertionError whose message names the object, the law and the violation.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tamis.contract import ForwardCriterion, SubsetCriterion
from tamis.testing import choice_laws, criterion_laws, search_laws

if TYPE_CHECKING:
    from tamis.contract import Choice
    from tamis.contract.criterion import Criterion

__all__ = ["LawBroken", "check_choice", "check_criterion", "check_search"]

Law = Callable[[Any], None]


class LawBroken(AssertionError):
    """A criterion, search or choice breaks a law of tamis."""


def check_criterion(criterion: "Criterion") -> None:
    """Check that a criterion obeys the laws of its capabilities.

    Parameters
    ----------
    criterion : Criterion
        A criterion that is not fitted. It is cloned for every law. If its ``targets`` do not
        include classification, the laws use a numeric target.

    Raises
    ------
    LawBroken
        The message names the first broken law and the violation.

    Examples
    --------
    >>> from tamis.criteria import Scatter
    >>> from tamis.testing import check_criterion
    >>> check_criterion(Scatter("J3"))
    """
    _check(type(criterion).__name__, criterion, _criterion_laws(criterion))


def check_search(make: Callable[..., Any]) -> None:
    """Check that a search obeys the laws of searches.

    Parameters
    ----------
    make : class or function
        It is called as ``make(criterion, n_features_to_select=...)`` and returns a search that is
        not fitted. The laws use ``Scatter`` and ``FisherScore``, which every search can use. Give a
        random search a fixed ``random_state``, for example with ``functools.partial``.

    Raises
    ------
    LawBroken
        The message names the first broken law and the violation.

    Examples
    --------
    >>> from tamis.search import Forward
    >>> from tamis.testing import check_search
    >>> check_search(Forward)
    """
    _check(getattr(make, "__name__", repr(make)), make, search_laws.LAWS)


def check_choice(choice: "Choice") -> None:
    """Check that a choice obeys the laws of choices.

    Parameters
    ----------
    choice : Choice
        A rule that works with a forward search with ``Scatter``.

    Raises
    ------
    LawBroken
        The message names the first broken law and the violation.

    Examples
    --------
    >>> from tamis.choice import Knee
    >>> from tamis.testing import check_choice
    >>> check_choice(Knee())
    """
    _check(type(choice).__name__, choice, choice_laws.LAWS)


def _criterion_laws(criterion: Any) -> Iterator[Law]:
    """Yield the laws that apply to a criterion according to its base class and class attributes."""
    laws = criterion_laws
    yield from laws.FOR_ALL
    if isinstance(criterion, ForwardCriterion):
        yield laws.candidates_may_be_some_and_in_any_order
    if isinstance(criterion, SubsetCriterion):
        yield from laws.FOR_SUBSET_CRITERIA
        if criterion.monotone:
            yield laws.monotone_means_that_more_is_worth_more
        if criterion.additive:
            yield laws.additive_means_a_sum
    if criterion.opinion:
        yield laws.an_opinion_is_of_the_subset_that_results
    if criterion.takes_missing:
        yield laws.nan_is_accepted
    if criterion.takes_categories:
        yield laws.codes_have_no_order
    if criterion.takes_sparse:
        yield laws.sparse_is_dense
    if criterion.takes_blocks:
        yield laws.blocks_are_the_table


def _check(name: str, part: Any, laws: Any) -> None:
    """Check the laws one after the other. Raise LawBroken for the first that fails."""
    for law in laws:
        try:
            law(part)
        except Exception as error:
            found = " ".join(str(error).split()) or type(error).__name__
            words = law.__name__.replace("_", " ")
            raise LawBroken(f"{name} breaks the law '{words}': {found}") from error
