"""What every selector keeps: steps, support, order, ranking, scores, record.

:class:`tamis.search.base.Search` adds a criterion; embedded selectors and compositions are
selections too, so that record, choice and report are written once.
"""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask, Subset
from tamis.record import Record
from tamis.trace import Trace

NEVER = np.inf


class Selection(SelectorMixin, BaseEstimator):
    """Selector that remembers how it came to its answer.

    Attributes
    ----------
    support_ : array of bool
        The columns that are kept.
    order_ : array of int
        All columns, best first: those kept by their last price (by order of entry in a search
        that only adds), then the others in the reverse order of leaving, those that never moved
        last. Of equals the lowest index is first.
    ranking_ : array of int
        1 for all kept, then by step of leaving, as in scikit-learn.
    scores_ : array of float
        The price at which a column last entered or left, nan if it never did.
    trace_ : Trace
        The steps, see :class:`tamis.trace.Step`.
    n_features_, n_evaluations_ : int
        Number of columns kept; number of prices asked of the criterion.
    record_ : Record
        Everything needed to report, compare, save and resume.
    """

    def _settle(self, record: Record) -> None:
        """Set the fitted attributes from the steps and the one that was chosen."""
        trace = record.trace
        self.record_ = record
        self.trace_ = trace
        self.n_evaluations_ = record.n_evaluations
        self.support_ = np.zeros(trace.n_units, dtype=bool)
        self.support_[trace[record.chosen].subset] = True
        self.n_features_ = int(self.support_.sum())
        self.scores_, last_price = _prices(trace)
        self.order_, self.ranking_ = _order(trace, record.chosen, self.support_, last_price)

    def _forget(self) -> None:
        """Drop what an earlier fit found, so that nothing of it outlives one that fails."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_


def _prices(trace: Trace) -> tuple[Array, Array]:
    """For each unit the price at which it last moved, and the price it was last given."""
    moved_at = np.full(trace.n_units, np.nan)
    for moved, _, prices in trace.moves():
        moved_at[moved[: len(prices)]] = prices
    last = moved_at.copy()
    if len(trace) and len(standing := trace[-1].prices[len(trace[-1].moved) :]):
        last[trace[-1].subset] = standing
    return moved_at, last


def _order(trace: Trace, chosen: int, kept: Mask, price: Array) -> tuple[Subset, Subset]:
    """All units best first, and their ranks.

    In a walk that only adds, kept units stand in the order of entry, so that the first k are the
    subset of size k. In others, those that left later in the walk stand in the reverse order of
    leaving behind those that never did. Of the rest, those that entered after the chosen step come
    first, in that order.
    """
    left_before, left_after, entered_after = _times(trace, chosen)
    entries = _entries(trace)
    stayed = -left_after if entries is None else entries
    group = np.select([kept, entered_after < NEVER, left_before > -NEVER], [0, 1, 2], default=3)
    time = np.select(
        [group == 0, group == 1, group == 2], [stayed, entered_after, -left_before], default=0
    )
    falling = np.where(np.isnan(price), NEVER, -price)
    order = np.lexsort((np.arange(trace.n_units), falling, time, group))
    # dense ranks of (group, time), all kept sharing rank 1
    rank_time = np.where(group == 0, 0, time)
    rising = np.lexsort((rank_time, group))
    fresh = (np.diff(group[rising]) != 0) | (np.diff(rank_time[rising]) != 0)
    ranks = np.empty(trace.n_units, dtype=np.intp)
    ranks[rising] = np.append(1, 1 + np.cumsum(fresh))
    return order, ranks


def _entries(trace: Trace) -> Array | None:
    """Step at which each unit entered, None where any unit ever leaves."""
    entered_at = np.full(trace.n_units, NEVER)
    for step, (moved, entered, _) in enumerate(trace.moves()):
        if not entered.all():
            return None
        entered_at[moved] = step
    return entered_at


def _times(trace: Trace, chosen: int) -> tuple[Array, Array, Array]:
    """Step at which each unit last left up to, last left after, and first entered after, chosen."""
    left_before = np.full(trace.n_units, -NEVER)
    left_after = np.full(trace.n_units, NEVER)
    entered_after = np.full(trace.n_units, NEVER)
    for step, (moved, entered, _) in enumerate(trace.moves()):
        if step <= chosen:
            left_before[moved[~entered]] = step
        else:
            left_after[moved[~entered]] = step
            fresh = moved[entered]
            entered_after[fresh] = np.minimum(entered_after[fresh], step)
    # a unit that came back after leaving has not left in the end
    final = np.zeros(trace.n_units, dtype=bool)
    if len(trace):
        final[trace[-1].subset] = True
    left_after[final] = NEVER
    return left_before, left_after, entered_after
