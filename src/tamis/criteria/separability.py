"""Class separability, from scatter matrices or from class densities."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf_shrinkage

from tamis._arrays import Array, Subset, in_range
from tamis._checks import Constraints, number, one_of
from tamis._linalg import (
    Residuals,
    TraceForm,
    TraceSum,
    blocks,
    check_finite,
    independent,
    stacked,
)
from tamis.blocks.moments import ClassMoments
from tamis.blocks.table import BlockTable, refuse_blocks
from tamis.contract import SubsetCriterion
from tamis.criteria.parzen import ParzenDivergence
from tamis.exceptions import InvalidParameter, NothingToAdd, SingularScatter

#: Logarithm of the largest float.
LARGEST = float(np.log(np.finfo(float).max))


class Form(Protocol):
    """Measure of separability, computed from matrices that summarise the data."""

    def values(self, subsets: list[Subset]) -> Array: ...
    def gains(self, subset: Subset) -> Array: ...
    def losses(self, subset: Subset) -> Array: ...
    def bounds(self, subsets: list[Subset], size: int) -> Array: ...


class Separability(SubsetCriterion):
    """Base class of criteria that summarise the data by matrices and compute scores from them."""

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})

    takes_blocks: ClassVar[bool] = True
    ridge: Any

    @abstractmethod
    def _form(self, moments: ClassMoments) -> Form:
        """Return the measure of separability, given the class moments of the data."""

    @property
    @abstractmethod
    def _n_matrices(self) -> int | None:
        """Kind of covariance matrices that the form needs, as in :meth:`ClassMoments.of`.

        0 means only variances, 1 means the pooled within-class matrix, and None means one matrix
        for each class.
        """

    @property
    def _weighs_scale(self) -> bool:
        """Whether the scale of a column affects the scores, as it does with a ridge."""
        return bool(self.ridge != 0)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        X = in_range(X, together=self._weighs_scale)
        self.form_ = self._form(ClassMoments.of(X, y, self._n_matrices))

    def _learn_blocks(self, table: BlockTable) -> None:
        alone = table.standardize
        self.form_ = self._form(ClassMoments.of_blocks(table, self._n_matrices, each_alone=alone))

    def value(self, subset: Subset) -> float:
        return float(self.values([subset])[0])

    def values(self, subsets: Iterable[Subset]) -> Array:
        return self.form_.values([self.columns(subset) for subset in subsets])

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if self._unit_columns is None:
            with self._guarded():
                gains = self.form_.gains(subset)[candidates]
        else:
            gains = super().gain(subset, candidates)
        if len(gains) and gains[gains.argmax()] == -np.inf:
            raise NothingToAdd(
                f"{type(self).__name__} cannot add any more columns: each remaining one is "
                "constant or depends on the selected columns. Select fewer features, or give the "
                "criterion a ridge such as ridge=1e-6."
            )
        return gains

    def loss(self, subset: Subset) -> Array:
        with self._guarded():
            if self._unit_columns is None:
                return self.form_.losses(subset)
            check_finite(self.values([subset]))
        return super().loss(subset)

    def bound(self, subset: Subset, size: int) -> float:
        return float(self.bounds([subset], size)[0])

    def bounds(self, subsets: Iterable[Subset], size: int) -> Array:
        """Return, for each subset, an upper bound on the value of any ``size`` of its units.

        With groups, the bound is for the number of columns in the ``size`` largest units.
        """
        with self._guarded():
            if self._unit_columns is None:
                return self.form_.bounds(list(subsets), size)
            found = [
                self.form_.bounds([self.columns(s)], self.most_columns(s, size)) for s in subsets
            ]
        return np.concatenate([np.empty(0), *found])

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Convert the error of a singular matrix into one that suggests a remedy."""
        try:
            yield
        except np.linalg.LinAlgError as error:
            raise SingularScatter(
                f"{type(self).__name__} cannot start from columns that are constant or depend on "
                "each other within a class (duplicate columns, or as many columns as samples). "
                "Give the criterion a ridge such as ridge=1e-6, or use Forward, which skips such "
                "columns."
            ) from error


