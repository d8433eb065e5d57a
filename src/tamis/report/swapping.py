"""Columns that could stand in for a kept one, and what that would cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis._arrays import Array
from tamis.plot.reading import ChosenUnits
from tamis.report.facts import Swap

#: Correlation from which a column is said to be able to replace another.
CLOSE = 0.7
#: How many of them are named.
NAMED = 3
#: Rows on which swaps are tried at most, and kept columns of which they are.
ROWS, TRIED = 2000, 25


def close_columns(units: ChosenUnits, kept: Sequence[int], r: Array) -> dict[int, list[Swap]]:
    """For each kept unit the closest ones that are not kept; ``r`` is a row for each of them."""
    found = {}
    for unit, line in zip(kept, r, strict=True):
        others = np.where(units.kept | np.isnan(line), -1.0, line)
        first = np.argsort(-others, kind="stable")[:NAMED]
        found[unit] = [Swap(int(j), float(others[j])) for j in first if others[j] >= CLOSE]
    return found


def tried_swaps(
    swaps: Mapping[int, Sequence[Swap]],
    columns: Mapping[int, Array],
    kept: Sequence[int],
    y: NDArray[Any],
    estimator: Any,
) -> dict[int, list[Swap]]:
    """The same swaps with the change in error, in percentage points or units of the target.

    All rows were seen by the selection, so that the changes are to be compared, not quoted. Where
    the machine makes no error at all they tell nothing and are left out.
    """
    step = max(1, len(y) // ROWS)
    y = y[::step]
    base = np.column_stack([columns[unit] for unit in kept])[::step]
    losses = _losses(estimator, base, y)
    if not losses.any():
        return {unit: list(some) for unit, some in swaps.items()}
    place = {unit: k for k, unit in enumerate(kept)}
    found: dict[int, list[Swap]] = {}
    for unit, some in swaps.items():
        found[unit] = []
        for swap in some:
            other = base.copy()
            other[:, place[unit]] = columns[swap.unit][::step]
            change = _change(_losses(estimator, other, y), losses, is_classifier(estimator))
            found[unit].append(swap._replace(change=change[0], same=change[1]))
    return found


def _losses(estimator: Any, X: Array, y: NDArray[Any]) -> Array:
    """Loss of every row, predicted by a machine that was trained on others."""
    machine = make_pipeline(StandardScaler(), clone(estimator))
    answers = cross_val_predict(machine, X, y, cv=5)
    if is_classifier(estimator):
        return np.asarray(answers != y, dtype=float)
    return np.asarray((answers - y) ** 2, dtype=float)


def _change(new: Array, old: Array, classes: bool) -> tuple[float, bool]:
    """Change in percentage points, or of the root mean squared error; whether it may be chance."""
    difference = new - old
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    same = bool(abs(difference.mean()) <= error)
    if classes:
        return 100 * float(difference.mean()), same
    return float(np.sqrt(new.mean()) - np.sqrt(old.mean())), same
