"""Selection of columns whose relation to the target is the same in all environments."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb, log
from typing import Any, ClassVar, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from tamis._arrays import Array, Subset, scaled_columns
from tamis._checks import Constraints, integer, number, one_of
from tamis._format import format_count, shorten_list
from tamis._seeds import seed_of
from tamis.contract.fit_warnings import caller_level
from tamis.contract.units import Grouping
from tamis.exceptions import DegenerateData, InvalidParameter, InvalidTarget
from tamis.meta.conditional_test import target_outputs
from tamis.meta.inner_search import search_cost
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds, task_of

#: Minimum number of rows in an environment.
FEWEST = 10
#: A warning is issued if there are more environments than MANY, and most have fewer rows than FEW.
#: The variances of the slopes are then too uncertain for a sum over many environments.
MANY, FEW = 5, 30
#: Maximum number of sets that are compared. Each takes about 0.1 ms.
MOST_SETS = 100_000
#: Eigenvalues below this share of the largest one are treated as rounding errors.
RANK = 1e-10
#: Number of Newton steps of a logistic regression, and its penalty on slopes of standardised
#: columns. The penalty keeps slopes finite if a column separates the classes.
STEPS, PENALTY = 25, 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class InvariantSelection(Rounds, InRounds):
    """Select columns of a search whose relation to the target is equal in all environments.

    Environments are hospitals, years or sites, given as ``fit(X, y, environments=...)`` with one
    label per row. The search runs on all rows. Then its selected columns are tested:

    * ``how="columns"`` tests each column alone. The slope of the target on the column is estimated
      in every environment, and Cochran's Q with robust variances tests whether the slopes are
      equal. Columns with p < ``alpha`` are dropped.
    * ``how="subset"`` tests sets of columns. Among the sets whose regression is the same in all
      environments (Chow test, p >= ``alpha``), it selects the one with the lowest extended BIC. Use
      it if the correlations between columns differ between environments, because the slope of a
      single column then differs too. The target must be numeric, with equal noise in all
      environments.

    The test of equal slopes has a level of ``alpha`` for each column. With many environments of
    few rows, it rejects equal slopes of a numeric target too often, and a warning is issued. A
    column that passes may still differ: few rows or few environments detect only large differences.
    Categories with fewer than about ten rows per level and environment are dropped too often.

    Parameters
    ----------
    search : Search or any other selection
        The search that runs on all rows. Its own parameters determine the number of columns.
    alpha : float, default=0.05
        Level of the tests.
    how : {"columns", "subset"}, default="columns"
        Whether columns are tested alone or as a set.
    max_columns : int, default=5
        Greatest number of units in a set.
    n_candidates : int, default=12
        Number of units from which sets are made. They are the first units that the search selects.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether ``y`` contains classes or numbers.
    random_state : int, generator or None, default=None
        Seed of the search.
    n_jobs : int or None, default=None
        Not used, because there is only one round.

    Attributes
    ----------
    environments_ : array
        The labels of the environments.
    p_equal_ : array of float
        The p-value of equal slopes for each unit. NaN if the unit was not tested.
    slopes_, slope_errors_ : array of shape (n_environments, n_columns)
        Slope of the target on each column in each environment, per standard deviation of the
        column, and its standard error. NaN if the column was not tested, or if the column or the
        target is constant in the environment. For classes, they are slopes of the log-odds. With
        more than two classes, the class whose slopes differ most is used. With ``how="subset"``,
        they are slopes of the regression on all selected columns.

    References
    ----------
    Peters, Buehlmann and Meinshausen (2016), Causal inference by using invariant prediction.

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.meta import InvariantSelection
    >>> from tamis.search import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 10))
    >>> site = np.repeat(["a", "b", "c"], 100)
    >>> sign = np.where(site == "c", -1, 1)  # the relation to column 9 is reversed at site c
    >>> y = X[:, 4] + 2 * sign * X[:, 9] + rng.normal(size=300)
    >>> search = InvariantSelection(Ranking(Correlation(), n_features_to_select=2), random_state=0)
    >>> search.fit(X, y, environments=site).get_support(indices=True)
    array([4])
    """

    counts_places: ClassVar[bool] = True
    row_labels: ClassVar[tuple[str, ...]] = ("environments",)
    sizes_search: ClassVar[bool] = False
    instead_if_censored: ClassVar[str] = (
        "Run a selection in each environment, and compare the columns."
    )

    _constraints: ClassVar[Constraints] = {
        "alpha": number(above=0, below=1),
        "how": one_of("columns", "subset"),
        "max_columns": integer(1),
        "n_candidates": integer(1),
        "task": one_of("auto", "classification", "regression"),
    }

    alpha: float = 0.05
    how: str = "columns"
    max_columns: int = 5
    n_candidates: int = 12
    task: str = "auto"

    def _check_target(self, y: NDArray[Any] | None) -> None:
        super()._check_target(y)
        assert y is not None
        if self.how == "subset" and task_of(self, y) == "classification":
            raise InvalidTarget(
                "InvariantSelection(how='subset') needs a numeric target, but y holds classes. "
                "Write how='columns'."
            )

    def _n_rounds(self) -> int:
        return 1

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the search needs. None if unknown."""
        held = search_cost(self.search, n_samples, n_features)
        return held and held + 16.0 * n_samples * n_features

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        check_environments("InvariantSelection", self._labels["environments"])
        codes = self._row_codes("environments")
        assert y is not None
        assert codes is not None
        parts = [y[codes == code] for code in range(codes.max() + 1)]
        if (n := sum((part != part[0]).any() for part in parts)) < 2:
            raise InvalidTarget(
                "InvariantSelection compares slopes between environments, but the target varies in "
                f"only {n} of {len(parts)}. Join environments, or leave out those with a "
                "single value."
            )
        counts = np.bincount(codes)
        slopes_of_numbers = self.how == "columns" and task_of(self, y) == "regression"
        if slopes_of_numbers and len(counts) > MANY and np.median(counts) < FEW:
            warn(
                f"InvariantSelection: half of the {len(counts)} environments have fewer than {FEW} "
                "rows; with many small environments, columns with equal slopes are dropped too "
                "often. Join environments.",
                DegenerateData,
                stacklevel=caller_level(),
            )
        n = min(self.n_candidates, self._units.n_units)
        n_sets = sum(comb(n, size) for size in range(self.max_columns + 1))
        if self.how == "subset" and n_sets > MOST_SETS:
            raise InvalidParameter(
                f"InvariantSelection can compare {MOST_SETS} sets, but there are {n_sets} sets "
                f"of at most {self.max_columns} of {n} columns. Reduce max_columns or n_candidates."
            )
        super()._check_memory(X, y)

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """Return environments, order of the units, number to select, p-values and slopes."""
        assert y is not None
        given = self._labels["environments"]
        assert given is not None
        names, codes = given
        search = self._fit_search(X, y, seed_of(seed, "search"))
        selected = search.order_[search.unit_support_[search.order_]]
        task = task_of(self, y)
        truth = target_outputs(y, task)
        # scaled by a power of two, so that squares neither overflow nor underflow
        exponent = 0 if task == "classification" else np.frexp(np.abs(truth).max())[1]
        tests = SlopeTests(X, np.ldexp(truth, -exponent), codes, task, self._units)
        if self.how == "subset":
            kept = tests.best_subset(selected[: self.n_candidates], self.max_columns, self.alpha)
            tested = {unit: tests.test(kept, unit) for unit in kept}
        else:
            tested = {unit: tests.test(np.array([unit]), unit) for unit in selected}
        p = np.full(self._units.n_units, np.nan)
        slopes = np.full((2, len(names), X.shape[1]), np.nan)
        for unit, one in tested.items():
            p[unit] = one.p
            own = self._units.columns(np.array([unit]))
            slopes[:, :, own] = np.ldexp((one.slopes, one.errors), exponent)
        if self.how == "columns":
            kept = selected[p[selected] >= self.alpha]
        order = np.concatenate([kept, search.order_[~np.isin(search.order_, kept)]])
        return [names.tolist(), order.tolist(), len(kept), *_plain(p, *slopes)]

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        names, order, self._n_kept, *numbers = found[0]
        self.environments_ = np.array(names)
        self.p_equal_, self.slopes_, self.slope_errors_ = (
            np.array(n, dtype=float) for n in numbers
        )
        scores = np.zeros(n_units)
        scores[np.array(order)] = np.arange(n_units, 0, -1.0)
        return scores

    def _verdict(self, scores: Array) -> Verdict:
        n_tested, n = int(np.isfinite(self.p_equal_).sum()), self._n_kept
        names = shorten_list(self.environments_.tolist(), 5)
        where = f"{len(self.environments_)} environments ({names})"
        if self.how == "subset":
            if not n:
                return Verdict(0, f"no set of columns predicts the target equally in {where}.")
            return Verdict(
                n,
                f"{self._counted(n)}: the set with the lowest extended BIC among those whose "
                f"regression does not differ between {where}.",
            )
        if not n:
            return Verdict(0, f"no selected column has equal slopes in {where}.")
        return Verdict(
            n,
            f"{self._counted(n)} of {n_tested} that the search selects: their slopes do not differ "
            f"between {where} (p >= {self.alpha:g}).",
        )


