"""Several methods at once: Friedman's test, Nemenyi's critical difference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from tamis._arrays import Array
from tamis._frame import frame
from tamis.evaluation.significance import columns_of
from tamis.exceptions import InvalidParameter


@dataclass(frozen=True, repr=False)
class Ranks:
    """Average ranks of methods, and which of them differ.

    Attributes
    ----------
    methods : tuple of str
    ranks : array
        Average rank of each method, 1 the best; equal scores share their ranks.
    n_rows : int
        Number of data sets or realizations.
    statistic, p_value : float
        Friedman's chi-squared statistic, corrected for ties, and its p-value.
    f_statistic, f_p_value : float
        Iman and Davenport's F, which is less conservative.
    critical_difference : float
        Nemenyi's: average ranks further apart differ at ``level``.
    level : float
    groups : tuple of tuple of str
        Largest sets of methods that cannot be told apart, best first: the bars of a
        critical-difference diagram.
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
        """Methods and their average ranks, best first."""
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
    """Friedman's test that all methods rank alike, and Nemenyi's critical difference.

    Parameters
    ----------
    scores : array of shape (n_rows, n_methods)
        One row per data set. Rows should be independent: realizations of one data set are not.
    methods : list of str, optional
        Names of the columns.
    greater_is_better : bool, default=False
        Whether rank 1 is the greatest score.
    level : float, default=0.05
        Level of the critical difference.

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
    table = columns_of(scores, "friedman")
    n, k = table.shape
    names = tuple(f"method {i}" for i in range(k)) if methods is None else tuple(methods)
    if len(names) != k:
        raise InvalidParameter(f"friedman needs {k} names of methods, not {len(names)}.")
    ranked = stats.rankdata(-table if greater_is_better else table, axis=1)
    ranks = ranked.mean(axis=0)
    statistic = friedman_statistic(ranked)
    denominator = n * (k - 1) - statistic
    f = float("inf") if denominator <= 0 else (n - 1) * statistic / denominator
    gap = critical_difference(k, n, level=level)
    return Ranks(
        names,
        ranks,
        n,
        statistic,
        float(stats.chi2.sf(statistic, k - 1)),
        f,
        float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        gap,
        level,
        _groups(names, ranks, gap),
    )


def friedman_statistic(ranked: Array) -> float:
    """Chi-squared statistic of a table of ranks, corrected for ties; 0 if all are tied.

    Without ties it is 12 n / (k (k + 1)) times the sum of squared deviations of the average ranks
    from (k + 1) / 2; ties shrink the variance of the ranks, by which it is divided.
    """
    n, k = ranked.shape
    spread = float(((ranked.mean(axis=0) - (k + 1) / 2) ** 2).sum())
    variance = float(((ranked - (k + 1) / 2) ** 2).sum()) / (n * (k - 1))
    return 0.0 if variance == 0 else n * spread / variance


def critical_difference(n_methods: int, n_rows: int, *, level: float = 0.05) -> float:
    """Least difference of average ranks that Nemenyi's test takes for real.

    Parameters
    ----------
    n_methods, n_rows : int
        How many methods were ranked, on how many data sets.
    level : float, default=0.05

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


def _groups(names: tuple[str, ...], ranks: Array, gap: float) -> tuple[tuple[str, ...], ...]:
    """Largest runs of neighbouring ranks within the critical difference, of at least two."""
    order = np.argsort(ranks, kind="stable")
    groups: list[tuple[int, int]] = []
    for start in range(len(order)):
        within = np.flatnonzero(ranks[order] - ranks[order[start]] <= gap + 1e-12)
        end = int(within.max()) + 1
        if end - start > 1 and (not groups or end > groups[-1][1]):
            groups.append((start, end))
    return tuple(tuple(names[i] for i in order[start:end]) for start, end in groups)
