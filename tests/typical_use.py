"""Typical use of tamis, for type checkers: ``nox -s types`` runs mypy --strict and pyright on it.

The tests run it as well, so that the types that it claims are those at run time.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tamis
from tamis.choice import Knee
from tamis.contract import Record, Selection, SubsetCriterion
from tamis.criteria import FisherScore, Scatter
from tamis.evaluation import Realizations, evaluate
from tamis.exceptions import TamisError
from tamis.meta import Probes
from tamis.plot import ranking
from tamis.report import report
from tamis.search import FloatingForward, Forward, Ranking, Then
from tamis.svm import SVCPathCV
from tamis.table import TableSelector


class LinearFit(SubsetCriterion):
    """R² of a linear fit on the subset."""

    def __init__(self, ridge: float = 1e-9) -> None:
        self.ridge = ridge

    @property
    def monotone(self) -> bool:
        return False

    def _learn(
        self, X: NDArray[np.float64], y: NDArray[np.float64] | None, **params: object
    ) -> None:
        assert y is not None  # the criterion needs a target
        self._X, self._y = X - X.mean(axis=0), y - y.mean()

    def value(self, subset: NDArray[np.intp]) -> float:
        if len(subset) == 0:
            return 0.0
        X = self._X[:, self.columns(subset)]
        gram = X.T @ X + self.ridge * np.eye(X.shape[1])
        return float(self._y @ X @ np.linalg.solve(gram, X.T @ self._y) / (self._y @ self._y))


def first_steps(X: NDArray[np.float64], y: NDArray[np.int64], folder: Path) -> list[str]:
    """Select by name and by parts, save and resume, and return sentences."""
    selection = tamis.select(X, y, "mrmr", n_features_to_select=3)
    sentences: list[str] = [selection.summary(), selection.explain(0)]
    record: Record = selection.record_
    record.save(folder / "record.json")
    again: Record = Record.load(folder / "record.json")
    sentences += [again.expression, again.reason]

    method: Selection = tamis.recipe("svm-rfe", n_features_to_select=4)
    support: NDArray[np.bool_] = method.fit(X, y).support_
    names: NDArray[np.object_] = method.get_feature_names_out()
    sentences += [f"{support.sum()} columns", *map(str, names)]
    longer = Ranking(FisherScore(), n_features_to_select=2).fit(X, y)
    sentences.append(str(longer.resume(X, y, record=longer.record_).columns))
    return sentences


def parts(X: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, int]:
    """Combine criteria, searches and choices, and return the number of columns of each."""
    floating = FloatingForward(Scatter("J3"), n_features_to_select=5).fit(X, y)
    best: float = max(step.value for step in floating.trace_)
    sizes = {"floating": floating.n_features_, "own": 0, "steps": len(floating.trace_)}
    sizes["own"] = Forward(LinearFit(), n_features_to_select=2).fit(X, y).n_features_
    if best > 0:
        sizes["choice"] = Forward(Scatter("J3"), n_features_to_select=Knee()).fit(X, y).n_features_
    meta = Probes(Ranking(FisherScore()), random_state=0).fit(X, y)
    sizes["meta"] = len(meta.columns)
    sizes["columns"] = int(meta.transform(X).shape[1])
    return sizes


def compared(X: NDArray[np.float64], y: NDArray[np.int64], folder: Path) -> list[float]:
    """Compare two methods on held-out rows, and write a report of one of them."""
    search = Then(Ranking(FisherScore(), n_features_to_select=6), Forward(Scatter("J3")))
    results = evaluate(
        {"two steps": TableSelector(search), "mrmr": tamis.recipe("mrmr")},
        (X, y),
        Realizations(2),
        ["n_features", "seconds"],
        sizes="own",
    )
    selection = search.fit(X, y)
    report(selection, X, y).save(folder / "report.html")
    ranking(selection, 5).save(folder / "ranking.svg")
    return [float(value) for value in results.values("n_features", "mrmr").values()]


def tuned(X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Return the best C of a linear SVM."""
    try:
        search = SVCPathCV("linear", cv=3).fit(X, y)
    except TamisError as error:
        raise SystemExit(str(error)) from error
    return float(search.best_params_["C"])
