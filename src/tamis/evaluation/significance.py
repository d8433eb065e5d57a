"""Significance tests for paired scores of two or more methods.

The paired t-test assumes that realizations are independent. Realizations of the same data set share
rows, so this test finds differences too often. :func:`corrected_t` corrects for this, and is the
default of :func:`tamis.evaluation.compare`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from tamis._arrays import Array
from tamis._frame import frame
from tamis._seeds import Seed, draw_seed
from tamis.exceptions import InvalidParameter


@dataclass(frozen=True)
class Test:
    """Result of a test for paired scores.

    Attributes
    ----------
    name : str
        Name of the test.
    difference : float
        Mean difference, first method minus second method.
    statistic, p_value : float
        Test statistic and two-sided p-value.
    n_pairs : int
        Number of pairs.

    Examples
    --------
    >>> paired_t([0.1, 0.3, 0.2], [0.2, 0.5, 0.2]).n_pairs
    3
    """

    __test__ = False  # pytest must not collect this class

    name: str
    difference: float
    statistic: float
    p_value: float
    n_pairs: int

    def __repr__(self) -> str:
        return f"<{self.name}: difference {self.difference:.4g}, p = {self.p_value:.3g}>"


@dataclass(frozen=True)
class Interval:
    """An estimate with a confidence interval.

    Attributes
    ----------
    estimate, low, high : float
        The estimate and the limits of the interval.
    level : float
        Confidence level.

    Examples
    --------
    >>> hit_interval(27, 30).estimate
    0.9
    """

    estimate: float
    low: float
    high: float
    level: float

    def __repr__(self) -> str:
        return f"<{self.estimate:.4g} in [{self.low:.4g}, {self.high:.4g}] at {self.level:.0%}>"


def paired_t(first: ArrayLike, second: ArrayLike) -> Test:
    """Test paired scores by the paired t-test.

    If the two scores are equal in every pair, p is 1. If all n differences are equal but not 0,
    their variance is 0. The sign test is then used, which gives p = ``2 ** (1 - n)``. With five or
    fewer pairs, this p is above 0.05.

    Parameters
    ----------
    first, second : array of float
        Scores of two methods, pair by pair.

    Examples
    --------
    >>> paired_t([0.1, 0.3, 0.2, 0.4], [0.2, 0.5, 0.2, 0.6])
    <paired t: difference -0.125, p = 0.0796>
    """
    return _t_test("paired t", first, second, 0.0)


def corrected_t(first: ArrayLike, second: ArrayLike, test_ratio: float) -> Test:
    """Test paired scores by the t-test corrected for overlapping training sets.

    The variance of the mean difference over n random splits is estimated as
    ``(1/n + n_test/n_train)`` times the variance of the differences. The paired t-test uses the
    factor ``1/n``. If all differences are equal, the sign test is used, as in :func:`paired_t`.

    Parameters
    ----------
    first, second : array of shape (n,)
        Scores of two methods on the same splits.
    test_ratio : float
        Number of test rows per training row. It is 1 / (k - 1) for k-fold cross-validation.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error.

    Examples
    --------
    >>> corrected_t([0.1, 0.3, 0.2, 0.4], [0.2, 0.5, 0.2, 0.6], test_ratio=1 / 3)
    <corrected t: difference -0.125, p = 0.186>
    """
    if not test_ratio > 0:
        raise InvalidParameter(
            f"corrected_t needs test_ratio above 0, the number of test rows per training row, got "
            f"{test_ratio!r}. For splits of 120 and 58 rows write test_ratio=58 / 120."
        )
    return _t_test("corrected t", first, second, test_ratio)


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Test:
    """Test paired scores by Wilcoxon's signed-rank test.

    Pairs without a difference are ignored. If all pairs are equal, p is 1.

    Parameters
    ----------
    first, second : array of float
        Scores of two methods, pair by pair.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods.

    Examples
    --------
    >>> wilcoxon([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
    <Wilcoxon: difference -3, p = 0.0625>
    """
    differences = _differences("wilcoxon", first, second)
    if not differences.any():
        return Test("Wilcoxon", 0.0, 0.0, 1.0, len(differences))
    found = stats.wilcoxon(differences)
    mean = float(differences.mean())
    return Test("Wilcoxon", mean, float(found.statistic), float(found.pvalue), len(differences))


def holm(p_values: ArrayLike) -> Array:
    """Adjust p-values for multiple testing by Holm's step-down rule.

    Parameters
    ----------
    p_values : array of float
        P-values of all tests.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise InvalidParameter(f"holm needs p-values between 0 and 1, not {p_values!r}.")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def mark(test: Test, *, greater_is_better: bool = False, level: float = 0.05) -> str:
    """Return the sign of a test.

    It is "+" if the first method is significantly better, "-" if it is significantly worse, and
    empty if the difference is not significant.

    Parameters
    ----------
    test : Test
        Test of the first method against the second.
    greater_is_better : bool, default=False
        Whether greater scores are better.
    level : float, default=0.05
        Significance level.

    Examples
    --------
    >>> mark(paired_t([1, 2, 1, 2], [5, 7, 6, 6]))
    '+'
    """
    if not test.p_value < level:
        return ""
    return "+" if (test.difference > 0) == greater_is_better else "-"


def bootstrap_interval(
    values: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: Seed = 0,
) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval for a statistic.

    Parameters
    ----------
    values : array of float
        One value per realization.
    statistic : callable, default=numpy.mean
        Function that computes the statistic from the values.
    level : float, default=0.95
        Confidence level.
    n_resamples : int, default=2000
        Number of bootstrap samples.
    random_state : int or generator, default=0
        Seed of the bootstrap samples.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals.

    Examples
    --------
    >>> bootstrap_interval([3, 4, 4, 5, 5, 5, 6, 6, 7])
    <5 in [4.222, 5.667] at 95%>
    """
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or len(sample) < 2 or not np.isfinite(sample).all():
        raise InvalidParameter(
            f"bootstrap_interval needs at least two finite values in one dimension, not {values!r}."
        )
    estimate = float(statistic(sample))
    if np.ptp(sample) == 0:
        return Interval(estimate, estimate, estimate, level)
    found = stats.bootstrap(
        (sample,),
        statistic,
        confidence_level=level,
        n_resamples=n_resamples,
        method="BCa",
        rng=np.random.default_rng(draw_seed(random_state)),
    ).confidence_interval
    return Interval(estimate, float(found.low), float(found.high), level)


def hit_interval(n_hits: int, n_trials: int, *, level: float = 0.95) -> Interval:
    """Return Wilson's confidence interval for a hit rate.

    Parameters
    ----------
    n_hits, n_trials : int
        Number of hits and number of trials.
    level : float, default=0.95
        Confidence level.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference.

    Examples
    --------
    >>> hit_interval(27, 30)
    <0.9 in [0.7438, 0.9654] at 95%>
    """
    if not 0 <= n_hits <= n_trials or n_trials < 1:
        raise InvalidParameter(
            f"hit_interval needs 0 <= n_hits <= n_trials, not {n_hits} of {n_trials}."
        )
    found = stats.binomtest(int(n_hits), int(n_trials))
    limits = found.proportion_ci(confidence_level=level, method="wilson")
    return Interval(n_hits / n_trials, float(limits.low), float(limits.high), level)


def same_rate(first: tuple[int, int], second: tuple[int, int], *, mid_p: bool = False) -> float:
    """Return the p-value of Fisher's exact test that two hit rates are equal.

    Parameters
    ----------
    first, second : tuple of int
        Number of hits and number of trials of each method.
    mid_p : bool, default=False
        Whether to return the mid-p-value, which counts half of the probability of the observed
        table. Fisher's test rejects equal rates less often than its level states. With mid-p, the
        rate of rejections is close to the level.

    Examples
    --------
    >>> round(same_rate((27, 30), (19, 30)), 3)
    0.03
    >>> round(same_rate((27, 30), (19, 30), mid_p=True), 3)
    0.024
    """
    (hits, n), (other_hits, other_n) = first, second
    p_value = float(stats.fisher_exact([[hits, n - hits], [other_hits, other_n - other_hits]])[1])
    if not mid_p:
        return p_value
    observed = stats.hypergeom.pmf(hits, n + other_n, hits + other_hits, n)
    return p_value - float(observed) / 2


def _t_test(name: str, first: ArrayLike, second: ArrayLike, test_ratio: float) -> Test:
    differences = _differences(name, first, second)
    n, mean = len(differences), float(differences.mean())
    # scores that are equal up to rounding errors must not differ significantly
    scale = max(float(np.abs(np.asarray(first)).max()), float(np.abs(np.asarray(second)).max()))
    if np.abs(differences).max() <= 1e-14 * scale:
        return Test(name, 0.0, 0.0, 1.0, n)
    if abs(mean) <= 1e-15 * scale:  # positive and negative differences cancel
        mean = 0.0
    # if the differences are equal up to rounding errors, the sign test is used
    if np.ptp(differences) <= 1e-12 * np.abs(differences).max():
        return Test(name, mean, float(np.copysign(np.inf, mean)), 0.5 ** (n - 1), n)
    error = np.sqrt(differences.var(ddof=1) * (1 / n + test_ratio))
    statistic = float(mean / error)
    return Test(name, mean, statistic, float(2 * stats.t.sf(abs(statistic), n - 1)), n)


def _differences(name: str, first: ArrayLike, second: ArrayLike) -> Array:
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise InvalidParameter(
            f"{name} needs two columns of at least two paired scores, not shapes {a.shape} and "
            f"{b.shape}."
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InvalidParameter(f"{name} needs finite scores. Leave out the pairs that failed.")
    return a - b


@dataclass(frozen=True, repr=False)
class Ranks:
    """Average ranks of methods, with tests for differences between them.

    Attributes
    ----------
    methods : tuple of str
        Names of the methods.
    ranks : array
        Average rank of each method. 1 is the best rank, and tied methods share their mean rank.
    n_rows : int
        Number of data sets or realizations.
    statistic, p_value : float
        Friedman's chi-squared statistic, corrected for ties, and its p-value.
    f_statistic, f_p_value : float
        Iman and Davenport's F statistic, which is less conservative, and its p-value.
    critical_difference : float
        Nemenyi's critical difference: methods whose average ranks differ by more than this differ
        significantly at ``level``.
    level : float
        Significance level of the critical difference.
    groups : tuple of tuple of str
        The largest sets of methods without significant differences, best first. They are the bars
        of a critical-difference diagram.

    Examples
    --------
    >>> friedman([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]]).groups
    (('method 0', 'method 1', 'method 2'),)
    """

    methods: tuple[str, ...]
    ranks: Array
    n_rows: int
    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    critical_difference: float
    level: float
    groups: tuple[tuple[str, ...], ...]

    def to_frame(self) -> Any:
        """Return a frame of the methods and their average ranks, best first."""
        order = np.argsort(self.ranks, kind="stable")
        return frame(
            {"method": [self.methods[i] for i in order], "rank": self.ranks[order].tolist()}
        )

    def __repr__(self) -> str:
        best = ", ".join(
            f"{self.methods[i]} {self.ranks[i]:.3g}" for i in np.argsort(self.ranks, kind="stable")
        )
        return (
            f"<Ranks: {best}; Friedman p = {self.p_value:.3g}, critical difference "
            f"{self.critical_difference:.3g}>"
        )


def friedman(
    scores: ArrayLike,
    methods: Sequence[str] | None = None,
    *,
    greater_is_better: bool = False,
    level: float = 0.05,
) -> Ranks:
    """Test by Friedman's test whether the methods have the same average rank.

    Nemenyi's critical difference between two average ranks is computed as well.

    Parameters
    ----------
    scores : array of shape (n_rows, n_methods)
        One row per data set. Rows should be independent, so do not use realizations of the same
        data set as rows.
    methods : list of str, optional
        Names of the methods.
    greater_is_better : bool, default=False
        Whether rank 1 is the greatest score.
    level : float, default=0.05
        Significance level of the critical difference.

    Returns
    -------
    Ranks

    References
    ----------
    Demšar (2006), Statistical comparisons of classifiers over multiple data sets.

    Examples
    --------
    >>> friedman([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]], ["a", "b", "c"])
    <Ranks: a 1.25, b 2, c 2.75; Friedman p = 0.105, critical difference 1.66>
    """
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2 or not np.isfinite(table).all():
        raise InvalidParameter(
            "friedman needs finite scores with at least two rows (data sets or realizations) and "
            f"two columns (methods), not shape {table.shape}."
        )
    n, k = table.shape
    names = tuple(f"method {i}" for i in range(k)) if methods is None else tuple(methods)
    if len(names) != k:
        raise InvalidParameter(f"friedman needs {k} names of methods, not {len(names)}.")
    ranked = stats.rankdata(-table if greater_is_better else table, axis=1)
    ranks = ranked.mean(axis=0)
    statistic = friedman_statistic(ranked)
    denominator = n * (k - 1) - statistic
    f = float("inf") if denominator <= 0 else (n - 1) * statistic / denominator
    difference = critical_difference(k, n, level=level)
    return Ranks(
        names,
        ranks,
        n,
        statistic,
        float(stats.chi2.sf(statistic, k - 1)),
        f,
        float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        difference,
        level,
        _groups(names, ranks, difference),
    )


def friedman_statistic(ranked: Array) -> float:
    """Return the chi-squared statistic of a table of ranks, corrected for ties.

    For n rows and k methods without ties, it is 12 n / (k (k + 1)) times the sum of squared
    deviations of the average ranks from (k + 1) / 2. To correct for ties, which lower the variance
    of the ranks, the statistic is divided by the actual variance. It is 0 if all scores are tied.
    """
    n, k = ranked.shape
    spread = float(((ranked.mean(axis=0) - (k + 1) / 2) ** 2).sum())
    variance = float(((ranked - (k + 1) / 2) ** 2).sum()) / (n * (k - 1))
    return 0.0 if variance == 0 else n * spread / variance


def critical_difference(n_methods: int, n_rows: int, *, level: float = 0.05) -> float:
    """Return the smallest difference in average ranks that is significant by Nemenyi's test.

    Parameters
    ----------
    n_methods, n_rows : int
        Number of methods and number of data sets.
    level : float, default=0.05
        Significance level.

    References
    ----------
    Nemenyi (1963), Distribution-free multiple comparisons.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    if n_methods < 2 or n_rows < 1 or not 0 < level < 1:
        raise InvalidParameter(
            "critical_difference needs at least two methods, one row and a level between 0 and 1, "
            f"not {n_methods}, {n_rows} and {level}."
        )
    q = stats.studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_rows)))


def _groups(names: tuple[str, ...], ranks: Array, limit: float) -> tuple[tuple[str, ...], ...]:
    """Return the largest groups of at least two methods within the critical difference."""
    order = np.argsort(ranks, kind="stable")
    groups: list[tuple[int, int]] = []
    for start in range(len(order)):
        within = np.flatnonzero(ranks[order] - ranks[order[start]] <= limit + 1e-12)
        end = int(within.max()) + 1
        if end - start > 1 and (not groups or end > groups[-1][1]):
            groups.append((start, end))
    return tuple(tuple(names[i] for i in order[start:end]) for start, end in groups)
