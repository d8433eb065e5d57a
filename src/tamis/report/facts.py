"""What a page says, as plain data: gathered in one place and drawn in another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, NamedTuple

from tamis._arrays import Array, Subset
from tamis.contract import Interaction
from tamis.plot.reading import ChosenUnits, CriterionCurve, ErrorCurve, MetricFormat, Walk
from tamis.plot.tuned import TunedCurve
from tamis.report.saving import Page


class Estimate(NamedTuple):
    """A number and its standard error, which may be NaN."""

    value: float
    error: float = float("nan")


@dataclass(frozen=True)
class Errors:
    """What is lost by keeping few columns, measured on rows that took no part in choosing them.

    Attributes
    ----------
    measure : MetricFormat
        In which all values are shown.
    kept, whole : Estimate
        With the columns kept; with all of them, None where that was not measured.
    guess : float or None
        Without columns.
    guess_word : str
        The class that is guessed, empty for a mean.
    lost : Estimate or None
        How much worse the kept columns are than all, compared resample by resample.
    r2 : Estimate or None
        Share of the variance that is explained, for a real target.
    machine : str
        What was trained, in words.
    how : str
        Which rows it was measured on, as a sentence.
    scores : tuple of NamedScore
        Other scores, such as AUC if a class is rare.
    """

    measure: MetricFormat
    kept: Estimate
    whole: Estimate | None
    guess: float | None
    guess_word: str
    lost: Estimate | None
    r2: Estimate | None
    machine: str
    how: str
    scores: "tuple[NamedScore, ...]" = ()


class NamedScore(NamedTuple):
    """A score with its name, next to that of the baseline; ``lost`` is what all columns gain."""

    name: str
    kept: Estimate
    guess: float
    lost: Estimate | None = None


@dataclass(frozen=True, repr=False)
class Agreement:
    """How far resamples agree on the columns.

    Attributes
    ----------
    index : Estimate
        Nogueira's measure: 0 is chance, 1 always the same.
    low, high : float
        Its interval.
    n : int
        Number of resamples.
    share : array of float
        Share of them that keep each unit.
    """

    index: float
    low: float
    high: float
    n: int
    share: Array

    @property
    def word(self) -> str:
        """High above 0.75, low below 0.4, as Nogueira, Sechidis and Brown read it."""
        return "high" if self.index > 0.75 else "low" if self.index < 0.4 else "middling"


class RankSpan(NamedTuple):
    """Rank of each unit over the resamples: median, and from the 10th to the 90th percentile."""

    median: Subset
    low: Subset
    high: Subset


class Swap(NamedTuple):
    """A column that says nearly the same as a kept one.

    ``change`` is how much the squared loss rises when it stands in for it, ``same`` whether that is
    within what is in doubt anyway; None where that was not tried.
    """

    unit: int
    r: float
    change: float | None = None
    same: bool | None = None


class Group(NamedTuple):
    """Rows whose values one line of a strip shows."""

    name: str
    n_rows: int


class Shape(NamedTuple):
    """Values of one group of rows, on a scale from 0 to 1.

    ``points`` are heights of a density on an even grid, positions of rows, or shares of levels.
    """

    median: float
    low: float
    high: float
    points: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Strip:
    """Values of a column, group by group.

    Attributes
    ----------
    kind : {"density", "ticks", "levels"}
    groups : tuple of int
        Which group each shape is of; -1 stands for all other rows.
    shapes : tuple of Shape
        Medians and quartiles are in the column's own units.
    span : (float, float)
        Values at the ends of the scale.
    levels : tuple of str
        Names of what ``points`` are shares of, for levels.
    words : str
        What there is to see.
    """

    kind: str
    groups: tuple[int, ...]
    shapes: tuple[Shape, ...]
    span: tuple[float, float]
    levels: tuple[str, ...]
    words: str


class EffectLine(NamedTuple):
    """What a model answers on average as a column rises.

    ``means`` has a row for each of ``values`` and a column for each of ``outputs``, which are
    classes, or 0 where there is one answer.
    """

    values: Array
    means: Array
    outputs: tuple[int, ...]
    words: str


class Care(NamedTuple):
    """A fact to know before the columns are used, and what follows from it."""

    fact: str
    consequence: str


@dataclass(frozen=True, repr=False)
class Report(Page):
    """All that a page says of a selection, as plain data.

    :func:`tamis.report.report` gathers it; ``save`` writes the page.

    Attributes
    ----------
    source, target, title : str or None
        Name of the table and of the target, and what stands in place of the heading.
    n_rows : int
    task : {"classification", "regression", "survival", "none"}
    made : date
    units : ChosenUnits
        What is kept, the order and the scores.
    descriptions : dict of str to str
        What columns are, by their names.
    reason : str
        Why so many, as the selection says it.
    finished : bool
        Whether the search came to its end.
    errors : Errors or None
        None where nothing was measured on unseen rows.
    curve : ErrorCurve or None
        Errors against the number of columns.
    values : CriterionCurve or None
        Values of the criterion against the number of columns, on the rows it was chosen by.
    agreement : Agreement or None
    ranks : RankSpan or None
    closest : (units, r)
        For each unit the kept one that is closest (-1 where none is), and the absolute correlation.
    between : array of shape (n_kept, n_kept)
        Absolute correlations of the kept units, best first.
    swaps : dict of int to list of Swap
        For each kept unit up to three that could replace it.
    groups : list of Group
        Lines of the strips.
    strips : dict of int to Strip
        Values of the first kept units.
    walk : Walk or None
    tuned : TunedCurve or None
    pairs : list of Interaction
        The strongest pairs of units, where the criterion looked at pairs.
    effects : dict of int to EffectLine
        What a model makes of the first kept columns; empty where none was given.
    model : str
        That model, in words.
    cares : list of Care
        What to know before the columns are used.
    details : list of (str, str)
        How it was computed.
    command : str or None
        What to write on a command line to get the same.
    """

    drawn_by: ClassVar[str] = "tamis.report.writing"

    source: str | None
    target: str | None
    title: str | None
    n_rows: int
    task: str
    made: date
    units: ChosenUnits
    descriptions: Mapping[str, str]
    reason: str
    finished: bool
    errors: Errors | None
    curve: ErrorCurve | None
    values: CriterionCurve | None
    agreement: Agreement | None
    ranks: RankSpan | None
    closest: tuple[Subset, Array]
    between: Array
    swaps: Mapping[int, Sequence[Swap]]
    groups: Sequence[Group]
    strips: Mapping[int, Strip]
    walk: Walk | None
    tuned: TunedCurve | None
    pairs: Sequence[Interaction] = field(default_factory=list)
    effects: Mapping[int, EffectLine] = field(default_factory=dict)
    model: str = ""
    cares: Sequence[Care] = field(default_factory=list)
    details: Sequence[tuple[str, str]] = field(default_factory=list)
    command: str | None = None

    @property
    def n_columns(self) -> int:
        """Number of columns there were."""
        return self.units.units.n_columns

    @property
    def kept(self) -> list[int]:
        """Units that are kept, best first."""
        return [int(unit) for unit in self.units.best_kept]

    @property
    def n_kept(self) -> int:
        """Number of columns that are kept."""
        return int(self.units.units.mask(self.units.kept).sum())

    def __repr__(self) -> str:
        return f"<Report: {self.n_kept} of {self.n_columns} columns>"


def plain(value: Any) -> float | None:
    """A number that JSON knows, or None."""
    number = float(value)
    return number if number == number and abs(number) != float("inf") else None