@dataclass(eq=False, repr=False)
class Scatter(Separability):
    r"""Separability of the classes, from the scatter within and between them.

    With the class priors :math:`P_k`, the class covariance matrices :math:`\Sigma_k` and
    :math:`S_w = \sum_k P_k \Sigma_k`, :math:`S_b = \sum_k P_k (\mu_k-\mu)(\mu_k-\mu)'`,
    :math:`S_m = S_w + S_b`:

    .. math:: J_1 = \mathrm{tr} S_m / \mathrm{tr} S_w, \quad J_2 = |S_m| / |S_w|, \quad
              J_3 = \mathrm{tr}(S_w^{-1} S_m)

    For the empty subset, J1 is 1, J2 is 1 and J3 is 0. J2 and J3 are monotone and do not depend on
    the scale of the columns. J1 is not monotone and depends on the scale. A step of a search costs
    O(\|S\|^2) for each candidate, because matrices are updated.

    With J2 and J3, a subset with a constant column, or a column determined by the others, has the
    value -inf, so searches skip duplicate columns. A search that starts from such columns raises
    :class:`~tamis.exceptions.SingularScatter`. A ``ridge`` avoids both.

    Parameters
    ----------
    measure : {"J1", "J2", "J3"}, default="J3"
        Measure to compute.
    ridge : float, default=0
        Number added to the diagonal of S_w, as a multiple of the mean of that diagonal over all
        columns. It is the same for all subsets, so J2 and J3 stay monotone.
    task : {"auto", "classification"}, default="auto"
        "auto" refuses numbers with more than 20 distinct values, because they look like a
        regression target. "classification" treats each distinct value as a class.

    References
    ----------
    Theodoridis and Koutroumbas (2009), Pattern Recognition, ch. 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = Scatter("J3").fit(*load_iris(return_X_y=True))
    >>> round(criterion.value(np.array([2, 3])), 3)
    21.782
    """

    measure: str = "J3"
    _: KW_ONLY
    ridge: float = 0.0
    task: str = "auto"

    _constraints: ClassVar[Constraints] = {
        "measure": one_of("J1", "J2", "J3"),
        "ridge": number(least=0),
    }

    @property
    def monotone(self) -> bool:
        """Whether the measure is monotone, which is true for J2 and J3."""
        return self.measure != "J1"

    def cost(self, n_samples: int, n_features: int) -> float | None:
        if self.measure == "J1":
            return 10.0 * n_samples * n_features
        return matrices_cost(n_samples, n_features, 3)

    @property
    def _n_matrices(self) -> int:
        return 0 if self.measure == "J1" else 1

    @property
    def _weighs_scale(self) -> bool:
        return self.measure == "J1" or super()._weighs_scale

    def _form(self, moments: ClassMoments) -> Form:
        means, priors = moments.means, moments.priors
        distance = (means - priors @ means) * np.sqrt(priors)[:, None]
        between = (distance**2).sum(axis=0)
        if self.measure == "J1":
            within = priors @ moments.variances()
            within += self.ridge * within.mean()
            check_within(within, between, moments.size)
            return _TraceRatio(within, within + between)
        within = moments.within(self.ridge)
        check_within(within.diagonal(), between, moments.size)
        if self.measure == "J2":
            return _DeterminantRatio(within, within + distance.T @ distance)
        # tr(Sw^-1 Sm) = |S| + tr(Sw^-1 Sb)
        return TraceSum([TraceForm(within, F=distance)], per_column=1.0)


