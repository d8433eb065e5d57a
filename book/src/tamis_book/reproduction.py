"""A reproduced experiment: the cells of its table, computed from the scores of its parts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm

from tamis._frame import frame_of
from tamis.evaluation import Results, mark, paired_t, stability
from tamis.exceptions import TamisError
from tamis_book.cells import COMPARED, MARKS, Cell, agreement_range, mark_cell, win_of
from tamis_book.experiment import Experiment, Part, unsound_mark


@dataclass(frozen=True, repr=False)
class Reproduction:
    """A reproduced experiment.

    Attributes
    ----------
    experiment : Experiment
        The experiment that was run.
    cells : tuple of Cell
        The numbers of the table.
    missing : tuple of str
        Sentences about methods and tables that are not available.
    settings : tuple of str
        Hyper-parameters that were tuned.
    results, baselines : dict of str to Results
        All scores of the methods, and of the baselines, by part.
    remarks : tuple of str
        Sentences about methods that selected nothing in some of the realizations.

    Examples
    --------
    >>> from tamis_book import Cell, Reproduction, read
    >>> hits = Cell("100", "FisherS", None, 4, 0.5, 0, 1, 30, published=2, mark="=")
    >>> Reproduction(read("thesis-3.2"), (hits,), ()).counts()
    {'=': 1}
    """

    experiment: Experiment
    cells: tuple[Cell, ...]
    missing: tuple[str, ...]
    settings: tuple[str, ...] = ()
    results: Mapping[str, Results] = field(default_factory=dict, compare=False)
    remarks: tuple[str, ...] = ()
    baselines: Mapping[str, Results] = field(default_factory=dict, compare=False)

    def counts(self) -> dict[str, int]:
        """Return the number of cells with each mark."""
        marks = [cell.mark for cell in self.cells if cell.mark]
        return {mark: marks.count(mark) for mark in MARKS if mark in marks}

    def tally(self) -> Counter[str]:
        """Count agreements, placebos and wins.

        The counts of several experiments can be added. The keys are:

        * the marks of cells, and "all =", "all +", "all -" for cells with all columns;
        * "placebos" and "placebos =": pairs of our number and the published number of another
          method at the same part and size, and those that agree;
        * "far": pairs whose two published numbers differ by more than the comparison tolerates;
          "far placebos =": those of them that agree; "far =": those of them in which our number
          agrees with its own published number;
        * "kept", "lost", "reversed": published significant differences from the reference that are
          significant in our results too, are not significant, and have the opposite sign.
        """
        counts: Counter[str] = Counter()
        rows: dict[tuple[str, int | None], list[Cell]] = {}
        for cell in self.cells:
            compared = cell.mark in COMPARED
            if cell.mark:
                counts["all " * (compared and cell.all_columns) + cell.mark] += 1
            if compared and not cell.all_columns:
                rows.setdefault((cell.part, cell.size), []).append(cell)
            if compared and (win := win_of(cell)) is not None:
                counts[win] += 1
        for cells in rows.values():
            for cell in cells:
                low, high = agreement_range(self.experiment, cell)
                for other in cells:
                    if other is not cell and None not in (cell.published, other.published):
                        counts.update(self._placebo(cell, other, (high - low) / 2))
        return counts

    def _placebo(self, cell: Cell, other: Cell, reach: float) -> Counter[str]:
        """Compare our number with the published number of another method."""
        assert cell.published is not None
        assert other.published is not None
        agree = mark_cell(self.experiment, cell, other.published) == "="
        counts = Counter({"placebos": 1, "placebos =": agree})
        if abs(cell.published - other.published) > reach:
            counts.update({"far": 1, "far placebos =": agree, "far =": cell.mark == "="})
        return counts

    @property
    def parts(self) -> list[str]:
        """Names of the parts that were computed."""
        return list(dict.fromkeys(cell.part for cell in self.cells))

    @property
    def is_published(self) -> bool:
        """Whether any of the numbers has a published counterpart."""
        return any(cell.published is not None for cell in self.cells)

    def to_frame(self) -> Any:
        """Return a polars or pandas frame with one row per cell."""
        return frame_of(self.cells, Cell._fields)

    def __repr__(self) -> str:
        counted = ", ".join(f"{n} {mark}" for mark, n in self.counts().items()) or "nothing"
        return f"<Reproduction of {self.experiment.name}: {counted}>"


def tabulate(
    experiment: Experiment,
    results: Mapping[str, Results],
    baselines: Mapping[str, Results],
    *,
    missing: Iterable[str] = (),
    settings: Iterable[str] = (),
) -> Reproduction:
    """Return the table of an experiment, computed from the scores of its parts."""
    cells: list[Cell] = []
    remarks: list[str] = []
    for part in experiment.parts:
        if part.name in results:
            scores = results[part.name], baselines.get(part.name)
            cells += _PartTable(experiment, part, *scores, remarks).cells()
    lists = tuple(missing), tuple(settings)
    return Reproduction(experiment, tuple(cells), *lists, results, tuple(remarks), baselines)


@dataclass
class _PartTable:
    """Scores of a single part. :meth:`cells` also fills ``remarks``."""

    experiment: Experiment
    part: Part
    found: Results
    baselines: Results | None
    remarks: list[str]

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of each method at every size or step, followed by its baselines."""
        points = (None,) if self.experiment.metric == "hit" else self.part.points
        for method in self.found.methods:
            for point in points:
                yield from self._row(method, point)

    def _row(self, method: str, point: int | None) -> Iterator[Cell]:
        where = self.part.where(point)
        try:
            scores = self.found.values(self.experiment.measured, method, **where)
        except TamisError:  # this method selects fewer columns
            return
        if self.experiment.metric == "stability":
            yield from self._stability(method, point)
            return
        cell = self._compare(self._cell(method, point, list(scores.values())))
        cell = self._with_signs(cell, scores)
        if self.baselines is None:
            yield cell
            return
        sizes = self.found.values("n_features", method, **where)
        cell = cell._replace(
            n_features=float(np.mean(list(sizes.values()))),
            published_n_features=self.part.at(self.part.published_columns, method, point),
        )
        yield cell
        if nothing := list(sizes.values()).count(0):
            self.remarks.append(
                f"{self.part.name}: {method} selects nothing in {nothing} of {len(sizes)} "
                "realizations, in which the baseline (most frequent class) is measured."
            )
        if self.found.orders(method):  # otherwise it predicts with all columns
            yield from self._beside(cell, scores, sizes)

    def _beside(
        self, cell: Cell, scores: Mapping[int, float], sizes: Mapping[int, float]
    ) -> Iterator[Cell]:
        """Yield the baseline cells that have the same numbers of columns as ``cell``."""
        assert self.baselines is not None
        of_size = {
            (row.method, row.realization, row.size): row.value
            for row in self.baselines.rows()
            if row.metric == self.experiment.metric
        }
        for name in self.baselines.methods:
            values = [  # without any column, all methods are the same
                of_size.get((name, i, int(sizes[i])), np.nan) if sizes[i] else score
                for i, score in scores.items()
            ]
            if not np.isnan(values).any():
                other = self._cell(name, cell.size, values)
                yield other._replace(n_features=cell.n_features, beside=cell.method)

    def _stability(self, method: str, size: int | None) -> Iterator[Cell]:
        """Yield the cell of a stability, whose range is its confidence interval."""
        masks = self.found.supports(method, size=size)
        try:
            index = stability(masks)
        except TamisError as error:  # a single realization, or all columns selected
            self.remarks.append(f"{self.part.name}: {method} has no stability: {error}")
            return
        numbers = np.array([index.nogueira, index.low, index.high])
        ours, low, high = (self.experiment.scale * numbers).tolist()
        spread = (high - low) / 2 / float(norm.ppf((1 + index.level) / 2))
        cell = Cell(self.part.name, method, size, ours, spread, low, high, len(masks))
        yield self._compare(cell)

    def _cell(self, method: str, size: int | None, values: list[float]) -> Cell:
        n, hits = len(values), self.experiment.metric == "hit"
        scaled = np.array(values) * (1 if hits else self.experiment.scale)
        ours = float(scaled.sum() if hits else scaled.mean())
        spread = float(scaled.std(ddof=1)) if n > 1 else float("nan")
        low, high = float(scaled.min()), float(scaled.max())
        n_columns = self.found.tasks[0].outcome.n_features
        full = not self.part.steps and size == n_columns
        named = self.part.name, method, size
        return Cell(*named, ours, spread, low, high, n, all_columns=full)

    def _compare(self, cell: Cell) -> Cell:
        """Return the cell with the published number and the mark added."""
        published = self.part.at(self.part.published, cell.method, cell.size)
        if published is None:
            return cell
        why = self.part.unsound or self.experiment.unsound.get(cell.method, "")
        mark = unsound_mark(why) or mark_cell(self.experiment, cell, published)
        return cell._replace(published=published, mark=mark)

    def _with_signs(self, cell: Cell, scores: Mapping[int, float]) -> Cell:
        """Return the cell with our sign and the published sign added.

        Signs are from the test of the reference against the method.
        """
        if (signs := self.part.signs.get(cell.method)) is not None:
            cell = cell._replace(published_sign=signs[self.part.sizes.index(cell.size or 0)])
        reference, metric_name = self.experiment.reference, self.experiment.metric
        if reference is None or reference not in self.found.methods or reference == cell.method:
            return cell
        against = self.found.values(metric_name, reference, **self.part.where(cell.size))
        common = sorted(scores.keys() & against.keys())
        if len(common) < 2:
            return cell
        test = paired_t([against[i] for i in common], [scores[i] for i in common])
        better = self.experiment.greater_is_better
        return cell._replace(sign=mark(test, greater_is_better=better))