class SlopeTest(NamedTuple):
    """The slopes of a unit in each environment, their errors, and the p-value of equality."""

    p: float
    slopes: Array  # (environments, columns of the unit)
    errors: Array


class SlopeTests(NamedTuple):
    """A table with environments, in which slopes are compared."""

    X: Array
    truth: Array
    codes: Subset
    task: str
    grouping: Grouping

    def test(self, units: Subset, unit: int) -> SlopeTest:
        """Test whether the slopes of a unit, in the regression on all ``units``, are equal."""
        columns, own = self.grouping.columns(np.sort(units)), np.array([unit])
        wanted = np.searchsorted(columns, self.grouping.columns(own))
        Z = scaled_columns(self.X[:, columns])[0]
        each = [self._compare(Z, truth, wanted) for truth in self.truth.T]
        least = min(each, key=lambda one: one.p)
        return least._replace(p=min(1.0, len(each) * least.p))

    def _compare(self, Z: Array, truth: Array, wanted: Subset) -> SlopeTest:
        found, covariances = [], []
        for rows in self._environments():
            slopes, covariance = robust_slopes(Z[rows], truth[rows], logistic=self._logistic)
            found.append(slopes[wanted])
            covariances.append(covariance[np.ix_(wanted, wanted)])
        b, C = np.array(found), np.array(covariances)
        errors = np.sqrt(np.einsum("ejj->ej", C))
        return SlopeTest(equal_slopes(b, C), np.where(errors > 0, b, np.nan), errors)

    @property
    def _logistic(self) -> bool:
        return self.task == "classification"

    def _environments(self) -> Iterator[Subset]:
        return (np.flatnonzero(self.codes == code) for code in range(self.codes.max() + 1))

    def best_subset(self, candidates: Subset, most: int, alpha: float) -> Subset:
        """Return the set of units with the lowest extended BIC among those that Chow's test keeps.

        The numbers of columns and environments are small, so all sets are compared.
        """
        Z, y = scaled_columns(self.X[:, self.grouping.columns(np.sort(candidates))])[0], self.truth
        table = np.hstack([np.ones((len(Z), 1)), Z, y])
        grams = [table[rows].T @ table[rows] for rows in self._environments()]
        columns = self.grouping.columns(np.sort(candidates))
        best, lowest = candidates[:0], np.inf
        for size in range(min(most, len(candidates)) + 1):
            for subset in combinations(candidates, size):
                units = np.array(subset, dtype=np.intp)
                at = 1 + np.searchsorted(columns, self.grouping.columns(np.sort(units)))
                p, rss, rank = chow_test(grams, np.r_[0, at], n := len(Z))
                value = n * log(rss / n) + (rank - 1) * log(n)
                value += 2 * log(comb(self.grouping.n_units, size))
                if p >= alpha and value < lowest:
                    best, lowest = units, value
        return best


