"""Ranking of methods by the results of an evaluation: :func:`standings`.

For every method, it reports the error at each number of columns, the best number of columns, the
smallest number that is about as good, an unbiased estimate of the error, and a test against the
best method.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis._frame import frame_of
from tamis.evaluation.results import Results
from tamis.evaluation.significance import Ranks, corrected_t, friedman, holm
from tamis.exceptions import InvalidParameter
from tamis.validation.resamples import error_of_mean
from tamis.validation.stability import Stability, stability


class Point(NamedTuple):
    """Mean score of a method at a number of columns, and the standard error of that mean."""

    size: int
    mean: float
    error: float


class Standing(NamedTuple):
    """Results of a method on a data set.

    Attributes
    ----------
    data, method : str
        Names of the data set and of the method.
    n_realizations, n_failed : int
        Number of realizations with scores, and number of failed realizations.
    curve : tuple of Point
        Mean score at each number of columns. Empty if the method chooses the number itself.
    size : float
        Number of columns with the best mean score. If the method chooses the number itself, the
        mean of the numbers that it chose.
    enough : float
        Smallest number of columns whose mean score differs from the best mean score by at most one
        standard error.
    mean, error : float
        Mean score and its standard error. Each realization is scored at the number of columns that
        is best in the other realizations.
    scores : dict of int to float
        Score in each realization.
    stability : Stability or None
        Stability of the columns selected at ``size``. None if it is undefined.
    seconds : float
        Median time of a fit, in seconds.
    p_value : float
        P-value of the corrected t-test against the best method, adjusted for all pairs. NaN for the
        best method itself.

    Examples
    --------
    >>> import tamis
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate, standings
    >>> methods = {name: tamis.recipe(name) for name in ("fisher-score", "correlation")}
    >>> plan, model = Realizations(3), RidgeClassifier()
    >>> results = evaluate(methods, load("wine"), plan, estimators=model, sizes=[2])
    >>> first = standings(results).rows[0]
    >>> first.method, first.size, round(first.mean, 3)
    ('fisher-score', 2.0, 0.124)
    """

    data: str
    method: str
    n_realizations: int
    n_failed: int
    curve: tuple[Point, ...]
    size: float
    enough: float
    mean: float
    error: float
    scores: Mapping[int, float]
    stability: Stability | None
    seconds: float
    p_value: float


class PairTest(NamedTuple):
    """Corrected t-test between two methods on the same data set."""

    data: str
    first: str
    second: str
    difference: float
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, repr=False)
class Standings:
    """Results of all methods on each data set.

    Attributes
    ----------
    metric : str
        Name of the metric.
    greater_is_better : bool
        Whether greater values of the metric are better.
    level : float
        Significance level for the critical difference between ranks.
    rows : tuple of Standing
        One row per data set and method, with the best method first and baselines last.
    pairs : tuple of PairTest
        Tests of every pair of methods on the same data set.
    ranks : Ranks or None
        Ranks over the data sets. They need at least two data sets, and at least two methods with
        scores on all data sets; otherwise None.

    Examples
    --------
    >>> import tamis
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate, standings
    >>> methods = {name: tamis.recipe(name) for name in ("fisher-score", "correlation")}
    >>> plan, model = Realizations(3), RidgeClassifier()
    >>> results = evaluate(methods, load("wine"), plan, estimators=model, sizes=[2])
    >>> [row.method for row in standings(results).of("wine")]
    ['fisher-score', 'correlation']
    """

    metric: str
    greater_is_better: bool
    level: float
    rows: tuple[Standing, ...]
    pairs: tuple[PairTest, ...]
    ranks: Ranks | None

    def of(self, data: str) -> list[Standing]:
        """Return the rows of a data set."""
        return [row for row in self.rows if row.data == data]

    def to_frame(self) -> Any:
        """Return a polars or pandas frame with one row per method and data set."""
        shown = [name for name in Standing._fields if name not in ("curve", "scores", "stability")]
        return frame_of(self.rows, shown)

    def __repr__(self) -> str:
        first = ", ".join(f"{row.method} {row.mean:.3g}" for row in self.rows[:5])
        return f"<Standings by {self.metric}: {first}{', ...' if len(self.rows) > 5 else ''}>"


def standings(
    results: Results,
    metric: str | None = None,
    *,
    baselines: Collection[str] = (),
    level: float = 0.05,
) -> Standings:
    """Rank the methods of an evaluation, and test their differences.

    The error at the best number of columns would be optimistic, because that number was chosen on
    the same rows. Each realization is therefore scored at the number of columns that is best in the
    other realizations.

    Parameters
    ----------
    results : Results
        Results of :func:`evaluate` with a single estimator, and with ``sizes`` given as numbers or
        ``"own"``.
    metric : str, optional
        Name of the metric. The default is the first metric.
    baselines : collection of str, default=()
        Methods that are tested and shown with the others, but not ranked. They cannot be the best.
    level : float, default=0.05
        Significance level for the critical difference between ranks.

    Returns
    -------
    Standings

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error. Holm (1979), A simple
    sequentially rejective multiple test procedure.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.criteria import FisherScore, KolmogorovSmirnov
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate, standings
    >>> from tamis.search import Ranking
    >>> methods = {"F": Ranking(FisherScore()), "KS": Ranking(KolmogorovSmirnov())}
    >>> results = evaluate(
    ...     methods, load("wine"), Realizations(5), estimators=RidgeClassifier(), sizes=[2, 4]
    ... )
    >>> standings(results)
    <Standings by error: F 0.0697, KS 0.0697>
    """
    measured = results.metric(metric, "standings")
    greater = measured.greater_is_better
    rows: list[Standing] = []
    pairs: list[PairTest] = []
    for data in results.data:
        tables = {
            method: _scores(results, data, method, measured.name) for method in results.methods
        }
        found = [
            _standing(results, data, method, table, greater)
            for method, table in tables.items()
            if table
        ]
        found.sort(key=lambda row: _sort_key(row, list(baselines), greater))
        tested = list(_pairs(found, results.test_ratio(data)))
        against_best = {pair.second: pair for pair in tested if pair.first == found[0].method}
        for row in found:
            pair = against_best.get(row.method)
            rows.append(row if pair is None else row._replace(p_value=pair.p_adjusted))
        pairs += tested
    ranks = _ranks(rows, results, baselines, greater, level)
    return Standings(measured.name, greater, level, tuple(rows), tuple(pairs), ranks)


def _sort_key(row: Standing, baselines: list[str], greater: bool) -> tuple[int, float]:
    """Return a sort key that orders methods by their means, with baselines last."""
    if row.method in baselines:
        return 1 + baselines.index(row.method), 0.0
    return 0, -row.mean if greater else row.mean


#: Scores by number of columns and realization. The key None means each method's own number.
Table = Mapping["int | None", Mapping[int, float]]


def _scores(results: Results, data: str, method: str, metric: str) -> Table:
    """Return the scores of a method by size and realization.

    Only the sizes with scores in the greatest number of realizations are included.
    """
    table: dict[int | None, dict[int, float]] = {}
    for (of_data, of_method, _, size), scores in results.cells(metric).items():
        if (of_data, of_method) == (data, method):
            table.setdefault(size, {}).update(scores)
    most = max(map(len, table.values()), default=0)
    return {size: table[size] for size in table if len(table[size]) == most}


def _standing(results: Results, data: str, method: str, table: Table, greater: bool) -> Standing:
    realizations = sorted(next(iter(table.values())))
    sizes = [size for size in table if size is not None]
    values = np.array([[scores[i] for scores in table.values()] for i in realizations])
    ratio = results.test_ratio(data)
    losses = -values if greater else values
    n = len(losses)
    by_others = [_best(np.delete(losses, i, axis=0) if n > 1 else losses) for i in range(n)]
    scored = values[np.arange(n), by_others]
    best = sizes[_best(losses)] if sizes else None
    outcomes = [t.outcome for t in results.tasks if t.method == method and t.data == data]
    own = float(np.mean([o.n_features if o.support is None else len(o.support) for o in outcomes]))
    curve = [Point(k, *_mean(values[:, i], ratio)) for i, k in enumerate(sizes)]
    failed = [f for f in results.failures if (f.method, f.data) == (method, data)]
    return Standing(
        data,
        method,
        len(realizations),
        len(failed),
        tuple(curve),
        own if best is None else float(best),
        own if best is None else float(sizes[_enough(losses, ratio)]),
        *_mean(scored, ratio),
        dict(zip(realizations, scored.tolist(), strict=True)),
        _stability(results, data, method, best),
        float(np.median(results.seconds(method, data))),
        float("nan"),
    )


def _mean(values: Array, ratio: float) -> tuple[float, float]:
    """Return the mean and its standard error, corrected for overlapping training sets."""
    with np.errstate(over="ignore", invalid="ignore"):  # scores may be infinite
        return float(values.mean()), error_of_mean(values, ratio)


def _best(losses: Array) -> int:
    """Return the index of the size with the lowest mean loss. ``losses`` has a column per size."""
    return int(np.argmin(losses.mean(axis=0)))


def _enough(losses: Array, ratio: float) -> int:
    """Return the index of the smallest size whose mean loss is within a standard error of the best.

    ``losses`` has one row per realization and one column per size, in ascending order. ``ratio`` is
    the number of test rows per training row.
    """
    best = _best(losses)
    for i in range(best):
        excess, error = _mean(losses[:, i] - losses[:, best], ratio)
        if excess <= error:
            return i
    return best


def _stability(results: Results, data: str, method: str, size: int | None) -> Stability | None:
    if not results.orders(method, data):
        return None
    try:
        return stability(results.supports(method, data, size))
    except InvalidParameter:  # all or no columns are selected, or there is one realization
        return None


def _pairs(rows: list[Standing], ratio: float) -> Iterator[PairTest]:
    """Yield a test for every pair of methods that share at least two realizations."""
    drafts = []
    for first, second in combinations(rows, 2):
        common = sorted(first.scores.keys() & second.scores.keys())
        a, b = ([one.scores[i] for i in common] for one in (first, second))
        if len(common) > 1 and np.isfinite([a, b]).all():
            drafts.append((first, second, corrected_t(a, b, ratio)))
    adjusted = holm([test.p_value for *_, test in drafts])
    for (first, second, test), p in zip(drafts, adjusted.tolist(), strict=True):
        names = first.data, first.method, second.method
        yield PairTest(*names, test.difference, test.p_value, p)


def _ranks(
    rows: list[Standing],
    results: Results,
    baselines: Collection[str],
    greater: bool,
    level: float,
) -> Ranks | None:
    means = {(row.data, row.method): row.mean for row in rows}
    methods = [
        method
        for method in results.methods
        if method not in baselines
        and all(np.isfinite(means.get((data, method), np.nan)) for data in results.data)
    ]
    if len(results.data) < 2 or len(methods) < 2:
        return None
    table = [[means[data, method] for method in methods] for data in results.data]
    return friedman(table, methods, greater_is_better=greater, level=level)
