"""Explanations of why a column was selected or left out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Subset, is_int
from tamis._format import shorten_list
from tamis.contract.steps import BEST
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter


class Look(NamedTuple):
    """The score of a unit at a step, together with the score of the unit that moved instead."""

    step: int
    score: float
    rank: int
    n_candidates: int
    winners: Subset
    winning_score: float
    adding: bool

    @property
    def shortfall(self) -> float:
        """Absolute difference between the score and the winning score."""
        difference = self.winning_score - self.score
        return difference if self.adding else -difference


class Story:
    """Explains, from the search path of a fitted selection, what happened to a unit.

    A unit is a column, or a group of columns that is selected as one.
    """

    def __init__(self, selection: Any, names: Sequence[str] | None):
        self.name = type(selection).__name__
        self.trace: Trace = selection.trace_
        self.support, self.order = selection.unit_support_, selection.order_
        self.chosen, self.names = selection.record_.chosen, names
        self.moves = self.trace.moves()
        self.units: Grouping = selection.units_
        self.opinion: str = getattr(getattr(selection, "criterion", None), "opinion", "")
        self.composed = bool(selection.record_.parts)
        self.counts_places = bool(selection.counts_places)

    def label(self, unit: int) -> str:
        """Return the name of a unit, or its index."""
        return self.units.label(unit, self.names)

    def list_units(self, units: Subset) -> str:
        """Return the names of the first two units and the number of further units, as text."""
        shown = [self.label(int(unit)) for unit in units[:2]]
        more = len(units) - len(shown)
        return " and ".join(shown) + (f" and {more} more" if more else "")

    def look(self, step: int, unit: int) -> Look | None:
        """Return the score of a unit at a step, or None if no score is recorded."""
        at = self.trace[step]
        index = np.flatnonzero(at.scores.units == unit)
        if not len(index) or not len(at.moved):
            return None
        best = int(np.nanargmax(at.score if at.entered[0] else -at.score))
        return Look(
            step,
            float(at.scores.values[index[0]]),
            int(index[0]) + 1,
            len(at.scores.units),
            at.moved,
            float(at.score[best]),
            bool(at.entered[0]),
        )

    def explain(self, unit: int) -> str:
        """Return the explanation for a unit."""
        sentences = [self._verdict(unit)]
        mine = self.moves.unit == unit
        if unit in self.units.fixed:
            sentences.append("It is one of the fixed features, which are always selected.")
        elif self.counts_places:
            sentences.append(f"The {self.units.word}s are only ranked, so none has a score.")
        elif not (self.trace.given_at >= 0).any():
            sentences.append(self._only_subsets())
        elif not mine.any():
            sentences += self._never_moved(unit)
        else:
            moves = zip(self.moves.step[mine], self.moves.entered[mine], strict=True)
            sentences += [self._move(unit, int(step), bool(entered)) for step, entered in moves]
        return " ".join(sentences)

    def _verdict(self, unit: int) -> str:
        selected = bool(self.support[unit])
        text = f"{self.label(unit)} is {'' if selected else 'not '}among the "
        text += f"{int(self.support.sum())} of {self.trace.n_units} {self.units.word}s that "
        text += f"{self.name} selects"
        if selected or (self.moves.unit == unit).any():
            text += f"; its rank is {np.flatnonzero(self.order == unit)[0] + 1}"
        return f"{text}."

    def _only_subsets(self) -> str:
        value = self.trace.values[self.chosen]
        worth = "" if np.isnan(value) else f", with a value of {value:.4g}"
        return (
            f"{self.name} scores subsets, so no {self.units.word} has a score of its own; it "
            f"selects the best subset that it found{worth}."
        )

    def _move(self, unit: int, step: int, entered: bool) -> str:
        at = self.trace[step]
        score = at.score[np.flatnonzero(at.moved == unit)[0]]
        verb = "added" if entered else "removed"
        if np.isnan(score):
            return f"Step {step + 1} {verb} it together with other {self.units.word}s."
        if entered and step > self.chosen:
            text = f"It scored {score:.4g} and was added at step {step + 1}"
            if self.chosen < 0:
                return f"{text}; nothing was selected."
            last = self.trace[self.chosen]
            if not len(last.moved):  # the selected subset is the one that the search started with
                return f"{text}, after the selected subset."
            return (
                f"{text}; the last one selected, {self.list_units(last.moved)}, scored "
                f"{last.score[-1]:.4g}."
            )
        text = f"It was {verb} at step {step + 1} of {len(self.trace)}, "
        text += f"with a {'score' if entered else 'loss'} of {score:.4g}"
        return text + self._rivals(step, entered) + "."

    def _rivals(self, step: int, entered: bool) -> str:
        """Describe the next best unit of a step, and the units that were tied."""
        at = self.trace[step]
        rest = ~np.isin(at.scores.units, at.moved)
        text = ""
        if not rest.any() and entered and len(self.moves.unit) == len(self.trace):
            follower = np.flatnonzero(self.moves.step == step + 1)
            if len(follower):
                other = int(self.moves.unit[follower[0]])
                score = self.moves.score[follower[0]]
                text = f"; the next best was {self.label(other)} with {score:.4g}"
        elif rest.any():
            other, score = at.scores.units[rest][0], at.scores.values[rest][0]
            among = self._among(len(at.scores.units))
            rival = f"{self.label(int(other))} with {score:.4g}"
            if entered:
                text = f", the best of {among}; the next best was {rival}"
            elif len(at.moved) == 1:
                text = f", the smallest of {among}; the next smallest was {rival}"
        if at.scores.n_equal > max(len(at.moved), 1):
            rule = f"the {self.opinion} decided, then the lowest index" if self.opinion else ""
            rule = rule or "the lowest index is selected"
            text += f" ({at.scores.n_equal} {self.units.word}s were tied; {rule})"
        return text

    @staticmethod
    def _among(n_candidates: int) -> str:
        return f"{n_candidates}" if n_candidates < BEST else f"{BEST} or more"

    def _never_moved(self, unit: int) -> list[str]:
        looks = [look for step in range(len(self.trace)) if (look := self.look(step, unit))]
        n_looks = int(np.sum(self.trace.n_candidates > 0))
        given, at = self.trace.given[unit], int(self.trace.given_at[unit])
        if at < 0:
            return ["No step scored it."]
        if not looks:
            return [
                f"It was never among the {BEST} best of a step; its last score was {given:.4g}, at "
                f"step {at + 1}."
            ]
        if not looks[0].adding:
            last = looks[-1]
            return [
                f"It was never removed: step {last.step + 1} removed "
                f"{self.list_units(last.winners)} with a loss of {last.winning_score:.4g}, "
                f"compared with {last.score:.4g} for {self.label(unit)}."
            ]
        closest = int(np.argmin([look.shortfall for look in looks]))
        shown = sorted({0, closest, len(looks) - 1})
        return [
            f"It was scored in {n_looks} step(s) and never added.",
            *(self._lost(looks[i], i == closest and len(looks) > 2) for i in shown),
        ]

    def _lost(self, look: Look, closest: bool) -> str:
        start = "It came closest at" if closest else "At"
        verb = ", with" if closest else " it scored"
        return (
            f"{start} step {look.step + 1}{verb} {look.score:.4g} (rank {look.rank} of "
            f"{self._among(look.n_candidates)}); {self.list_units(look.winners)} won with "
            f"{look.winning_score:.4g}."
        )


def explained(selection: Any, column: Any, names: Sequence[str] | None = None) -> str:
    """Explain why a column of a fitted selection was selected or left out."""
    if names is None:
        names = selection.record_.feature_names
    unit = unit_index(type(selection).__name__, column, names, selection.units_)
    text = Story(selection, names).explain(unit)
    groups = selection.units_.names
    if unit not in groups or column == groups[unit]:
        return text
    label = repr(column) if isinstance(column, str) else f"column {column}"
    return f"{label} belongs to the group {groups[unit]!r}. {text}"


def unit_index(name: str, column: Any, names: Sequence[str] | None, units: Grouping) -> int:
    """Return the unit index of a column (given by name or index) or of a group (given by name)."""
    for unit, group in units.names.items():
        if column == group:
            return unit
    return int(units.unit_of[column_index(name, column, names, units.n_columns)])


def column_index(name: str, column: Any, names: Sequence[str] | None, n_units: int) -> int:
    """Return the index of a column that is given by name or index."""
    if isinstance(column, str):
        if names is None or column not in names:
            known = "X had no names" if names is None else f"X has {shorten_list(names)}"
            raise InvalidParameter(
                f"{name}.explain needs the name or the index of a column, not {column!r}: {known}"
            )
        return list(names).index(column)
    if not (is_int(column) and -n_units <= column < n_units):
        raise InvalidParameter(
            f"{name}.explain needs an index below {n_units}, the number of columns, or a name, "
            f"not {column!r}."
        )
    return int(column) % n_units