def robust_slopes(Z: Array, truth: Array, *, logistic: bool) -> tuple[Array, Array]:
    """Return the slopes of a regression with an intercept, and their robust covariance (HC3).

    The slope and the variance of a column are 0 if the column or the target is constant in these
    rows.
    """
    n, d = Z.shape
    varies = (np.ptp(Z, axis=0) > 0) & (np.ptp(truth) > 0)
    # centred, so that slopes of columns that add up to a constant do not depend on the intercept
    A = np.column_stack([np.ones(n), Z[:, varies] - Z[:, varies].mean(axis=0)])
    penalty = np.diag(np.r_[0.0, np.full(varies.sum(), PENALTY if logistic else 0.0)])
    weights = np.zeros(A.shape[1])
    for _ in range(STEPS if logistic else 1):
        mean = expit(A @ weights) if logistic else A @ weights
        v = np.maximum(mean * (1 - mean), 1e-6) if logistic else np.ones(n)
        inverse, _ = pseudo_inverse(A.T @ (A * v[:, None]) + penalty)
        weights = weights + inverse @ (A.T @ (truth - mean) - penalty @ weights)
    mean = expit(A @ weights) if logistic else A @ weights
    leverage = np.minimum(np.einsum("ij,jk,ik->i", A, inverse, A) * v, 0.99)
    scores = A * ((truth - mean) / (1 - leverage))[:, None]
    # adds the variance of the bias that the penalty causes, for slopes with variance 1 / penalty
    found = inverse @ (scores.T @ scores + penalty) @ inverse
    slopes, covariance = np.zeros(d), np.zeros((d, d))
    slopes[varies] = weights[1:]
    covariance[np.ix_(varies, varies)] = found[1:, 1:]
    return slopes, covariance


