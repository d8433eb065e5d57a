"""The best individual features."""

from collections.abc import Iterator

import numpy as np

from tamis._arrays import EMPTY, best_first
from tamis.contract import BackwardCriterion, Criterion, ForwardCriterion
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.search.base import Judge, Search, Size
from tamis.trace import Step, Trace


class Ranking(Search):
    """Sort the features by one price each and keep the first: naive, and hard to beat for speed.

    Parameters
    ----------
    criterion : ForwardCriterion or BackwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    by : {"alone", "removal"} or None, default=None
        ``"alone"`` is the gain over the empty set, ``"removal"`` the loss from the full set (the
        scheme called INIT in the literature). None takes the first where the criterion can.
    standardize : bool, default=True

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import FisherScore
    >>> X, y = load_iris(return_X_y=True)
    >>> Ranking(FisherScore(), n_features_to_select=2).fit(X, y).order_
    array([2, 3, 0, 1])
    """

    needs = (ForwardCriterion, BackwardCriterion)
    nested = True
    prices_alone = True

    def __init__(
        self,
        criterion: Criterion,
        *,
        n_features_to_select: Size = 0.5,
        by: str | None = None,
        standardize: bool = True,
    ):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )
        self.by = by

    def _walk(
        self, criterion: Judge, n_units: int, target: int | None, done: Trace
    ) -> Iterator[Step]:
        if len(done):  # priced before it was stopped
            prices, errors = (np.array(done[0].state[name]) for name in ("prices", "errors"))
        else:
            prices, errors = self._priced(criterion, np.arange(n_units))
        state = {"prices": prices.tolist(), "errors": errors.tolist()}
        order = best_first(prices)
        values = self._values(criterion, prices[order])
        for k in range(len(done), n_units):
            yield Step(
                order[: k + 1],
                float(values[k]),
                moved=order[k : k + 1],
                prices=prices[order[k : k + 1]],
                errors=errors[order[k : k + 1]] if len(errors) else errors,
                state=state if k == 0 else {},
            )

    def _priced(self, criterion: Judge, everything: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Price of each feature, and its standard error."""
        if self._by() == "alone":
            return criterion.gain(EMPTY, everything), criterion.errors(EMPTY)
        return criterion.loss(everything), criterion.errors(everything)

    def _values(self, criterion: Judge, falling: np.ndarray) -> np.ndarray:
        """Values of the nested subsets, where they follow from the prices."""
        if getattr(criterion.criterion, "additive", False):
            return np.cumsum(falling)
        return np.full(len(falling), np.nan)

    def _by(self) -> str:
        if self.by is not None:
            return self.by
        return "alone" if isinstance(self.criterion, ForwardCriterion) else "removal"

    def _check(self) -> None:
        super()._check()
        if self.by not in (None, "alone", "removal"):
            raise InvalidParameter(f"Ranking needs by='alone' or by='removal', not {self.by!r}.")
        need = ForwardCriterion if self._by() == "alone" else BackwardCriterion
        if not isinstance(self.criterion, need):
            judge = type(self.criterion).__name__
            other = "removal" if self._by() == "alone" else "alone"
            raise IncompatibleCriterion(
                f"Ranking(by={self._by()!r}) cannot be priced by {judge}. Use "
                f"Ranking({judge}(...), by={other!r})."
            )
