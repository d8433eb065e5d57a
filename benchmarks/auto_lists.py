"""The lists that Auto selects on public tables: test error, number of columns and time.

    python -m benchmarks.auto_lists choose --splits 2 --out lists.csv
    python -m benchmarks.auto_lists report --splits 2 --out lists.csv --before old.csv
    python -m benchmarks.auto_lists report --first 30 --splits 1 --out lists.csv --lightgbm

The tables are read from the folders in TAMIS_DATA and TAMIS_BENCH. The tables in ``choose`` may be
used to develop Auto, and those in ``report`` only to measure it. A split trains on two thirds of
the rows, at most 1500. ``--before`` compares with the results file of another version.
``--lightgbm`` compares with LightGBM, with all columns and with its first columns by gain. It gets
the number of columns of Auto's default list.
"""

import os
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from tamis.auto import Auto

CHOOSE = (
    "sonar", "wdbc", "heart", "german", "musk1", "boston", "auto_mpg", "segment", "waveform40",
    "colon", "vowel", "cpu_act", "kin8nm", "page_blocks", "autoprice",
)  # fmt: skip
REPORT = (
    "pima", "glass", "svmguide3", "triazines", "abalone", "splice", "madelon", "leukemia", "wine",
    "credit_a", "credit_g", "cmc", "elevators", "pollution", "plasma_retinol", "optdigits", "fried",
    "cal_housing", "hepatitis", "kr_vs_kp",
)  # fmt: skip
MOST_TRAINING, MOST_TEST = 1500, 3000
#: A number that is added to errors, so that ratios of errors near 0 are defined.
FLOOR = 0.02
#: Names of the lists of LightGBM.
LIGHTGBM = "lightgbm all", "lightgbm top k"


