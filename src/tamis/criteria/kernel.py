"""Criteria of kernel sums: the Hilbert-Schmidt criterion, and changes of a subset by one column."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import EMPTY, Array, Subset, check_range, check_target_range, in_range
from tamis._checks import Constraints, number, one_of
from tamis._namespace import device_asked
from tamis.contract import SubsetCriterion
from tamis.contract.criterion import with_unit
from tamis.criteria.univariate import mean_of, targets_of
from tamis.density.pairs import PlainPairSums, StripPairSums, TargetKernel, pair_sums_cost
from tamis.density.sums import PRECISIONS, is_large
from tamis.exceptions import InvalidTarget


class SingleChanges:
    """Values of kernel sums, whose distances a column that comes or goes alters by its own.

    A subset criterion that inherits from it computes these. The empty subset is worth 0.
    """

    columns: Callable[[Subset], Subset]
    _unit_columns: tuple[Subset, ...] | None

    @abstractmethod
    def _values(self, members: Subset, altered: Subset, sign: int) -> Array:
        """Value of the members, then without (-1) or with (+1) each altered column."""

    def value(self, subset: Subset) -> float:
        return float(self._values(self.columns(subset), EMPTY, 0)[0]) if len(subset) else 0.0

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if not len(subset) or not len(candidates):
            return np.array([self.value(candidates[[i]]) for i in range(len(candidates))])
        return self._changes(subset, candidates, +1)

    def loss(self, subset: Subset) -> Array:
        if len(subset) < 2:
            return np.array([self.value(subset) for _ in subset])
        return -self._changes(subset, subset, -1)

    def _changes(self, subset: Subset, altered: Subset, sign: int) -> Array:
        """Changes by units that are one column in a single pass, by groups one after the other."""
        units = self._unit_columns
        if units is None:
            before, *after = self._values(subset, altered, sign)
            return np.array(after) - before
        single = np.array([len(units[j]) == 1 for j in altered])
        columns = np.array([units[j][0] for j in altered[single]], dtype=np.intp)
        before, *after = self._values(self.columns(subset), columns, sign)
        changed = np.empty(len(altered))
        changed[single] = after
        for index in np.flatnonzero(~single):
            unit = altered[index]
            other = with_unit(subset, unit) if sign > 0 else subset[subset != unit]
            changed[index] = self.value(other)
        return changed - before


class HSIC(SingleChanges, SubsetCriterion):
    r"""Hilbert-Schmidt independence criterion between a subset and the target.

    With kernel matrices K of the columns and L of the target, both with their diagonals set to 0,
    the unbiased estimate is

    .. math:: \frac{1}{N(N-3)} \Big[ \mathrm{tr}(KL) + \frac{1'K1\; 1'L1}{(N-1)(N-2)}
              - \frac{2}{N-2}\, 1'KL1 \Big]

    and the biased one tr(KHLH)/N^2 with H = I - 11'/N. K is Gaussian, exp(-gamma \|x - x'\|^2); for
    classes L is 1 where they agree; for a real target it is Gaussian with the median rule, or
    linear. Both estimates are linear in K, so each pair of samples costs one exponential for each
    column scored, and L is centred once.

    Used backwards it is BAHSIC, forwards FOHSIC. Columns should be on one scale, as a search makes
    them. The empty subset is worth 0. It is not monotone. Of several targets L is the mean of their
    kernels, so that the value is the mean of those with each.

    Parameters
    ----------
    gamma : float, "dimension" or "median", default="dimension"
        "dimension" is 1/(2 \|S\|), constant columns not counted, "median" 1/(2 median
        \|x - x'\|^2), of the columns in question: the width follows the subset. A number is used
        for every subset; fixed at what suits all columns it loses most of its power as columns
        leave.
    unbiased : bool, default=True
    target_kernel : {"gaussian", "linear"}, default="gaussian"
        Kernel of a real target. It can change the ranking much: the Gaussian one sees any
        dependence, the linear one gives the extremes of the target their weight.
    precision : {"double", "single"}, default="double"
        Of the exponentials of a large table, as in :class:`ParzenInformation`.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; "auto" takes numbers of more than 20 distinct values as real.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), Feature selection via dependence maximization,
    JMLR 13.

    Examples
    --------
    >>> from tamis.search import Backward
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> Backward(HSIC(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    takes_several_targets: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "gamma": number(above=0) | one_of("dimension", "median"),
        "target_kernel": one_of("gaussian", "linear"),
        "precision": one_of(*PRECISIONS),
    }

    @property
    def runs_on_device(self) -> bool:  # type: ignore[override]
        """Unless each subset has a median of its own."""
        return bool(self.gamma != "median")

    def __init__(
        self,
        *,
        gamma: float | str = "dimension",
        unbiased: bool = True,
        target_kernel: str = "gaussian",
        precision: str = "double",
        task: str = "auto",
    ):
        self.gamma = gamma
        self.unbiased = unbiased
        self.target_kernel = target_kernel
        self.precision = precision
        self.task = task

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self._check(len(X))
        if self.gamma == "median":
            X = in_range(X, together=True)  # the width follows the scale
        check_range("HSIC", X)
        if self.task_ == "regression" and self.target_kernel == "linear":
            for target in targets_of(y):
                check_target_range("HSIC", target)
        self._varies = X.min(axis=0) < X.max(axis=0)
        self._sums = [self._sums_with(X, target) for target in targets_of(y)]

    def _sums_with(self, X: Array, y: NDArray[Any]) -> PlainPairSums | StripPairSums:
        target = TargetKernel(y, self.task_, self.target_kernel, self.unbiased)
        if (is_large(X.shape) or device_asked()) and self.gamma != "median":
            return StripPairSums(X, target, PRECISIONS[self.precision])
        return PlainPairSums(X, target)

    def _check(self, n_samples: int) -> None:
        if self.unbiased and n_samples < 4:
            raise InvalidTarget(
                f"HSIC needs at least 4 samples for the unbiased estimate, not {n_samples}. "
                "Use unbiased=False."
            )

    def cost(self, n_samples: int, n_features: int) -> float | None:
        compiled = self.gamma != "median" and is_large((n_samples, n_features))
        return pair_sums_cost(n_samples, n_features, compiled=compiled)

    def _values(self, members: Subset, altered: Subset, sign: int) -> Array:
        # a constant column has no part in a distance, and none in the dimension
        size = int(self._varies[members].sum())
        gammas = [self._gamma_for(max(1, n)) for n in (size, size + sign)]
        values = mean_of(
            [sums(members, altered, sign, *gammas) + sums.target.diagonal for sums in self._sums]
        )
        values[1:][~self._varies[altered]] = values[0]
        return values

    def _gamma_for(self, size: int) -> float:
        """The width for so many columns; nan for the median rule, which must see them."""
        if self.gamma == "median":
            return np.nan
        return 1 / (2 * size) if self.gamma == "dimension" else float(self.gamma)
