"""Columns selected by gates and by LassoNet: accuracy at equal size, and processor seconds.

    python -m benchmarks.lassonet [--data sonar srbct] [--short]

Both sides select columns in the training rows of the same stratified folds. One network, trained on
these columns, measures each selection on the test fold. LassoNet ranks columns by the penalty at
which they leave its path. It uses its default schedule. With --short, it uses 200 and 50 iterations
and steps of 5 %. The data are read from the folder in TAMIS_DATA.
"""

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from tamis.neural import GateSelector, NetworkClassifier, PerClass

N_FOLDS = 5
SHORT = {"n_iters": (200, 50), "path_multiplier": 1.05}

#: Function that returns the columns for each requested size, from training rows and classes.
Chooser = Callable[[np.ndarray, np.ndarray], dict[int, np.ndarray]]


@dataclass(frozen=True)
class Task:
    """A data set, and the networks and selectors that are compared on it.

    Attributes
    ----------
    hidden : int
        Number of hidden units of every network.
    repeats : int
        Number of times that the folds are repeated.
    sizes : tuple of int
    gates : dict of str to GateSelector
    """

    hidden: int
    repeats: int
    sizes: tuple[int, ...]
    gates: dict[str, GateSelector]


TASKS = {
    "sonar": Task(
        hidden=15,
        repeats=2,
        sizes=(1, 2, 4, 6, 8, 10),
        gates={
            "gates, mu 4, lam 40": GateSelector(mu=4, lam=40),
            "gates by class, mu 4, lam 50": GateSelector(scope="class", mu=4, lam=50),
            "gates, auto": GateSelector(),
        },
    ),
    "srbct": Task(
        hidden=12,
        repeats=1,
        sizes=(4, 8, 16),
        gates={
            "gates, mu 10, lam 200": GateSelector(mu=10, lam=200),
            "gates by class, mu 1, lam 2000": GateSelector(
                n_features_to_select=PerClass(1), scope="class", mu=1, lam=2000
            ),
            "gates, auto": GateSelector(),
            "gates by class, auto": GateSelector(n_features_to_select=PerClass(1), scope="class"),
        },
    ),
}


def by_gates(gates: GateSelector, sizes: tuple[int, ...], hidden: int) -> Chooser:
    """Return a function that ranks columns by gates.

    With gates for each class, all classes have the same number of columns. One fit ranks the
    columns for all sizes. Penalty weights of "auto" are chosen for the largest size.
    """
    per_class = isinstance(gates.n_features_to_select, PerClass)

    def choose(X: np.ndarray, y: np.ndarray) -> dict[int, np.ndarray]:
        steps = {k: k // len(np.unique(y)) if per_class else k for k in sizes}
        most = max(steps.values())
        wanted = PerClass(most) if per_class else most
        fresh = clone(gates).set_params(
            n_features_to_select=wanted,
            network=NetworkClassifier(hidden, decay=0.01, combine="mean"),
            random_state=0,
        )
        trace = fresh.fit(X, y).trace_
        return {k: trace[step - 1].subset for k, step in steps.items()}

    return choose


def by_lassonet(sizes: tuple[int, ...], hidden: int, options: dict[str, Any]) -> Chooser:
    """Return a function that selects the columns that leave the path of LassoNet last."""
    from lassonet import LassoNetClassifier

    def choose(X: np.ndarray, y: np.ndarray) -> dict[int, np.ndarray]:
        path = LassoNetClassifier(
            hidden_dims=(hidden,), verbose=0, random_state=0, torch_seed=0, device="cpu", **options
        )
        path.path(scale(X), y)
        order = np.argsort(-path.feature_importances_.numpy(), kind="stable")
        return {k: order[:k] for k in sizes}

    return choose


def folds(task: Task, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of all repeats."""
    for repeat in range(task.repeats):
        yield from StratifiedKFold(N_FOLDS, shuffle=True, random_state=repeat).split(X, y)


def measure(task: Task, choosers: dict[str, Chooser], X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return mean accuracy, number of columns and seconds for each method and size.

    The seconds are measured for one ranking, which covers all sizes. The methods run alternately,
    so that other load affects all of them equally.
    """
    scoring = NetworkClassifier(task.hidden, combine="mean", random_state=0)
    parts = list(folds(task, X, y))
    found = np.zeros((len(parts), len(choosers), len(task.sizes), 3))
    for part, (train, test) in zip(found, parts, strict=True):
        for way, choose in zip(part, choosers.values(), strict=True):
            start = process_time()
            columns = choose(X[train], y[train])
            way[:, 2] = process_time() - start
            for cell, k in zip(way, task.sizes, strict=True):
                inputs = X[:, columns[k]]
                fitted = clone(scoring).fit(inputs[train], y[train])
                cell[:2] = fitted.score(inputs[test], y[test]), len(columns[k])
    return found.mean(axis=0)


def compare(name: str, X: np.ndarray, y: np.ndarray, schedule: dict[str, Any]) -> None:
    """Print, for each method, the accuracy at each size and the seconds of a selection."""
    task = TASKS[name]
    choosers = {
        title: by_gates(gates, task.sizes, task.hidden) for title, gates in task.gates.items()
    }
    choosers["LassoNet"] = by_lassonet(task.sizes, task.hidden, schedule)
    found = measure(task, choosers, X, y)
    print(f"{name}, {N_FOLDS} folds x {task.repeats}: accuracy in % (columns), seconds of one fold")
    print(f"  {'columns asked for':32s}" + "".join(f"{k:>13d}" for k in task.sizes) + "  seconds")
    for title, way in zip(choosers, found, strict=True):
        cells = (f"{100 * accuracy:6.1f} {f'({size:.1f})':>6s}" for accuracy, size, _ in way)
        print(f"  {title:32s}{''.join(cells)} {way[0, 2]:8.2f}", flush=True)


def main() -> None:
    """Compare on the available data; print a message if LassoNet or data are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--short", action="store_true", help="LassoNet on a coarser path")
    options = parser.parse_args()
    print("columns by gates and by LassoNet")
    if "TAMIS_DATA" not in os.environ:
        print("  no data: set TAMIS_DATA to the folder that has sonar.npz and srbct.npz")
        return
    if find_spec("lassonet") is None:
        print("  LassoNet is not installed: pip install lassonet")
        return
    import torch

    torch.set_num_threads(1)
    schedule = SHORT if options.short else {}
    for name in options.data:
        data = np.load(Path(os.environ["TAMIS_DATA"]) / f"{name}.npz")
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # closed classes, and where LassoNet's path starts
            compare(name, data["X"].astype(float), data["y"], schedule)


if __name__ == "__main__":
    main()
