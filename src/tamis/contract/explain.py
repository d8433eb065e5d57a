"""Why a column was kept or left out, in words; which ties decided it, and what is kept idly."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Subset, is_int, snapped
from tamis.contract.steps import BEST
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter


class Look(NamedTuple):
    """What one step thought of one unit."""

    step: int
    score: float
    rank: int
    n_candidates: int
    winners: Subset
    winning_score: float
    adding: bool

    @property
    def shortfall(self) -> float:
        """How far the score was from the one that won."""
        gap = self.winning_score - self.score
        return gap if self.adding else -gap


class Story:
    """A fitted selection, read for the sake of one unit."""

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
        """A unit by its name, or by its index."""
        return self.units.label(unit, self.names)

    def winners(self, units: Subset) -> str:
        """A few units by their names."""
        shown = [self.label(int(unit)) for unit in units[:2]]
        more = len(units) - len(shown)
        return " and ".join(shown) + (f" and {more} more" if more else "")

    def look(self, step: int, unit: int) -> Look | None:
        """What a step thought of the unit, None where it did not look or does not remember."""
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

    def tell(self, unit: int) -> str:
        """The whole story of one unit."""
        sentences = [self._verdict(unit)]
        mine = self.moves.unit == unit
        if unit in self.units.fixed:
            return " ".join([*sentences, "It is one of the fixed features, which always stay."])
        if self.counts_places:
            own = f"The {self.units.word}s are ordered, and none has a score of its own."
            return " ".join([*sentences, own])
        if not (self.trace.given_at >= 0).any():
            return " ".join([*sentences, self._only_subsets()])
        steps = self.moves.step[mine]
        for step, entered in zip(steps, self.moves.entered[mine], strict=True):
            sentences.append(self._move(unit, int(step), bool(entered)))
        if not len(steps):
            sentences += self._never_moved(unit)
        return " ".join(sentences)

    def _verdict(self, unit: int) -> str:
        n_kept, kept = int(self.support.sum()), bool(self.support[unit])
        said = f"{self.label(unit)} is {'' if kept else 'not '}among the {n_kept} of "
        said += f"{self.trace.n_units} that {self.name} keeps"
        if kept or (self.moves.unit == unit).any():
            said += f"; in its order it is number {np.flatnonzero(self.order == unit)[0] + 1}"
        return f"{said}."

    def _only_subsets(self) -> str:
        value = self.trace.values[self.chosen]
        worth = "" if np.isnan(value) else f", which is worth {value:.4g}"
        return (
            f"{self.name} values whole subsets, so that no {self.units.word} has a score of its "
            f"own; what it keeps is the best subset it found{worth}."
        )

    def _move(self, unit: int, step: int, entered: bool) -> str:
        at = self.trace[step]
        score = at.score[np.flatnonzero(at.moved == unit)[0]]
        if np.isnan(score):
            return f"Step {step + 1} {'brought' if entered else 'took'} it with a whole subset."
        if entered and step > self.chosen:
            said = f"It scored {score:.4g} and came in at step"
            if self.chosen < 0:
                return f"{said} {step + 1}; nothing was kept."
            last = self.trace[self.chosen]
            if not len(last.moved):  # the walk went on from what it began with
                return f"{said} {step + 1}, behind the subset that is kept."
            return (
                f"{said} {step + 1}; the last that was kept, {self.winners(last.moved)}, scored "
                f"{last.score[-1]:.4g}."
            )
        verb = "entered" if entered else "left"
        what = "scored" if entered else "cost"
        said = f"It {verb} at step {step + 1} of {len(self.trace)}, where it {what} {score:.4g}"
        return said + self._beside(step, entered) + "."

    def _beside(self, step: int, entered: bool) -> str:
        """Who was next, or who won although the scores are the same."""
        at = self.trace[step]
        rest = ~np.isin(at.scores.units, at.moved)
        text = ""
        if not rest.any() and entered and len(self.moves.unit) == len(self.trace):
            follower = np.flatnonzero(self.moves.step == step + 1)
            if len(follower):
                other = int(self.moves.unit[follower[0]])
                text = f"; next came {self.label(other)} with {self.moves.score[follower[0]]:.4g}"
        elif rest.any():
            other, score = at.scores.units[rest][0], at.scores.values[rest][0]
            among = self._among(len(at.scores.units))
            if entered:
                text = f", the best of {among}; next came {self.label(int(other))} with {score:.4g}"
            elif len(at.moved) == 1:
                text = (
                    f", the least of {among}; to remove {self.label(int(other))} would have cost "
                    f"{score:.4g}"
                )
        n_equal = at.scores.n_equal
        if n_equal > max(len(at.moved), 1):
            equals = f"{n_equal} {self.units.word}s were equal there"
            rule = "and the lowest index is kept"
            if self.opinion:
                rule = f"and the {self.opinion} decided, then the lowest index"
            text += f" ({equals}, {rule})"
        return text

    @staticmethod
    def _among(n_candidates: int) -> str:
        return f"{n_candidates}" if n_candidates < BEST else f"{BEST} or more"

    def _never_moved(self, unit: int) -> list[str]:
        looks = [look for step in range(len(self.trace)) if (look := self.look(step, unit))]
        n_looks = int(np.sum(self.trace.n_candidates > 0))
        given, at = self.trace.given[unit], int(self.trace.given_at[unit])
        if at < 0:
            return ["No step ever scored it."]
        if not looks:
            return [
                f"It never moved, and was never among the {BEST} best of a step; step {at + 1} was "
                f"the last to score it, with {given:.4g}."
            ]
        if not looks[0].adding:
            return [self._stayed(unit, looks[-1])]
        closest = int(np.argmin([look.shortfall for look in looks]))
        told = sorted({0, closest, len(looks) - 1})
        return [
            f"It was looked at in {n_looks} step(s) and never taken.",
            *(self._lost(looks[i], i == closest and len(looks) > 2) for i in told),
        ]

    def _stayed(self, unit: int, look: Look) -> str:
        return (
            f"It never left: when {self.winners(look.winners)} did at step {look.step + 1}, for "
            f"{look.winning_score:.4g}, to remove {self.label(unit)} would have cost "
            f"{look.score:.4g}."
        )

    def _lost(self, look: Look, closest: bool) -> str:
        where = (
            f"It came closest at step {look.step + 1}" if closest else f"At step {look.step + 1}"
        )
        joint = ", with" if closest else " it scored"
        return (
            f"{where}{joint} {look.score:.4g} ({look.rank} of {self._among(look.n_candidates)}), "
            f"where {self.winners(look.winners)} won with {look.winning_score:.4g}."
        )


def explained(selection: Any, column: Any, names: Sequence[str] | None = None) -> str:
    """Why a column of a fitted selection was kept or left out."""
    if names is None:
        names = selection.record_.feature_names
    unit = unit_index(type(selection).__name__, column, names, selection.units_)
    return belonging(column, unit, names, selection.units_) + Story(selection, names).tell(unit)


def belonging(column: Any, unit: int, names: Sequence[str] | None, units: Grouping) -> str:
    """A sentence that says to which group a column belongs, where it is not alone."""
    if unit not in units.names or column == units.names[unit]:
        return ""
    spoken = repr(column) if isinstance(column, str) else f"column {column}"
    return f"{spoken} belongs to the group {units.label(unit)}. "


def unit_index(name: str, column: Any, names: Sequence[str] | None, units: Grouping) -> int:
    """The unit of a column that was given by its name or its index, or of a group by its name."""
    for unit, group in units.names.items():
        if column == group:
            return unit
    return int(units.unit_of[column_index(name, column, names, units.n_columns)])


def column_index(name: str, column: Any, names: Sequence[str] | None, n_units: int) -> int:
    """Index of a column that was given by its name or its index."""
    if isinstance(column, str):
        if names is None or column not in names:
            known = "X had no names" if names is None else f"X has {', '.join(names[:5])}, ..."
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


def open_tie(selection: Any) -> str | None:
    """The first tie that decided what is kept, as a sentence; None where there is none."""
    trace: Trace = selection.trace_
    story = Story(selection, selection.record_.feature_names)
    tied = np.flatnonzero(trace.n_equal > np.maximum(trace.n_moved, 1))
    for step in tied[tied <= story.chosen]:
        at = trace[int(step)]
        same = _equals(story, int(step))
        other_side = same[story.support[same] != story.support[at.moved[-1]]]
        if len(other_side):
            break
    else:
        return None
    kept, left = at.moved[-1:], other_side
    if not story.support[at.moved[-1]]:
        kept, left = other_side, at.moved[-1:]
    return (
        f"{story.name}: at step {step + 1} of {len(trace)} {story.winners(kept)} and "
        f"{story.winners(left)} scored the same, {at.score[-1]:.4g}, and only the former is kept"
        f"{_breaker(story)}. Another criterion may tell them apart; "
        "trace_.n_equal counts the equals of every step."
    )


def idle_kept(selection: Any, criterion: Any) -> str | None:
    """The kept columns that tell nothing, as a sentence; None where there are none."""
    idle = getattr(criterion, "idle_", None)
    if idle is None or not (selection.unit_support_ & idle).any():
        return None
    kept, units = np.flatnonzero(selection.unit_support_ & idle), selection.units_
    some = ", ".join(units.names.get(int(unit), str(unit)) for unit in kept[:5])
    some += ", ..." if len(kept) > 5 else ""
    return (
        f"{type(selection).__name__} keeps {len(kept)} {'column(s)' if units.plain else 'unit(s)'} "
        f"that are constant or copies of others ({some}): they tell nothing. Ask for fewer "
        "features, or drop them."
    )


def _breaker(story: Story) -> str:
    """What broke a tie; of the parts of a composition each has a rule of its own."""
    if story.opinion:
        return f": the tie was broken by the {story.opinion}, then by the lowest index"
    return "" if story.composed else ": of equals the lowest index is"


def _equals(story: Story, step: int) -> Subset:
    """Units that had as much right to move as the last one that did."""
    at = story.trace[step]
    if not len(at.scores.units):  # one of many entries: those equal to it come right behind
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