def load(name: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the columns as numbers, the target, and whether the target consists of classes."""
    path = Path(os.environ["TAMIS_DATA"]) / f"{name}.npz"
    if path.exists():
        with np.load(path) as held:
            return held["X"].astype(float), held["y"], "target_names" in held
    frame = pd.read_parquet(Path(os.environ["TAMIS_BENCH"]) / f"{name}.parquet")
    y = frame.pop("target")
    classes = not pd.api.types.is_numeric_dtype(y)
    numbers = frame.select_dtypes("number")
    numbers = numbers.fillna(numbers.median())
    others = frame.drop(columns=numbers.columns).astype(str)
    coded = [pd.get_dummies(others, drop_first=True)] if len(others.columns) else []
    X = pd.concat([numbers, *coded], axis=1).to_numpy(float)
    return X, (y.astype(str) if classes else y.astype(float)).to_numpy(), classes


def lists_of(auto: Auto) -> Iterator[tuple[str, list[int], Any]]:
    """Yield the name, the columns and the model of each list."""
    yield "default", auto.columns, auto.estimator_
    for name in ("best", "short"):
        found = getattr(auto, f"{name}_", None)
        if found is not None:
            yield name, list(found.columns), found.estimator


def lists_of_lightgbm(
    X: np.ndarray, y: np.ndarray, classes: bool, k: int
) -> Iterator[tuple[str, list[int], Any]]:
    """Yield all columns and the first ``k`` columns by gain, with the model of LightGBM."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if classes else LGBMRegressor
    model = kind(importance_type="gain", n_jobs=1, verbose=-1, random_state=0)
    by_gain = np.argsort(-model.fit(X, y).feature_importances_, kind="stable")
    yield LIGHTGBM[0], list(range(X.shape[1])), model
    if k:
        yield LIGHTGBM[1], sorted(by_gain[:k].tolist()), model


def measure(
    name: str, split: int, *, lightgbm: bool = False, **options: Any
) -> Iterator[dict[str, Any]]:
    """Yield the test error of each list on a split of a table."""
    X, y, classes = load(name)
    strata = y if classes else None
    n = min(MOST_TRAINING, 2 * len(y) // 3)
    parts = train_test_split(np.arange(len(y)), train_size=n, stratify=strata, random_state=split)
    train, test = parts[0], parts[1][:MOST_TEST]
    task = "classification" if classes else "regression"
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        auto = Auto(random_state=split, task=task, **options).fit(X[train], y[train])
        seconds = process_time() - start
        lists = list(lists_of(auto))
        if lightgbm:
            lists += lists_of_lightgbm(X[train], y[train], classes, len(auto.columns))
        for kind, columns, estimator in lists:
            base = y[train].mean() if not classes else pd.Series(y[train]).mode()[0]
            guess = np.full(len(test), base)
            if columns:
                model = clone(estimator).fit(X[np.ix_(train, columns)], y[train])
                guess = model.predict(X[np.ix_(test, columns)])
            reported = auto.error_.wrong
            if classes:
                error = float(np.mean(guess != y[test]))
            else:
                error = float(np.mean((guess - y[test]) ** 2) / np.var(y[test]))
                reported = 1 - auto.error_.r2
            yield {
                "table": name, "split": split, "list": kind, "rows": n, "error": error,
                "columns": len(columns), "reported": reported if kind == "default" else np.nan,
                "seconds": seconds,
            }  # fmt: skip


def compare(new: pd.DataFrame, old: pd.DataFrame) -> None:
    """Print the errors relative to another version: geometric means over tables."""
    of = ["table", "split"]
    before = old[old["list"] == "default"].set_index(of)
    for kind, found in new.groupby("list"):
        both = found.set_index(of).join(before, rsuffix="_before", how="inner")
        logs = np.log((both["error"] + FLOOR) / (both["error_before"] + FLOOR))
        by_table = logs.groupby("table").mean()
        error = by_table.std(ddof=1) / np.sqrt(len(by_table))
        columns = both.groupby("table")["columns"].mean()
        many = by_table[both.groupby("table")["rows"].first() >= 400]
        print(
            f"{kind:8} error relative to before {np.exp(by_table.mean()):.3f} ± {error:.3f}, "
            f"with 400 rows or more {np.exp(many.mean()):.3f}; columns: median "
            f"{columns.median():g}, mean {columns.mean():.1f} (before: "
            f"{both.groupby('table')['columns_before'].mean().median():g}); reported - test "
            f"{(both['reported'] - both['error']).mean():+.4f} (before "
            f"{(both['reported_before'] - both['error_before']).mean():+.4f}); processor time "
            f"{both['seconds'].sum():.0f} s (before {both['seconds_before'].sum():.0f} s)"
        )


def compare_lightgbm(found: pd.DataFrame) -> None:
    """Print the errors relative to LightGBM: geometric means over tables."""
    errors = found.pivot_table(index=["table", "rows"], columns="list", values="error")
    logs = np.log(errors + FLOOR)
    many = logs.index.get_level_values("rows") >= 400
    for peer in LIGHTGBM:
        for kind in ("best", "default", "short"):
            ratios = logs[kind] - logs[peer]
            parts = {"all": ratios, "400 rows or more": ratios[many], "fewer": ratios[~many]}
            for part, one in parts.items():
                print(
                    f"{kind:8} relative to {peer:15} {part:16} {np.exp(one.mean()):.3f} ± "
                    f"{one.sem():.3f} ({one.count()} tables)"
                )


def main() -> None:
    """Measure Auto on the tables of a group."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=("choose", "report"))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--lightgbm", action="store_true")
    parser.add_argument("--tables", nargs="*")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for split in range(given.first, given.first + given.splits):
        for name in given.tables or (CHOOSE if given.group == "choose" else REPORT):
            rows += measure(name, split, lightgbm=given.lightgbm)
            print(*(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
            pd.DataFrame(rows).to_csv(given.out, index=False)
    found = pd.DataFrame(rows)
    if given.lightgbm:
        compare_lightgbm(found)
    if given.before:
        old = pd.read_csv(given.before)
        compare(found, old)
        wide = found.pivot_table(index="table", columns="list", values=["error", "columns"])
        wide["before"] = old.groupby("table")["error"].mean()
        print(wide.round(3).to_string())


if __name__ == "__main__":
    main()