def pseudo_inverse(M: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the inverse and the rank of symmetric matrices. Small eigenvalues count as 0.

    Indicators of all levels of a category have such eigenvalues.

    >>> pseudo_inverse(np.array([[2.0, 2.0], [2.0, 2.0]]))
    (array([[0.125, 0.125],
           [0.125, 0.125]]), np.int64(1))
    """
    values, vectors = np.linalg.eigh(M)
    used = values > RANK * values[..., -1:]
    inverse = used / np.where(used, values, 1.0)
    return (vectors * inverse[..., None, :]) @ np.swapaxes(vectors, -1, -2), used.sum(axis=-1)


def equal_slopes(slopes: Array, covariances: Array) -> float:
    """Return the p-value of Cochran's Q: whether slopes are equal in all environments.

    Parameters
    ----------
    slopes : array of shape (n_environments, n_slopes)
    covariances : array of shape (n_environments, n_slopes, n_slopes)
        An environment without information about a slope has zeros.

    >>> equal_slopes(np.array([[1.0], [1.0], [4.0]]), np.ones((3, 1, 1))) < 0.05
    True
    """
    W, ranks = pseudo_inverse(covariances)
    pulled = np.einsum("ejk,ek->j", W, slopes)
    pooled, rank = pseudo_inverse(W.sum(axis=0))
    Q = np.einsum("ej,ejk,ek->", slopes, W, slopes) - pulled @ pooled @ pulled
    df = int(ranks.sum() - rank)
    return float(stats.chi2.sf(max(Q, 0.0), df)) if df > 0 else 1.0


def chow_test(grams: list[Array], at: Subset, n_rows: int) -> tuple[float, float, int]:
    """Test for equal regressions in all environments: p-value, pooled sum of squares and rank.

    ``grams`` holds the cross products of intercept, columns and target in each environment. The
    regression is on the columns ``at``.
    """
    pooled, rank = _sum_of_squares(np.sum(grams, axis=0), at)
    apart, ranks = np.sum([_sum_of_squares(gram, at) for gram in grams], axis=0)
    df1, df2 = ranks - rank, n_rows - ranks
    if df1 < 1 or df2 < 1:  # without residuals, equality cannot be tested, and is not assumed
        return float(df2 >= 1), pooled, rank
    F = (pooled - apart) / df1 / max(apart / df2, 1e-300)
    return float(stats.f.sf(F, df1, df2)), pooled, rank


def _sum_of_squares(gram: Array, at: Subset) -> tuple[float, int]:
    inverse, rank = pseudo_inverse(gram[np.ix_(at, at)])
    b = gram[at, -1]
    return max(float(gram[-1, -1] - b @ inverse @ b), 1e-300), int(rank)


def check_environments(name: str, given: tuple[NDArray[Any], Subset] | None) -> None:
    """Refuse missing environments, a single one, and environments with very few rows."""
    if given is None:
        raise InvalidParameter(
            f"{name} needs environments, one label per row. Write fit(X, y, environments=...)."
        )
    labels, codes = given
    counts = np.bincount(codes)
    if len(labels) < 2 or counts.min() < FEWEST:
        few = f"{len(labels)} environment" if len(labels) < 2 else (
            f"{format_count(counts.min(), 'row')} in environment {str(labels[counts.argmin()])!r}"
        )  # fmt: skip
        raise InvalidParameter(
            f"{name} needs at least 2 environments with {FEWEST} rows each, got {few}. Join small "
            "environments, or leave them out."
        )


def _plain(*arrays: Array) -> list[Any]:
    """Return arrays as nested lists, with None for NaN, which JSON does not have."""
    missing: Any = None
    return [np.where(np.isnan(one), missing, one.astype(object)).tolist() for one in arrays]
