"""Columns that could stand in for a kept one."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis.plot.reading import ChosenUnits
from tamis.report.facts import Swap

#: Correlation from which a column is said to be able to replace another.
CLOSE = 0.7
#: How many of them are named.
NAMED = 3


def close_columns(units: ChosenUnits, kept: Sequence[int], r: Array) -> dict[int, list[Swap]]:
    """For each kept unit the closest ones that are not kept; ``r`` is a row for each of them."""
    found = {}
    for unit, line in zip(kept, r, strict=True):
        others = np.where(units.kept | np.isnan(line), -1.0, line)
        first = np.argsort(-others, kind="stable")[:NAMED]
        found[unit] = [Swap(int(j), float(others[j])) for j in first if others[j] >= CLOSE]
    return found


def tried_swaps(
    units: ChosenUnits, kept: Sequence[int], substitutes: Iterable[Any]
) -> dict[int, list[Swap]]:
    """The swaps that ``selection.substitutes`` tried, by kept unit.

    Names stand for units where they are known, indices where they are not.
    """
    place = {name: unit for unit, name in reversed(list(enumerate(units.names)))}
    found: dict[int, list[Swap]] = {unit: [] for unit in kept}
    for tried in substitutes:
        one, other = (_unit(place, given) for given in (tried.column, tried.substitute))
        if one in found and other is not None and len(found[one]) < NAMED:
            change = None if np.isnan(tried.loss_change) else float(tried.loss_change)
            found[one].append(Swap(other, float(tried.correlation), change, tried.stands_in))
    return found


def _unit(place: dict[str, int], given: Any) -> int | None:
    return place.get(given) if isinstance(given, str) else int(given)
