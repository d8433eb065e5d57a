"""Selections on tables from four environments: the error in a fifth one.

    python -m benchmarks.environments --tables 50 --seed 0
    python -m benchmarks.environments hearts --tables 20

Three columns are stable parents of the target. The relation of three other columns to the target
flips or drifts between environments, and is reversed in the fifth. Each environment has 150 rows.
The error is the mean squared error of least squares on the selected columns, divided by the error
with the parents alone. With ``shift``, the correlations between columns also differ between
environments.

``hearts`` selects on two thirds of the heart patients of two hospitals, from the folder
``TAMIS_BENCH``. A logistic regression is trained on these patients of one hospital. It predicts the
remaining patients of the other hospital.
"""

import os
import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from benchmarks.costs import error as error_rate
from tamis.meta import ConditionalTest, HonestSize, InvariantSelection
from tamis.recipes import method
from tamis.table import TableSelector

ROWS, COLUMNS, ENVIRONMENTS = 150, 30, 4
PARENTS, UNSTABLE = np.array([3, 11, 19]), np.array([6, 14, 22])
#: Relation of the unstable columns to the target in the four environments.
RELATIONS = np.array([[1.5, 1.5, 1.5, -1.5], [1.0, 0.3, 2.0, 0.8], [1.5, -0.5, 1.0, 1.5]])


class Sites(NamedTuple):
    """A table from four environments, and rows of a fifth one."""

    X: np.ndarray
    y: np.ndarray
    environments: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def site(rng: np.random.Generator, relations: np.ndarray, mixing: np.ndarray, n: int) -> Any:
    """Return the rows of an environment."""
    X = rng.normal(size=(n, COLUMNS)) @ mixing
    y = X[:, PARENTS] @ [1.0, -1.0, 0.7] + rng.normal(size=n)
    X[:, UNSTABLE] = np.outer(y, relations) + rng.normal(size=(n, 3))
    return X, y


def make(rng: np.random.Generator, shift: bool) -> Sites:
    """Return a table. With ``shift``, correlations between columns differ by environment."""

    def mixing() -> np.ndarray:
        found = np.eye(COLUMNS)
        if shift:
            found[PARENTS[0], PARENTS[1:]] = rng.uniform(-1, 1, 2)
        return found

    parts = [site(rng, RELATIONS[:, e], mixing(), ROWS) for e in range(ENVIRONMENTS)]
    X_new, y_new = site(rng, np.array([-1.0, -1.0, -1.0]), mixing(), 2000)
    X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Sites(X, y, np.repeat(np.arange(ENVIRONMENTS), ROWS), X_new, y_new)


def mrmr(n: int) -> Any:
    """Return the search for ``n`` columns that all methods use."""
    return method(f"mrmr(n_features_to_select={n})")


def then_tested(table: Sites) -> np.ndarray:
    """Return the columns with equal slopes that also pass a conditional test."""
    search = InvariantSelection(mrmr(10), random_state=0)
    first = search.fit(table.X, table.y, environments=table.environments).get_support(indices=True)
    test = ConditionalTest(mrmr(len(first)), random_state=0)
    return first[test.fit(table.X[:, first], table.y).get_support(indices=True)]


WAYS: dict[str, Callable[[Sites], np.ndarray]] = {
    "all columns": lambda t: np.arange(COLUMNS),
    "mRMR, top 6": lambda t: mrmr(6).fit(t.X, t.y).get_support(indices=True),
    "HonestSize(mRMR)": lambda t: (
        HonestSize(mrmr(6), random_state=0).fit(t.X, t.y).get_support(indices=True)
    ),
    "equal slopes": lambda t: (
        InvariantSelection(mrmr(10), random_state=0)
        .fit(t.X, t.y, environments=t.environments)
        .get_support(indices=True)
    ),
    "equal slopes, then ConditionalTest": then_tested,
    "invariant subset": lambda t: (
        InvariantSelection(mrmr(12), how="subset", random_state=0)
        .fit(t.X, t.y, environments=t.environments)
        .get_support(indices=True)
    ),
}


def error(table: Sites, columns: np.ndarray) -> float:
    """Return the mean squared error of least squares in the fifth environment."""
    if not len(columns):
        return float(np.mean((table.y_new - table.y.mean()) ** 2))
    model = LinearRegression().fit(table.X[:, columns], table.y)
    return float(np.mean((model.predict(table.X_new[:, columns]) - table.y_new) ** 2))


def hospitals() -> pl.DataFrame:
    """Return the heart patients of both hospitals."""
    tables = {name: Path(os.environ["TAMIS_BENCH"], f"heart_{name}.parquet") for name in "ch"}
    parts = [
        pl.read_parquet(path)
        .rename({"cp": "chest_pain"}, strict=False)
        .with_columns(site=pl.lit(name))
        for name, path in tables.items()
    ]
    return pl.concat(parts)


def measure_hearts(n_splits: int, seed: int) -> None:
    """Print the columns that are selected, and the error rate in the other hospital."""
    table = hospitals()
    X, y, site = table.drop("target", "site"), table["target"].to_numpy(), table["site"].to_numpy()
    found: dict[str, list[tuple[list[str], float]]] = {}
    for index in range(n_splits):
        strata = np.char.add(site.astype(str), y.astype(str))
        train, test = train_test_split(
            np.arange(len(y)), test_size=1 / 3, stratify=strata, random_state=seed + index
        )
        lists = {"all columns": X.columns}
        for n in (5, 10):
            lists[f"mRMR, top {n}"] = TableSelector(mrmr(n)).fit(X[train], y[train]).columns
            equal = TableSelector(InvariantSelection(mrmr(n), random_state=0))
            equal.fit(X[train], y[train], environments=site[train])
            lists[f"mRMR, top {n}, equal slopes"] = equal.columns
        for name, columns in lists.items():
            errors = []
            for own in "ch":
                here, there = train[site[train] == own], test[site[test] != own]
                errors.append(error_rate(list(columns), X[here], y[here], X[there], y[there]))
            found.setdefault(name, []).append((list(columns), float(np.mean(errors))))
    for name, each in found.items():
        errors = [one[1] for one in each]
        counts = Counter(column for columns, _ in each for column in columns)
        kept = ", ".join(f"{column} {count}" for column, count in counts.most_common())
        print(
            f"{name:28} {len(each)} splits  error {np.mean(errors):.3f} ± "
            f"{np.std(errors) / np.sqrt(len(errors)):.3f}  "
            f"columns {np.mean([len(one[0]) for one in each]):.1f}: {kept}",
            flush=True,
        )


def main() -> None:
    """Print the errors of each method."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "tables_of", nargs="?", default="simulated", choices=["simulated", "hearts"]
    )
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    asked, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")
    if asked.tables_of == "hearts":
        measure_hearts(asked.tables, asked.seed)
        return
    for shift in (False, True):
        for name, way in WAYS.items():
            errors, recall, unstable = [], [], []
            for index in range(asked.tables):
                table = make(np.random.default_rng([asked.seed, index]), shift)
                columns = way(table)
                errors.append(error(table, columns) / error(table, PARENTS))
                recall.append(np.isin(PARENTS, columns).mean())
                unstable.append(np.isin(UNSTABLE, columns).sum())
            spread = np.std(errors) / np.sqrt(len(errors))
            print(
                f"{'shift' if shift else 'no shift':9} {name:36} {len(errors):3} tables  "
                f"error {np.mean(errors):.2f} ± {spread:.2f}  recall {np.mean(recall):.2f}  "
                f"unstable {np.mean(unstable):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
