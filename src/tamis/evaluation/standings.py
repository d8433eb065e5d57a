"""Where methods stand after an experiment: :func:`standings`.

Of every method the error against the number of columns, the best number and the smallest that is
hardly worse, the error with it, and whether it can be told from the best method.
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
from tamis.validation.stability import Stability, stability


class Point(NamedTuple):
    """The mean of a method's scores at one number of columns, and its standard error."""

    size: int
    mean: float
    error: float


class Standing(NamedTuple):
    """One method on one data set.

    Attributes
    ----------
    data, method : str
    n_realizations, n_failed : int
        Realizations that have scores, and those that failed.
    curve : tuple of Point
        Empty where the method decides itself how many columns it keeps.
    size : float
        The number of columns with the best mean; of a method that decides itself, the mean of what
        it kept.
    enough : float
        The smallest number whose loss against the best is within one standard error of that loss.
    mean, error : float
        Mean score and its standard error, each realization at the number of columns that is best on
        the others.
    scores : dict of int to float
        Those of the realizations.
    stability : Stability or None
        Of the columns chosen at ``size``; None where there is nothing to agree on.
    seconds : float
        Median time of a fit.
    p_value : float
        Of the corrected t-test against the best method, adjusted for all pairs; nan for the best.
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
    """Two methods on one data set, by the corrected t-test."""

    data: str
    first: str
    second: str
    difference: float
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, repr=False)
class Standings:
    """Where methods stand, data set by data set.

    Attributes
    ----------
    metric : str
    greater_is_better : bool
    level : float
    rows : tuple of Standing
        The best first on each data set, baselines last.
    pairs : tuple of PairTest
    ranks : Ranks or None
        Over the data sets, where there are two or more and two methods with scores on all.
    """

    metric: str
    greater_is_better: bool
    level: float
    rows: tuple[Standing, ...]
    pairs: tuple[PairTest, ...]
    ranks: Ranks | None

    def of(self, data: str) -> list[Standing]:
        """The rows of one data set."""
        return [row for row in self.rows if row.data == data]

    def to_frame(self) -> Any:
        """One row per method and data set, as polars or pandas frame."""
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
    """Where the methods of an experiment stand.

    The error at the best number of columns flatters, because that number was read off the same
    rows. So each realization is scored at the number that the others choose.

    Parameters
    ----------
    results : Results
        Of :func:`evaluate`, with one estimator, at given sizes or at what methods keep.
    metric : str, optional
        By default the first.
    baselines : collection of str
        Methods that are tested and shown with the others, but are neither called the best nor
        ranked.
    level : float, default=0.05
        Level of the critical difference of the ranks.

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
    """Methods by their means, then baselines as they are given."""
    if row.method in baselines:
        return 1 + baselines.index(row.method), 0.0
    return 0, -row.mean if greater else row.mean


#: Scores by number of columns and realization; None stands for what each realization kept.
Table = Mapping["int | None", Mapping[int, float]]


def _scores(results: Results, data: str, method: str, metric: str) -> Table:
    """The scores of a method, at the sizes that all of its realizations have."""
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
    kept = [o.n_features if o.support is None else len(o.support) for o in outcomes]
    own = float(np.mean(kept))
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
    """Mean, and its standard error with training parts that overlap; nan of a single value."""
    with np.errstate(over="ignore", invalid="ignore"):  # errors may be infinite
        if len(values) < 2:
            return float(values.mean()), float("nan")
        spread = float(values.std(ddof=1))
        return float(values.mean()), spread * float(np.sqrt(1 / len(values) + ratio))


def _best(losses: Array) -> int:
    """The column of least mean, the first of equals."""
    return int(np.argmin(losses.mean(axis=0)))


def _enough(losses: Array, ratio: float) -> int:
    """The first column whose mean excess over the best one is within its standard error."""
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
    except InvalidParameter:  # all or nothing was kept, or there is one selection
        return None


def _pairs(rows: list[Standing], ratio: float) -> Iterator[PairTest]:
    """Every pair of methods with two or more common realizations, the better first."""
    drafts = []
    for first, second in combinations(rows, 2):
        common = sorted(first.scores.keys() & second.scores.keys())
        a, b = ([one.scores[i] for i in common] for one in (first, second))
        if len(common) > 1 and np.isfinite([a, b]).all():
            found = corrected_t(a, b, ratio)
            drafts.append((first, second, found.difference, found.p_value))
    adjusted = holm([p for *_, p in drafts])
    for (first, second, difference, p), whole in zip(drafts, adjusted.tolist(), strict=True):
        yield PairTest(first.data, first.method, second.method, difference, p, whole)


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
