"""What one task leaves."""

from typing import NamedTuple

from tamis.evaluation.row_losses import PackedLosses


class Score(NamedTuple):
    """One number: a metric at a number of columns.

    Attributes
    ----------
    estimator : str
        Empty for a measure of the columns.
    size : int
        The number of columns.
    rule : str
        How that number came about: "given", "own" (what the method kept), "best" (the best on the
        inner rows of the plan) or "step 3" (what it held after its third step).
    metric : str
    value : float
    """

    estimator: str
    size: int
    rule: str
    metric: str
    value: float


class Outcome(NamedTuple):
    """What a task leaves.

    Attributes
    ----------
    scores : tuple of Score
    order, support : tuple of int or None
        Columns best first, and those kept; None where the method chooses none.
    n_train, n_test, n_features : int
    seconds : float
        Time of the method's ``fit``.
    losses : tuple of PackedLosses
        Of every test row, where they were asked for.
    test_rows : str
        Which rows these are, as text.
    """

    scores: tuple[Score, ...]
    order: tuple[int, ...] | None
    support: tuple[int, ...] | None
    n_train: int
    n_test: int
    n_features: int
    seconds: float
    losses: tuple[PackedLosses, ...] = ()
    test_rows: str = ""
