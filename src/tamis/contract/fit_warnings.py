"""Warnings about a fitted selection: no column selected, ties, uninformative columns."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tamis._arrays import Subset, snapped
from tamis._format import shorten_list
from tamis.contract.explain import Story
from tamis.contract.trace import Trace
from tamis.exceptions import DegenerateData, NothingFound, TiedScores

#: The text of a warning, and its category.
FitWarning = tuple[str, type[Warning]]


def find_warnings(selection: Any, criterion: Any) -> Iterator[FitWarning]:
    """Yield the warnings that a finished fit gives."""
    if not selection.n_features_:
        name = type(selection).__name__
        yield f"{name} keeps no column: {selection.choice_.reason}", NothingFound
        return
    if tie := open_tie(selection):
        yield tie, TiedScores
    if idle := idle_kept(selection, criterion):
        yield idle, DegenerateData


def caller_level() -> int:
    """Return the ``stacklevel`` for a warning that points outside tamis and scikit-learn."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(("tamis.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    return level


def open_tie(selection: Any) -> str | None:
    """Return a sentence about the first tie that affected the selection, or None."""
    trace: Trace = selection.trace_
    story = Story(selection, selection.record_.feature_names)
    tied = np.flatnonzero(trace.n_equal > np.maximum(trace.n_moved, 1))
    for step in tied[tied <= story.chosen]:
        at = trace[int(step)]
        same = _tied_units(story, int(step))
        other_side = same[story.support[same] != story.support[at.moved[-1]]]
        if len(other_side):
            break
    else:
        return None
    selected, left = at.moved[-1:], other_side
    if not story.support[at.moved[-1]]:
        selected, left = other_side, at.moved[-1:]
    rule = "" if story.composed else ": ties go to the lowest index"
    if story.opinion:
        rule = f": the tie was broken by the {story.opinion}, then by the lowest index"
    return (
        f"{story.name}: at step {step + 1} of {len(trace)} {story.list_units(selected)} and "
        f"{story.list_units(left)} scored the same, {at.score[-1]:.4g}, and only the former is "
        f"selected{rule}. Another criterion may separate them; trace_.n_equal counts the ties of "
        "every step."
    )


def idle_kept(selection: Any, criterion: Any) -> str | None:
    """Return a sentence about selected columns that are constant or duplicates, or None."""
    idle = getattr(criterion, "idle_", None)
    if idle is None or not (selection.unit_support_ & idle).any():
        return None
    kept, units = np.flatnonzero(selection.unit_support_ & idle), selection.units_
    names = shorten_list([units.names.get(int(unit), unit) for unit in kept])
    return (
        f"{type(selection).__name__} selects {len(kept)} "
        f"{'column(s)' if units.plain else 'unit(s)'} that are constant or duplicates of others "
        f"({names}), which add no information. Ask for fewer features, or drop them."
    )


def _tied_units(story: Story, step: int) -> Subset:
    """Return the units that stayed at a step although they tied with the last unit that moved."""
    at = story.trace[step]
    if not len(at.scores.units):  # in a ranking, tied units directly follow each other
        here = int(np.flatnonzero(story.moves.step == step)[0])
        behind: Subset = story.moves.unit[here + 1 : here + at.scores.n_equal]
        return behind
    stayed = ~np.isin(at.scores.units, at.moved)
    others, scores = at.scores.units[stayed], at.scores.values[stayed]
    if len(at.moved) == 1:
        return others[: at.scores.n_equal - 1]
    cut = snapped(np.append(scores, at.score[-1]))
    equal: Subset = others[cut[:-1] == cut[-1]]
    return equal
