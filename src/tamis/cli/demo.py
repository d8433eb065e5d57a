"""``tamis demo``: a selection on built-in data, with the error before and after."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tamis._format import format_interval
from tamis.cli.folder import check_folder, ranking_sheet, replace_file, try_out
from tamis.cli.select import print_ranking
from tamis.cli.terminal import stderr, stdout, text
from tamis.datasets import load
from tamis.recipes import recipe
from tamis.report import report, resampled, write_report
from tamis.report.sheets import csv_text
from tamis.report.units import chosen_units
from tamis.spec import write
from tamis.table.target import LabelledTable

METHOD, N_FEATURES = "sffs-j3", 6


def run_demo(folder: Path) -> None:
    """Select columns, print and write the results, and compare the errors before and after."""
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    X, y, names, classes, *_ = load("wdbc")
    frame = pl.DataFrame(X, schema=names.tolist())
    data = LabelledTable(frame, np.asarray(classes)[y], "diagnosis", "classification")
    selector = recipe(METHOD, n_features_to_select=N_FEATURES)
    selection = selector.fit(frame, data.y)
    ranking = chosen_units(selection, data.names)
    replace_file(folder / "ranking.csv", csv_text(ranking_sheet(ranking)))
    heading = [f"Breast cancer: {data}", f"{METHOD}: {write(selector)}"]
    print_ranking(ranking, ranking.best_kept.tolist(), heading, N_FEATURES)
    status = stderr().status("Repeating the selection on resamples ...")
    with status, warnings.catch_warnings(action="ignore"):
        results = resampled(selection, frame, data.y)
        tried = try_out(selection, frame, data)
        page = report(
            selection, frame, data.y, results=results, source="Breast cancer", target=data.target,
            **tried,
        )  # fmt: skip
        write_report(page, folder / "report.html")
    console = stdout()
    errors: Any = page.errors
    console.print(f"\nHeld-out error of a linear SVM, over {len(results.tasks)} resamples:")
    for n, (value, error) in ((30, errors.whole), (N_FEATURES, errors.kept)):
        console.print(f"  {n:2} columns: {format_interval(value, error, decimals=1, unit=' %')}")
    console.print("The selection was repeated in each resample, on its training rows.\n")
    console.print("Next: tamis methods, tamis select YOUR.csv --target COLUMN")
    console.print(
        text(f"The ranking of all columns is in {folder / 'ranking.csv'}"), soft_wrap=True
    )
    console.print(text(f"The report is {folder / 'report.html'}"), soft_wrap=True)
