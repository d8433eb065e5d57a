"""Class separability from scatter matrices."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, class_codes, in_range, is_real
from tamis._linalg import (
    Residuals,
    TraceForm,
    TraceSum,
    blocks,
    check_finite,
    independent,
    stacked,
)
from tamis.contract import Cost, SubsetCriterion
from tamis.exceptions import InvalidParameter, NothingToAdd, SingularScatter

MEASURES = ("J1", "J2", "J3")
#: Logarithm of the largest number.
LARGEST = float(np.log(np.finfo(float).max))


class Form(Protocol):
    """A measure of separability, from matrices that were computed once."""

    def values(self, subsets: list[Subset]) -> Array: ...
    def gains(self, subset: Subset) -> Array: ...
    def losses(self, subset: Subset) -> Array: ...
    def bounds(self, subsets: list[Subset], size: int) -> Array: ...


class Separability(SubsetCriterion):
    """Criterion that reduces the data to matrices and asks a form for the scores."""

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})

    @abstractmethod
    def _form(self, X: Array, y: NDArray[Any]) -> Form:
        """The measure for these data."""

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self.form_ = self._form(X, y)

    def value(self, subset: Subset) -> float:
        return float(self.values([subset])[0])

    def values(self, subsets: Iterable[Subset]) -> Array:
        return self.form_.values([self.columns(subset) for subset in subsets])

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        gains = self._guarded(self.form_.gains, self.columns(subset))[self.columns(candidates)]
        if len(gains) and np.isneginf(gains).all():
            raise NothingToAdd(
                f"{type(self).__name__} cannot add any more columns: each one left is constant or "
                "depends on those chosen. Ask for fewer features, or give the criterion a ridge "
                "such as ridge=1e-6."
            )
        return gains

    def loss(self, subset: Subset) -> Array:
        return self._guarded(self.form_.losses, self.columns(subset))

    def bound(self, subset: Subset, size: int) -> float:
        return float(self.bounds([subset], size)[0])

    def bounds(self, subsets: Iterable[Subset], size: int) -> Array:
        return self._guarded(self.form_.bounds, [self.columns(s) for s in subsets], size)

    def _guarded(self, function: Any, *args: Any) -> Array:
        """The function's answer, or an error that names the way out of a singular matrix."""
        try:
            return function(*args)
        except np.linalg.LinAlgError as error:
            raise SingularScatter(
                f"{type(self).__name__} cannot start from columns that are constant or depend on "
                "each other inside a class (copies, or as many columns as samples). Give the "
                "criterion a ridge such as ridge=1e-6, or use Forward, which passes such columns "
                "over."
            ) from error