class _TraceRatio:
    """Measure J1, computed from the diagonals of S_w and S_m."""

    def __init__(self, within: Array, total: Array):
        self.within, self.total = within, total

    def bounds(self, subsets: list[Subset], size: int) -> Array:
        return self.values(subsets)

    def _of(self, total: Any, within: Any) -> Any:
        """Return the ratio of traces, which is 1 for constant columns and for the empty subset."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(total <= 0, 1.0, total / within)

    def values(self, subsets: list[Subset]) -> Array:
        total = np.array([self.total[s].sum() for s in subsets])
        return self._of(total, np.array([self.within[s].sum() for s in subsets]))

    def gains(self, subset: Subset) -> Array:
        total, within = self.total[subset].sum(), self.within[subset].sum()
        return self._of(total + self.total, within + self.within) - self._of(total, within)

    def losses(self, subset: Subset) -> Array:
        total, within = self.total[subset].sum(), self.within[subset].sum()
        if len(subset) == 1:  # the empty subset has exactly the value 1, without rounding errors
            return self._of(total, within) - np.ones(1)
        left = self._of(_without_each(self.total[subset]), _without_each(self.within[subset]))
        return self._of(total, within) - left


def _without_each(terms: Array) -> Array:
    """Return, for each term, the sum of all other terms.

    Subtracting the term from the total would lose digits of small terms.
    """
    before, after = np.cumsum(terms), np.cumsum(terms[::-1])[::-1]
    return np.append(0.0, before[:-1]) + np.append(after[1:], 0.0)


class _DeterminantRatio:
    """Measure J2, computed from S_w and S_m.

    An added column multiplies J2 by the ratio of its residual variances in S_m and S_w.
    """

    def __init__(self, within: Array, total: Array):
        self.within, self.total = Residuals(within), Residuals(total)

    def values(self, subsets: list[Subset]) -> Array:
        values = np.ones(len(subsets))
        for indices, stack in stacked(subsets):
            within, total = blocks(self.within.W, stack), blocks(self.total.W, stack)
            good = independent(within)
            log_ratio = np.linalg.slogdet(total[good])[1] - np.linalg.slogdet(within[good])[1]
            if log_ratio.max(initial=0.0) > LARGEST:
                raise SingularScatter(
                    f"J2 of {stack.shape[1]} columns exceeds the largest float. Use "
                    'Scatter("J3"), or give the criterion a ridge such as ridge=1e-3.'
                )
            values[indices[good]], values[indices[~good]] = np.exp(log_ratio), -np.inf
        return values

    def gains(self, subset: Subset) -> Array:
        self._move_to(subset)
        base = self.values([subset])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = self.total.left / self.within.left
            return np.where(self.within.dependent(), -np.inf, base * (factor - 1))

    def losses(self, subset: Subset) -> Array:
        self._move_to(subset)
        # both matrices are updated by the same moves, so their members are in the same order
        factor = self.total.inverse.diagonal() / self.within.inverse.diagonal()
        return (1 - factor)[self.within.members.argsort()] * self.values([subset])[0]

    def bounds(self, subsets: list[Subset], size: int) -> Array:
        values = self.values(subsets)
        check_finite(values)
        return values

    def _move_to(self, subset: Subset) -> None:
        self.within.move_to(subset)
        self.total.move_to(subset)


def matrices_cost(n_samples: int, n_features: int, n_matrices: int) -> float:
    """Estimate the memory in bytes of ``n_matrices`` square matrices and a copy of the table."""
    return 8.0 * n_matrices * n_features**2 + 8 * n_samples * n_features


def check_within(within: Array, other: Array, size: Array) -> None:
    """Raise an error if a column is constant within a class but differs between classes."""
    noise = (1e-12 * size) ** 2
    decided = (within <= noise) & (other > 1e6 * noise + 1e-300)
    if decided.any():
        raise SingularScatter(
            f"Column {int(np.flatnonzero(decided)[0])} does not vary within a class but differs "
            "between classes: its separability is infinite. Check whether it leaks the target; to "
            "keep it, give the criterion a ridge such as ridge=1e-6."
        )


#: With at least this number of samples per column in each class, covariances are not shrunk. The
#: small ridge is used instead, so that duplicate columns do not make a covariance singular.
KNOWN_FROM, SMALL_RIDGE = 3, 1e-3


@dataclass(eq=False, repr=False)
class Divergence(Separability):
    r"""Average symmetric Kullback-Leibler divergence between classes.

    .. math:: \sum_{k,l} P_k P_l d_{kl}, \qquad d_{kl} = \tfrac12 \mathrm{tr}(\Sigma_k^{-1}\Sigma_l
        + \Sigma_l^{-1}\Sigma_k - 2I) + \tfrac12 (\mu_k-\mu_l)'(\Sigma_k^{-1}+\Sigma_l^{-1})
        (\mu_k-\mu_l)

    over all ordered pairs of Gaussian classes. Unlike :class:`Scatter`, it detects classes that
    differ only in their spread. The empty subset has the value 0. The criterion is monotone,
    because a marginal divergence never exceeds the joint one. Columns that depend on each other
    within a class are treated as in :class:`Scatter`.

    Use ``density="parzen"`` for classes that are not Gaussian, such as clusters or rings. For each
    sample, the mean log density of all classes, weighted by their priors, is then subtracted from
    the log density of its own class. The sample is left out of its own density. The value is twice
    the mean of these differences. This estimate may decrease when a column is added.

    Parameters
    ----------
    density : {"gaussian", "parzen"}, default="gaussian"
        Model of the class densities.
    ridge : float or "auto", default=0
        Number added to the diagonal of every class covariance, as a multiple of the mean
        within-class variance over all columns. If a class has fewer than three samples per column,
        "auto" is equivalent to Ledoit-Wolf shrinkage, averaged over the classes. Otherwise it is
        1e-3.
    sigma : float or "likelihood", default="likelihood"
        Width of the Parzen windows, as in :class:`ParzenInformation`.
    task
        As in :class:`Scatter`.

    Attributes
    ----------
    ridge_ : float
        The given ridge, or the one chosen by "auto". Only set for ``density="gaussian"``.

    References
    ----------
    Ledoit and Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices,
    J. Multivariate Analysis 88.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = Divergence().fit(*load_iris(return_X_y=True))
    >>> round(criterion.value(np.array([2, 3])), 2)
    123.42
    """

    density: str = "gaussian"
    _: KW_ONLY
    ridge: float | str = 0.0
    sigma: float | str = "likelihood"
    task: str = "auto"

    _constraints: ClassVar[Constraints] = {
        "density": one_of("gaussian", "parzen"),
        "ridge": number(least=0) | one_of("auto"),
    }

    @property
    def monotone(self) -> bool:
        """Whether the criterion is monotone, which is true only for Gaussian classes."""
        return self.density == "gaussian"

    def cost(self, n_samples: int, n_features: int) -> float | None:
        if self.density == "parzen":
            return ParzenDivergence(sigma=self.sigma).cost(n_samples, n_features)
        # two matrices for each of two classes, and a temporary one
        return matrices_cost(n_samples, n_features, 5)

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """Whether the criterion learns from row blocks, which is true only for Gaussian classes."""
        return self.density == "gaussian"

    def _check_blocks(self) -> None:
        if not self.takes_blocks:
            refuse_blocks(f"{type(self).__name__}(density={self.density!r})")

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._windows: ParzenDivergence | None = None
        if self.density == "gaussian":
            super()._learn(X, y, **params)
            return
        windows = ParzenDivergence(sigma=self.sigma)
        self._windows = windows.grouped(self._unit_columns).fit(X, y)

    def _learn_blocks(self, table: BlockTable) -> None:
        self._windows = None
        super()._learn_blocks(table)

    def values(self, subsets: Iterable[Subset]) -> Array:
        return super().values(subsets) if self._windows is None else self._windows.values(subsets)

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if self._windows is None:
            return super().gain(subset, candidates)
        return self._windows.gain(subset, candidates)

    def loss(self, subset: Subset) -> Array:
        return super().loss(subset) if self._windows is None else self._windows.loss(subset)

    def bounds(self, subsets: Iterable[Subset], size: int) -> Array:
        if self._windows is None:
            return super().bounds(subsets, size)
        return self._windows.bounds(subsets, size)

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Choose the width of the Parzen windows again, for the subset."""
        return {} if self._windows is None else self._windows.tune(subset)

    def use(self, params: dict[str, Any]) -> None:
        """Use a width that an earlier :meth:`tune` chose."""
        if self._windows is not None:
            self._windows.use(params)

    @property
    def _n_matrices(self) -> None:
        return None

    def _form(self, moments: ClassMoments) -> Form:
        self.ridge_ = shrinking_ridge(moments) if self.ridge == "auto" else float(self.ridge)
        means, priors = moments.means, moments.priors
        covariances = moments.covariances(self.ridge_)
        forms = []
        for k, covariance in enumerate(covariances):
            # ``met`` is the sum over all classes l of P_k P_l (Sigma_l + delta delta'), where delta
            # is the difference of the class means; the form is tr(Sigma_k^-1 met)
            weights = priors[k] * np.where(np.arange(len(priors)) == k, 0, priors)
            shift = (means - means[k]) * np.sqrt(weights)[:, None]
            met = np.tensordot(weights, covariances, axes=1) + shift.T @ shift
            check_within(covariance.diagonal(), met.diagonal(), moments.size)
            forms.append(TraceForm(covariance, met))
        return TraceSum(forms, per_column=(priors**2).sum() - 1)


def shrinking_ridge(moments: ClassMoments) -> float:
    """Return the ridge for ``ridge="auto"``, see :class:`Divergence`."""
    counts = moments.counts
    if counts.min() >= KNOWN_FROM * moments.means.shape[1]:
        return SMALL_RIDGE
    if moments.rows is None:
        raise InvalidParameter(
            f"Divergence(ridge='auto') on row blocks needs {KNOWN_FROM} rows per column in every "
            f"class, but one class has {counts.min()}. Write a number, such as ridge=1e-3."
        )
    X, codes = moments.rows
    shares = [
        ledoit_wolf_shrinkage(X[codes == k]) if count > 1 else 1.0 for k, count in enumerate(counts)
    ]
    # the shrunk covariance (1 - share) S + share m I is proportional to S + ridge m I
    share = float(np.average(shares, weights=counts))
    return max(share / max(1 - share, SMALL_RIDGE), SMALL_RIDGE)
