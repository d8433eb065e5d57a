"""A selection on built-in data, and an honest word on what it costs."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis.cli.output import check_place, write_ranking
from tamis.cli.printing import print_ranking, stderr, stdout, text
from tamis.cli.ranking import ranked_columns
from tamis.cli.running import run
from tamis.cli.trying import tried_out
from tamis.datasets import load
from tamis.recipes import recipe
from tamis.report import report, resampled, write_report
from tamis.spec import write
from tamis.table.target import LabelledTable

METHOD, N_FEATURES = "sffs-j3", 6


def run_demo(folder: Path) -> None:
    """Select, print, write, and compare the errors before and after."""
    check_place(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = _breast_cancer()
    selector = recipe(METHOD, n_features_to_select=N_FEATURES)
    selection = run(selector, data)
    ranking = ranked_columns(selection, data.names)
    path = folder / "ranking.csv"
    write_ranking(path, ranking, dict)
    print_ranking(
        ranking,
        [f"Breast cancer: {data}", f"{METHOD}: {write(selector)}"],
        rows=N_FEATURES,
    )
    console = stdout()
    with stderr().status("Cross-validating ..."):
        before, after = _errors(None, data), _errors(clone(selector), data)
    console.print("\nError of a support vector machine, with 3 times 5 folds:")
    for what, errors in (
        (f"all {len(data.names)} columns", before),
        (f"{N_FEATURES} columns", after),
    ):
        console.print(f"  {what:<15}{100 * errors.mean():5.1f} % ± {100 * errors.std():.1f}")
    console.print("The columns were selected anew in each fold, so both numbers are honest.\n")
    with stderr().status("Writing the page ..."):
        _write_page(folder / "report.html", selection, data)
    console.print("Next: tamis methods, tamis select YOUR.csv --target COLUMN")
    console.print(text(f"The ranking of all columns is in {path}"), soft_wrap=True)
    console.print(text(f"The page to look at is {folder / 'report.html'}"), soft_wrap=True)


def _write_page(path: Path, selection: Any, data: LabelledTable) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = resampled(selection, data.X, data.y)
    told = report(
        selection, data.X, data.y, results=results, source="Breast cancer", target=data.target,
        **tried_out(selection, data.X, data),
    )  # fmt: skip
    write_report(told, path)


def _breast_cancer() -> LabelledTable:
    X, y, columns, classes, *_ = load("wdbc")
    frame = pl.DataFrame(X, schema=columns.tolist())
    labels = np.asarray(classes)[y]
    return LabelledTable(frame, labels, "diagnosis", "classification")


def _errors(selector: Any, data: LabelledTable) -> np.ndarray:
    """Share of wrong answers in each fold; all that learns stands inside the pipeline."""
    assert isinstance(data.X, pl.DataFrame)
    steps = [StandardScaler(), *([] if selector is None else [selector]), SVC()]
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = cross_val_score(make_pipeline(*steps), data.X.to_numpy(), data.y, cv=folds)
    return 1 - scores
