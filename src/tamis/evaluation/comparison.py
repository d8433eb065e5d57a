"""Which methods differ by more than chance: :func:`compare`."""

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
#: Metrics that are means of losses over rows, and the losses.
OF_ROWS = {"error": "error", "mse": "squared", "brier": "squared"}


class Contrast(NamedTuple):
    """The reference against one other method, at one number of columns.

    Attributes
    ----------
    data, estimator : str
        Where.
    size : int or None
        Number of columns; None where each method has its own.
    reference, method : str
        Who.
    reference_mean, method_mean : float
        Their mean scores.
    p_value, p_adjusted : float
        Of the test, plain and adjusted for the number of contrasts.
    sign : str
        "+" where the reference wins and "-" where it loses, by the adjusted p-value.
    printed : str
        The convention of the literature: two decimals of the plain p-value and the sign by it.
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
    """Contrasts of a reference with every other method.

    Attributes
    ----------
    metric, test, reference : str
    contrasts : tuple of Contrast
    """

    metric: str
    test: str
    reference: str
    contrasts: tuple[Contrast, ...]

    def to_frame(self) -> Any:
        """One row per contrast, as polars or pandas frame."""
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
    """Test a method against every other, at every number of columns.

    P-values are adjusted by Holm's rule over all contrasts of the comparison.

    Parameters
    ----------
    results : Results
        Of :func:`evaluate`.
    reference : str, optional
        Name of the method that is compared with the others; by default the first.
    metric : str, optional
        By default the first.
    test : {"corrected t", "paired t", "wilcoxon", "rows"}
        The corrected t-test of Nadeau and Bengio allows for the overlap of the training parts; the
        paired t-test is the one usually printed; Wilcoxon's looks at ranks. "rows" is a paired
        t-test over rows, of which there are more than realizations (Bayle et al. 2020): it needs a
        cross-validation, ``evaluate(..., losses=True)`` and the metric error, mse or brier.
    level : float, default=0.05
        Level of the signs.

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
    contrasts, tests = [], []
    for (data, method, estimator, size), scores in cells.items():
        against = cells.get((data, reference, estimator, size), {})
        common = sorted(scores.keys() & against.keys())
        if method == reference or len(common) < 2:
            continue
        first, second = (np.array([of[i] for i in common]) for of in (against, scores))
        found = TESTS[test](first, second, results.test_ratio(data))
        sign = mark(found, greater_is_better=better, level=level)
        means = float(first.mean()), float(second.mean())
        printed = f"{found.p_value:.2f}{sign}"
        where = data, estimator, size, reference, method
        contrasts.append(Contrast(*where, *means, found.p_value, float("nan"), "", printed))
        tests.append(found)
    if not contrasts:
        raise InvalidParameter(
            f"compare needs another method than {reference} with at least two common realizations "
            f"of {measured.name}."
        )
    adjusted = holm([found.p_value for found in tests]).tolist()
    signs = [
        mark(replace(found, p_value=p), greater_is_better=better, level=level)
        for found, p in zip(tests, adjusted, strict=True)
    ]
    whole = [
        contrast._replace(p_adjusted=p, sign=sign)
        for contrast, p, sign in zip(contrasts, adjusted, signs, strict=True)
    ]
    return Comparison(measured.name, test, reference, tuple(whole))


def rank(
    results: Results, metric: str | None = None, *, size: int | None = None, level: float = 0.05
) -> Ranks:
    """Friedman's test over the data sets, by the mean of each method on each.

    Parameters
    ----------
    results : Results
        Over at least two data sets.
    metric : str, optional
        By default the first.
    size : int, optional
        Number of columns; by default the mean over all of a method's scores is taken.
    level : float, default=0.05
        Level of the critical difference.

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
    """Losses by row, the mean of each over the realizations that test it."""
    found: dict[Cell, list[RowLosses]] = {}
    for item in results.row_losses(OF_ROWS[metric]):
        size = item.size if item.rule == "given" else None
        found.setdefault((item.data, item.method, item.estimator, size), []).append(item.losses)
    if not found:
        raise InvalidParameter(
            "compare needs the losses of rows for test='rows', and the results have none. Write "
            "evaluate(..., losses=True), or test='corrected t'."
        )
    return {cell: _mean_of_rows(losses) for cell, losses in found.items()}


def _mean_of_rows(losses: list[RowLosses]) -> dict[int, float]:
    rows = np.concatenate([some.rows for some in losses])
    counts = np.bincount(rows)
    if len(set(counts[counts > 0])) > 1:
        raise InvalidParameter(
            "compare needs every row to be tested equally often for test='rows', as it is by a "
            f"whole CrossValidation; here it is {counts[counts > 0].min()} to {counts.max()} "
            "times. Use test='corrected t'."
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
