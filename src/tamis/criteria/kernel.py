"""HSIC, and a mixin for subset criteria that are computed from kernels of pairs of rows."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
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
from tamis.density.series.table import Alteration
from tamis.density.sums import PRECISIONS, is_large
from tamis.exceptions import InvalidTarget


class SingleChanges:
    """Mixin for subset criteria that are computed from sums of a kernel.

    A single pass computes how the value changes when each column is added or removed. A column adds
    its own term to the squared distance between two rows, so the distances of the subset are
    computed only once. The empty subset has the value 0.
    """

    columns: Callable[[Subset], Subset]
    _unit_columns: tuple[Subset, ...] | None

    @abstractmethod
    def _values(self, change: Alteration) -> Array:
        """Return the value of the subset, then the value after each column is changed."""

    def value(self, subset: Subset) -> float:
        if not len(subset):
            return 0.0
        return float(self._values(Alteration(self.columns(subset), EMPTY, 0))[0])

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if not len(subset) or not len(candidates):
            return np.array([self.value(candidates[[i]]) for i in range(len(candidates))])
        return self._changes(subset, candidates, +1)

    def loss(self, subset: Subset) -> Array:
        if len(subset) < 2:
            return np.array([self.value(subset) for _ in subset])
        return -self._changes(subset, subset, -1)

    def _changes(self, subset: Subset, altered: Subset, sign: int) -> Array:
        """Return the change of the value when each unit is added or removed.

        Units of a single column are computed together in one pass, groups one at a time.
        """
        units = self._unit_columns
        if units is None:
            before, *after = self._values(Alteration(subset, altered, sign))
            return np.array(after) - before
        single = np.array([len(units[j]) == 1 for j in altered])
        columns = np.array([units[j][0] for j in altered[single]], dtype=np.intp)
        before, *after = self._values(Alteration(self.columns(subset), columns, sign))
        changed = np.empty(len(altered))
        changed[single] = after
        for index in np.flatnonzero(~single):
            unit = altered[index]
            other = with_unit(subset, unit) if sign > 0 else subset[subset != unit]
            changed[index] = self.value(other)
        return changed - before


@dataclass(eq=False, repr=False, kw_only=True)
class HSIC(SingleChanges, SubsetCriterion):
    r"""Hilbert-Schmidt independence criterion between a subset and the target.

    With kernel matrices K of the columns and L of the target, both with their diagonals set to 0,
    the unbiased estimate is

    .. math:: \frac{1}{N(N-3)} \Big[ \mathrm{tr}(KL) + \frac{1'K1\; 1'L1}{(N-1)(N-2)}
              - \frac{2}{N-2}\, 1'KL1 \Big]

    The biased estimate keeps the diagonals. It is tr(KHLH)/N^2 with H = I - 11'/N. K is Gaussian,
    exp(-gamma \|x - x'\|^2). For classes, L is 1 for two rows of the same class and 0 otherwise.
    For a numeric target it is Gaussian with the median rule, or linear. Scoring a column takes one
    exponential per pair of rows.

    A backward search with this criterion is BAHSIC, a forward search is FOHSIC. Columns should be
    on the same scale; searches standardise them by default. The empty subset has the value 0. The
    criterion is not monotone. For several targets the value is the mean over the targets.

    Parameters
    ----------
    gamma : float, "dimension" or "median", default="dimension"
        Coefficient of the kernel; a larger gamma means a narrower kernel. "dimension" is 1/(2
        \|S\|), not counting constant columns, and "median" is 1/(2 median \|x - x'\|^2), both for
        the columns of the subset. A number is used for subsets of every size. A number that suits
        the whole table is too small for small subsets.
    unbiased : bool, default=True
        Whether the unbiased estimate is used; it needs at least four rows.
    target_kernel : {"gaussian", "linear"}, default="gaussian"
        Kernel of a numeric target. The Gaussian kernel detects any dependence; the linear kernel
        gives more weight to extreme values of the target. The two rankings can differ considerably.
    precision : {"double", "single"}, default="double"
        Precision of the exponentials for a large table, as in :class:`ParzenInformation`.
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. "auto" treats numbers with more than 20 distinct values as
        numeric.

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

    gamma: float | str = "dimension"
    unbiased: bool = True
    target_kernel: str = "gaussian"
    precision: str = "double"
    task: str = "auto"

    takes_several_targets: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "gamma": number(above=0) | one_of("dimension", "median"),
        "target_kernel": one_of("gaussian", "linear"),
        "precision": one_of(*PRECISIONS),
    }

    @property
    def runs_on_device(self) -> bool:  # type: ignore[override]
        """Whether kernels can be computed on a GPU or other device.

        This is not possible with the median rule."""
        return bool(self.gamma != "median")

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        if self.unbiased and len(X) < 4:
            raise InvalidTarget(
                f"HSIC needs at least 4 samples for the unbiased estimate, not {len(X)}. "
                "Use unbiased=False."
            )
        if self.gamma == "median":
            X = in_range(X, together=True)  # with the median rule the scale does not matter
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

    def cost(self, n_samples: int, n_features: int) -> float | None:
        compiled = self.gamma != "median" and is_large((n_samples, n_features))
        return pair_sums_cost(n_samples, n_features, compiled=compiled)

    def _values(self, change: Alteration) -> Array:
        # a constant column contributes neither to distances nor to the dimension
        size = int(self._varies[change.members].sum())
        gammas = [self._gamma_for(max(1, n)) for n in (size, size + change.sign)]
        values = mean_of([sums(change, *gammas) + sums.target.diagonal for sums in self._sums])
        values[1:][~self._varies[change.altered]] = values[0]
        return values

    def _gamma_for(self, size: int) -> float:
        """Return gamma for a subset with ``size`` columns.

        It is NaN for the median rule, which computes gamma from the data.
        """
        if self.gamma == "median":
            return np.nan
        return 1 / (2 * size) if self.gamma == "dimension" else float(self.gamma)
