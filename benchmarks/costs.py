"""Selections within a price limit: held-out error, relative to an order that ignores prices.

    python -m benchmarks.costs --splits 8 --seed 0
    python -m benchmarks.costs heart --splits 40

Heart disease and Pima diabetes have the fees of Turney (1995). Four other tables have lognormal
prices, and prices with shared fees. Each split trains on two thirds of the rows. *Blind-skip*
follows the order of a search that ignores the prices, and skips columns that would exceed the
limit. The tables are read from the folders in ``TAMIS_DATA`` and ``TAMIS_BENCH``.
"""

import os
import warnings
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis import FeatureCosts
from tamis.choice import CostLimit
from tamis.criteria import Scatter
from tamis.search import BranchAndBound, Forward
from tamis.table import TableSelector
from tamis.table.encoder import TableEncoder

EMPTY = np.empty(0, dtype=np.intp)
LIMITS = ("10%", "25%", "50%")
#: Fees of the Ontario health insurance in Canadian dollars (Turney 1995).
EXERCISE = ["thalach", "exang", "oldpeak", "slope"]
HEART = FeatureCosts(
    {
        **dict.fromkeys(("age", "sex", "cp", "trestbps"), 1.0),
        **{"chol": 7.27, "fbs": 5.20, "restecg": 15.50, "ca": 100.90, "thal": 102.90},
        **{"thalach": 102.90, "exang": 87.30, "oldpeak": 87.30, "slope": 87.30},
    },
    shared={"blood": (2.10, ["chol", "fbs"]), "exercise": (86.30, EXERCISE)},
)
PIMA = FeatureCosts(
    {"glucose": 17.61, "insulin": 22.78},
    shared={"blood": (2.10, ["glucose", "insulin"])},
    default=1.0,
)
PIMA_COLUMNS = ("pregnant", "glucose", "pressure", "skin", "insulin", "mass", "pedigree", "age")


def load(name: str) -> tuple[pl.DataFrame, np.ndarray]:
    """Return a table and its target."""
    path = Path(os.environ["TAMIS_BENCH"], f"{name}.parquet")
    if path.exists():
        frame = pl.read_parquet(path)
        return frame.drop("target"), frame["target"].to_numpy()
    with np.load(Path(os.environ["TAMIS_DATA"], f"{name}.npz")) as held:
        X, y = held["X"], held["y"]
    names = PIMA_COLUMNS if name == "pima" else [f"x{j}" for j in range(X.shape[1])]
    return pl.DataFrame(np.asarray(X, dtype=float), schema=list(names)), y