class Scatter(Separability):
    r"""How far apart the classes lie, from the scatter within and between them.

    With the class priors :math:`P_k`, the covariance matrices :math:`\Sigma_k` of the samples and
    :math:`S_w = \sum_k P_k \Sigma_k`, :math:`S_b = \sum_k P_k (\mu_k-\mu)(\mu_k-\mu)'`,
    :math:`S_m = S_w + S_b`:

    .. math:: J_1 = \mathrm{tr} S_m / \mathrm{tr} S_w, \quad J_2 = |S_m| / |S_w|, \quad
              J_3 = \mathrm{tr}(S_w^{-1} S_m)

    The empty subset is worth 1, 1 and 0. J2 and J3 are monotone and do not depend on the scale of
    the columns; J1 is neither. By updating, a step of a search costs O(\|S\|^2) a candidate.

    A subset in which a column is constant or determined by the others is worth -inf, so that
    searches pass copies over; a search that starts from such columns is refused with
    :class:`~tamis.exceptions.SingularScatter`. A ``ridge`` lifts both.

    Parameters
    ----------
    measure : {"J1", "J2", "J3"}, default="J3"
    ridge : float, default=0
        Added to the diagonal of S_w, in units of its mean over all columns. It is fixed once, so
        J2 and J3 stay monotone.
    task : {"auto", "classification"}, default="auto"
        "auto" refuses numbers of more than 20 distinct values, which a regression target has;
        "classification" takes each as a class.

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

    def __init__(self, measure: str = "J3", *, ridge: float = 0.0, task: str = "auto"):
        self.measure = measure
        self.ridge = ridge
        self.task = task

    @property
    def monotone(self) -> bool:
        """J2 and J3 are, J1 is not."""
        return self.measure != "J1"

    def check(self) -> None:
        if self.measure not in MEASURES:
            raise InvalidParameter(
                f"Scatter needs a measure out of {', '.join(MEASURES)}, not {self.measure!r}."
            )
        check_ridge(self)

    def cost(self, n_samples: int, n_features: int, n_rounds: int = 1) -> Cost | None:
        if self.measure == "J1":
            size = n_samples * n_features
            return Cost(10 * size + 50.0 * n_rounds * n_features + 5e5, 10.0 * size)
        return matrices_cost(n_samples, n_features, n_rounds, 3)

    def _form(self, X: Array, y: NDArray[Any]) -> Form:
        # J1 and a ridge weigh columns by their scale
        X = in_range(X, together=self.measure == "J1" or self.ridge > 0)
        codes = class_codes(y)[1]
        means, priors = class_means(X, codes)
        distance = (means - priors @ means) * np.sqrt(priors)[:, None]
        between = (distance**2).sum(axis=0)
        if self.measure == "J1":
            spread = priors @ [X[codes == k].var(axis=0) for k in range(len(priors))]
            spread += self.ridge * spread.mean()
            check_within(spread, between, X)
            return _TraceRatio(spread, spread + between)
        within = np.tensordot(priors, class_covariances(X, codes, means, self.ridge), axes=1)
        check_within(within.diagonal(), between, X)
        if self.measure == "J2":
            return _DeterminantRatio(within, within + distance.T @ distance)
        # tr(Sw^-1 Sm) = |S| + tr(Sw^-1 Sb)
        return TraceSum([TraceForm(within, F=distance)], per_column=1.0)


class _TraceRatio:
    """J1 from the two diagonals."""

    def __init__(self, within: Array, total: Array):
        self.within, self.total = within, total

    def bounds(self, subsets: list[Subset], size: int) -> Array:
        return self.values(subsets)

    def _of(self, total: Any, within: Any) -> Any:
        """Ratio of traces: 1 of nothing, and of columns that do not vary."""
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
        if len(subset) == 1:  # nothing is left, not the rounding of a difference
            return self._of(total, within) - np.ones(1)
        left = self._of(total - self.total[subset], within - self.within[subset])
        return self._of(total, within) - left


class _DeterminantRatio:
    """J2: each column multiplies it by the ratio of its residual variances in S_m and S_w."""

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
                    f"J2 of {stack.shape[1]} columns passes the largest number there is. Use "
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
        # both sides restart together, so their members stand in the same order
        factor = self.total.inverse.diagonal() / self.within.inverse.diagonal()
        return (1 - factor)[self.within.members.argsort()] * self.values([subset])[0]

    def bounds(self, subsets: list[Subset], size: int) -> Array:
        values = self.values(subsets)
        check_finite(values)
        return values

    def _move_to(self, subset: Subset) -> None:
        self.within.move_to(subset)
        self.total.move_to(subset)


def check_ridge(criterion: Any) -> None:
    """Refuse a ridge that is no number, or negative."""
    if not (is_real(criterion.ridge) and criterion.ridge >= 0):
        raise InvalidParameter(
            f"{type(criterion).__name__} needs a number ridge >= 0, not {criterion.ridge!r}."
        )


def matrices_cost(n_samples: int, n_features: int, n_rounds: int, n_matrices: int) -> Cost:
    """What making so many square matrices of all columns takes, and regressing on a few."""
    square, size = n_features**2, n_samples * n_features
    # a product of matrices makes some twenty multiplications a nanosecond; writing and adding up
    # matrices waits for the memory; a round updates the regression on half of those chosen at last
    fit = 0.04 * n_samples * square + 3.0 * n_matrices * square + 8 * size + 5e5
    chosen = min(n_rounds, n_features) / 2
    rounds = n_rounds * (1e5 + 10 * chosen * n_features)
    return Cost(fit + rounds, 8.0 * n_matrices * square + 8 * size)


def class_means(X: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
    """Means and priors of the classes."""
    counts = np.bincount(codes)
    means = np.array([X[codes == k].mean(axis=0) for k in range(len(counts))])
    return means, counts / len(codes)


def class_covariances(X: Array, codes: NDArray[np.intp], means: Array, ridge: float) -> Array:
    """Covariance matrices of the classes, with a ridge in units of the mean variance in them."""
    covariances = np.empty((len(means), X.shape[1], X.shape[1]))
    for k, mean in enumerate(means):
        centred = X[codes == k] - mean
        covariances[k] = centred.T @ centred
        covariances[k] /= len(centred)
    priors = np.bincount(codes) / len(codes)
    diagonals = np.einsum("kjj->kj", covariances)
    diagonals += ridge * (priors @ diagonals).mean()
    return covariances


def check_within(within: Array, other: Array, X: Array) -> None:
    """Refuse a column that does not vary where it must but does where it counts."""
    noise = (1e-12 * np.maximum(X.max(axis=0), -X.min(axis=0))) ** 2
    decided = (within <= noise) & (other > 1e6 * noise + 1e-300)
    if decided.any():
        raise SingularScatter(
            f"Column {int(np.flatnonzero(decided)[0])} does not vary inside a class but differs "
            "between classes: its separability is infinite. Look whether it gives the answer away; "
            "to keep it, give the criterion a ridge such as ridge=1e-6."
        )
