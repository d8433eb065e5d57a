"""Significance tests of a method against the others: :func:`compare` and :func:`rank`."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tamis._frame import frame_of
from tamis.evaluation.outcome import RowLosses
from tamis.evaluation.results import Cell, Results
from tamis.evaluation.significance import (
    Ranks,
    corrected_t,
    friedman,
    holm,
    mark,
    paired_t,
    wilcoxon,
)
from tamis.exceptions import InvalidParameter

TESTS = {
    "corrected t": corrected_t,
    "paired t": lambda first, second, ratio: paired_t(first, second),
    "wilcoxon": lambda first, second, ratio: wilcoxon(first, second),
    "rows": lambda first, second, ratio: paired_t(first, second),
}
#: Metrics that are means over rows, and the kind of row loss that each one averages.
OF_ROWS = {"error": "error", "mse": "squared", "brier": "squared"}


class Contrast(NamedTuple):
    """Comparison of the reference method with another method, at a given number of columns.

    Attributes
    ----------
    data, estimator : str
        Names of the data and of the estimator.
    size : int or None
        Number of columns, or None if each method chooses its own number.
    reference, method : str
        Names of the two methods.
    reference_mean, method_mean : float
        Mean scores of the reference and of the method.
    p_value, p_adjusted : float
        P-value of the test, before and after the adjustment for the number of contrasts.
    sign : str
        "+" if the reference is significantly better and "-" if it is significantly worse, by the
        adjusted p-value. Empty if the difference is not significant.
    printed : str
        Unadjusted p-value with two decimals, as in published tables. It is followed by "+" or "-"
        if this p-value is significant at ``level``.

    Examples
    --------
    >>> import tamis
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, compare, evaluate
    >>> methods = {name: tamis.recipe(name) for name in ("fisher-score", "correlation")}
    >>> plan, model = Realizations(3), RidgeClassifier()
    >>> results = evaluate(methods, load("wine"), plan, estimators=model, sizes=[2])
    >>> contrast = compare(results, "correlation").contrasts[0]
    >>> contrast.method, contrast.size, round(contrast.reference_mean, 3)
    ('fisher-score', 2, 0.124)
    """

    data: str
    estimator: str
    size: int | None
    reference: str
    method: str
    reference_mean: float
    method_mean: float
    p_value: float
    p_adjusted: float
    sign: str
    printed: str


@dataclass(frozen=True, repr=False)
class Comparison:
    """Comparison of a reference with every other method.

    Attributes
    ----------
    metric, test, reference : str
        Names of the metric, of the test and of the reference method.
    contrasts : tuple of Contrast
        One contrast for each other method and number of columns.

    Examples
    --------
    >>> import tamis
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, compare, evaluate
    >>> methods = {name: tamis.recipe(name) for name in ("fisher-score", "correlation")}
    >>> plan, model = Realizations(3), RidgeClassifier()
    >>> results = evaluate(methods, load("wine"), plan, estimators=model, sizes=[2])
    >>> compare(results, "correlation").to_frame().shape
    (1, 11)
    """

    metric: str
    test: str
    reference: str
    contrasts: tuple[Contrast, ...]

    def to_frame(self) -> Any:
        """Return a polars or pandas frame with one row per contrast."""
        return frame_of(self.contrasts, Contrast._fields)

    def __repr__(self) -> str:
        signs = [contrast.sign for contrast in self.contrasts]
        return (
            f"<Comparison of {self.reference} by {self.test} of {self.metric}: wins "
            f"{signs.count('+')}, loses {signs.count('-')} of {len(signs)}>"
        )


def compare(
    results: Results,
    reference: str | None = None,
    *,
    metric: str | None = None,
    test: str = "corrected t",
    level: float = 0.05,
) -> Comparison:
    """Test a method against every other method, at every number of columns.

    P-values are adjusted by Holm's rule over all contrasts of the comparison.

    Parameters
    ----------
    results : Results
        Results of :func:`evaluate`.
    reference : str, optional
        Name of the method that is compared with the others. The default is the first method.
    metric : str, optional
        Name of the metric. The default is the first metric.
    test : {"corrected t", "paired t", "wilcoxon", "rows"}, default="corrected t"
        "corrected t" is the test of Nadeau and Bengio, which accounts for overlapping training
        sets. "paired t" is common in publications. "wilcoxon" uses ranks. "rows" is a paired t-test
        over the rows instead of the realizations (Bayle et al. 2020). It needs a cross-validation,
        ``evaluate(..., losses=True)`` and the metric "error", "mse" or "brier".
    level : float, default=0.05
        Significance level. Differences with a smaller p-value get the sign "+" or "-".

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest, f_classif, mutual_info_classif
    >>> from sklearn.svm import SVC
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, compare, evaluate
    >>> methods = {"F": SelectKBest(f_classif), "MI": SelectKBest(mutual_info_classif)}
    >>> results = evaluate(methods, load("wine"), Realizations(5), estimators=SVC(), sizes=[2, 4])
    >>> compare(results, "F")
    <Comparison of F by corrected t of error: wins 0, loses 0 of 2>
    """
    measured = results.metric(metric, "compare")
    reference = results.methods[0] if reference is None else reference
    _check(results, reference, measured.name, test)
    better = measured.greater_is_better
    rows = test == "rows"
    cells = _cells_of_rows(results, measured.name) if rows else results.cells(measured.name)
    tests = []
    for (data, method, estimator, size), scores in cells.items():
        against = cells.get((data, reference, estimator, size), {})
        common = sorted(scores.keys() & against.keys())
        if method == reference or len(common) < 2:
            continue
        first, second = (np.array([of[i] for i in common]) for of in (against, scores))
        found = TESTS[test](first, second, results.test_ratio(data))
        means = float(first.mean()), float(second.mean())
        tests.append(((data, estimator, size, reference, method, *means), found))
    if not tests:
        raise InvalidParameter(
            f"compare needs another method than {reference} with at least two common realizations "
            f"of {measured.name}."
        )
    contrasts = []
    adjusted = holm([found.p_value for _, found in tests]).tolist()
    for (where, found), p in zip(tests, adjusted, strict=True):
        plain, sign = (
            mark(one, greater_is_better=better, level=level)
            for one in (found, replace(found, p_value=p))
        )
        printed = f"{found.p_value:.2f}{plain}"
        contrasts.append(Contrast(*where, found.p_value, p, sign, printed))
    return Comparison(measured.name, test, reference, tuple(contrasts))


def rank(
    results: Results, metric: str | None = None, *, size: int | None = None, level: float = 0.05
) -> Ranks:
    """Rank methods over several data sets by their mean scores, with Friedman's test.

    Parameters
    ----------
    results : Results
        Results of :func:`evaluate` on at least two data sets.
    metric : str, optional
        Name of the metric. The default is the first metric.
    size : int, optional
        Number of columns. By default, all scores of a method are averaged.
    level : float, default=0.05
        Significance level of the critical difference.

    Returns
    -------
    Ranks
    """
    measured = results.metric(metric, "compare")
    means: dict[tuple[str, str], list[float]] = {}
    for cell in results.means():
        if cell.metric == measured.name and size in (None, cell.size):
            means.setdefault((cell.data, cell.method), []).append(cell.mean)
    wanted = [[(data, method) for method in results.methods] for data in results.data]
    if missing := [pair for row in wanted for pair in row if pair not in means]:
        raise InvalidParameter(
            f"rank needs every method on every data set; {missing[0][1]} has no {measured.name} on "
            f"{missing[0][0]}."
        )
    table = np.array([[np.mean(means[pair]) for pair in row] for row in wanted])
    better = measured.greater_is_better
    return friedman(table, results.methods, greater_is_better=better, level=level)


def _cells_of_rows(results: Results, metric: str) -> dict[Cell, dict[int, float]]:
    """Return, for each cell, the mean loss of each row over the realizations that test it."""
    found: dict[Cell, list[RowLosses]] = {}
    for item in results.row_losses(OF_ROWS[metric]):
        size = item.size if item.rule == "given" else None
        found.setdefault((item.data, item.method, item.estimator, size), []).append(item.losses)
    if not found:
        raise InvalidParameter(
            "compare needs the loss of each row for test='rows', and these results have none. "
            "Write evaluate(..., losses=True), or test='corrected t'."
        )
    return {cell: _mean_of_rows(losses) for cell, losses in found.items()}


def _mean_of_rows(losses: list[RowLosses]) -> dict[int, float]:
    rows = np.concatenate([some.rows for some in losses])
    counts = np.bincount(rows)
    if len(set(counts[counts > 0])) > 1:
        raise InvalidParameter(
            "compare needs every row to be tested equally often for test='rows', as in a complete "
            f"CrossValidation, but rows are tested {counts[counts > 0].min()} to {counts.max()} "
            "times. Write test='corrected t'."
        )
    sums = np.bincount(rows, weights=np.concatenate([some.values for some in losses]))
    return {int(row): float(sums[row] / counts[row]) for row in np.flatnonzero(counts)}


def _check(results: Results, reference: str, metric: str, test: str) -> None:
    if reference not in results.methods:
        raise InvalidParameter(
            f"compare needs one of the methods {', '.join(results.methods)} as reference, not "
            f"{reference!r}."
        )
    if test not in TESTS:
        raise InvalidParameter(f"compare needs test as one of {', '.join(TESTS)}, not {test!r}.")
    if test == "rows" and metric not in OF_ROWS:
        raise InvalidParameter(
            f"compare needs a metric that is a mean over rows for test='rows' "
            f"({', '.join(OF_ROWS)}), not {metric!r}. Use test='corrected t'."
        )