def draw_costs(names: list[str], groups: bool, rng: np.random.Generator) -> FeatureCosts:
    """Return lognormal prices. With ``groups``, most columns are in groups of four with a fee."""
    price, shared = rng.lognormal(0, 1, len(names)), {}
    order = rng.permutation(len(names))
    for start in range(0, 3 * len(names) // 4, 4) if groups else ():
        members, fee = order[start : start + 4], float(rng.lognormal(1.5, 1))
        price[members] += fee
        shared[f"group {start}"] = (fee, [names[j] for j in members])
    prices = dict(zip(names, price.tolist(), strict=True))
    return FeatureCosts(prices, shared=shared or None)


def criterion() -> Scatter:
    """Return the criterion of all searches."""
    return Scatter("J2", ridge=1e-3)


def select(kind: str, X: pl.DataFrame, y: Any, costs: FeatureCosts, limit: Any) -> list[str]:
    """Return the columns that a strategy selects."""
    if kind in ("blind-prefix", "blind-skip"):
        search = TableSelector(Forward(criterion(), n_features_to_select=1.0, feature_costs=costs))
        order, prices = search.fit(X, y).order_, search.units_.prices
        within = CostLimit(limit).of(prices)
        units = within.fitting(order, EMPTY)
        if kind == "blind-prefix":
            fits = [within.affords(order[:k]) for k in range(1, len(order) + 1)]
            units = order[: int(np.sum(np.cumprod(fits)))]
        return [X.columns[j] for j in units]
    cls = BranchAndBound if kind == "exact" else Forward
    search = cls(criterion(), n_features_to_select=CostLimit(limit), feature_costs=costs)
    return list(TableSelector(search).fit(X, y).columns)


def error(columns: list[str], X: pl.DataFrame, y: Any, X_new: pl.DataFrame, y_new: Any) -> float:
    """Return the error rate of a logistic regression on held-out rows."""
    if not columns:
        labels, counts = np.unique(y, return_counts=True)
        return float(np.mean(y_new != labels[counts.argmax()]))
    encoder = TableEncoder(keep=columns)
    model = make_pipeline(encoder, StandardScaler(), LogisticRegression(max_iter=1000))
    return float(np.mean(model.fit(X[columns], y).predict(X_new[columns]) != y_new))


def splits(name: str, n_splits: int, seed: int) -> Any:
    """Yield training and test parts of a table."""
    X, y = load(name)
    for index in range(n_splits):
        rows = np.arange(len(y))
        train, test = train_test_split(rows, test_size=1 / 3, stratify=y, random_state=seed + index)
        yield X[train], y[train], X[test], y[test]


def measure_heart(n_splits: int, seed: int) -> None:
    """Print the errors on heart disease, and how often each exercise column is selected."""
    for limit in (34.0, 85.0, 102.0, 120.0, 200.0, 340.0):
        for kind in ("blind-prefix", "blind-skip", "cost-aware"):
            errors, bought = [], []
            for part in splits("heart_c", n_splits, seed):
                columns = select(kind, part[0], part[1], HEART, limit)
                errors.append(100 * error(columns, *part))
                bought.append([c in columns for c in (*EXERCISE, "ca", "thal")])
            mean, spread = np.mean(errors), np.std(errors) / np.sqrt(n_splits)
            shares = " ".join(f"{share:.2f}" for share in np.mean(bought, axis=0))
            print(f"${limit:<6g} {kind:12} {mean:5.1f} ± {spread:.1f} %   {shares}", flush=True)


def measure_all(n_splits: int, seed: int) -> None:
    """Print errors relative to blind-skip for each table and kind of prices."""
    others = ("wdbc", "sonar", "credit_g", "waveform")
    cases = [("heart_c", "fees"), ("pima", "fees")]
    cases += [(name, kind) for name in others for kind in ("lognormal", "groups")]
    kinds = ("blind-prefix", "cost-aware", "exact")
    ratios: dict[Any, list[float]] = {}
    for name, prices in cases:
        found: dict[Any, list[float]] = {}
        for index, part in enumerate(splits(name, n_splits, seed)):
            rng = np.random.default_rng([seed, index, len(name)])
            costs = {"heart_c": HEART, "pima": PIMA}.get(name)
            costs = costs or draw_costs(part[0].columns, prices == "groups", rng)
            for limit in LIMITS:
                for kind in ("blind-skip", *kinds):
                    if kind == "exact" and part[0].width > 18:
                        continue
                    columns = select(kind, part[0], part[1], costs, limit)
                    found.setdefault((kind, limit), []).append(error(columns, *part))
        for limit in LIMITS:
            blind = np.mean(found["blind-skip", limit])
            line = [f"{name:9} {prices:9} {limit:>3}  blind-skip {100 * blind:5.1f} %"]
            for kind in kinds:
                if (kind, limit) in found:
                    ratio = float(np.mean(found[kind, limit]) / blind)
                    ratios.setdefault((prices, kind, limit), []).append(ratio)
                    line.append(f"{kind} {ratio:.3f}")
            print("  ".join(line), flush=True)
    for (prices, kind, limit), each in ratios.items():
        spread = np.std(each) / np.sqrt(len(each))
        print(f"{prices:9} {kind:12} {limit:>3}: {np.mean(each):.3f} ± {spread:.3f}")


def main() -> None:
    """Print the errors."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="?", choices=("all", "heart"), default="all")
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    asked, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")
    (measure_heart if asked.which == "heart" else measure_all)(asked.splits, asked.seed)


if __name__ == "__main__":
    main()
