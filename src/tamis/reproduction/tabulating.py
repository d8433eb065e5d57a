"""From the scores of a part to the cells of a table."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.stats import norm

from tamis.evaluation import Results, mark, paired_t, stability
from tamis.evaluation.metrics import metric
from tamis.exceptions import TamisError
from tamis.reproduction.cells import Cell, Reproduction, mark_of
from tamis.reproduction.experiment import Experiment, Part


def tabulated(
    experiment: Experiment,
    results: Mapping[str, Results],
    baselines: Mapping[str, Results],
    *,
    missing: Iterable[str] = (),
    settings: Iterable[str] = (),
) -> Reproduction:
    """The table of an experiment, of the scores of its parts."""
    tabulation = Tabulation(experiment)
    run = [part for part in experiment.parts if part.name in results]
    cells = [
        cell
        for part in run
        for cell in tabulation.cells(part, results[part.name], baselines.get(part.name))
    ]
    return Reproduction(
        experiment,
        tuple(cells),
        tuple(missing),
        tuple(settings),
        results,
        tuple(tabulation.remarks),
        baselines,
    )


class Tabulation:
    """Cells of one experiment, part by part.

    Attributes
    ----------
    remarks : list of str
        A sentence for each method that selected nothing in some realizations.
    """

    def __init__(self, experiment: Experiment):
        self.experiment = experiment
        self.remarks: list[str] = []

    def cells(self, part: Part, found: Results, baselines: Results | None) -> list[Cell]:
        """The cells of a part, those of the baselines beside those of the methods."""
        rows = [
            self._row(part, method, point, found, baselines)
            for method in found.methods
            for point in ([None] if self.experiment.metric == "hit" else part.points)
        ]
        return [cell for row in rows for cell in row]

    def _row(
        self, part: Part, method: str, point: int | None, found: Results, baselines: Results | None
    ) -> list[Cell]:
        """The cell of a method at one size or step, and those of the baselines beside it."""
        where = part.where(point)
        try:
            scores = found.values(self.experiment.measured, method, **where)
        except TamisError:  # a size that this method does not reach
            return []
        if self.experiment.metric == "stability":
            return self._agreement(part, method, point, found)
        values = np.array(list(scores.values()))
        cell = self._cell(part, method, point, values, part.printed(method, point))
        sign, printed_sign = self._signs(part, found, cell, scores)
        cell = cell._replace(sign=sign, published_sign=printed_sign)
        if baselines is None:
            return [cell]
        sizes = found.values("n_features", method, **where)
        cell = cell._replace(
            n_features=float(np.mean(list(sizes.values()))),
            published_n_features=part.printed_columns(method, point),
        )
        if nothing := list(sizes.values()).count(0):
            self.remarks.append(
                f"{part.name}: {method} selects nothing in {nothing} of {len(sizes)} realizations, "
                "where the most frequent class stands for it."
            )
        if not found.orders(method):  # it predicts with all columns
            return [cell]
        return [cell, *self._beside(part, cell, scores, sizes, baselines)]

    def _beside(
        self,
        part: Part,
        cell: Cell,
        scores: Mapping[int, float],
        sizes: Mapping[int, float],
        baselines: Results,
    ) -> list[Cell]:
        """The baselines at the numbers of columns that a cell has, realization by realization."""
        of_size = {
            (row.method, row.realization, row.size): row.value
            for row in baselines.rows()
            if row.metric == self.experiment.metric
        }
        made = []
        for name in baselines.methods:
            values = [  # without any column all methods are the same
                of_size.get((name, i, int(sizes[i])), np.nan) if sizes[i] else score
                for i, score in scores.items()
            ]
            if not np.isnan(values).any():
                other = self._cell(part, name, cell.size, np.array(values), None)
                made.append(other._replace(n_features=cell.n_features, beside=cell.method))
        return made

    def _agreement(self, part: Part, method: str, size: int | None, found: Results) -> list[Cell]:
        """The cell of a stability, whose range is its interval."""
        chosen = found.supports(method, size=size)
        try:
            index = stability(chosen)
        except TamisError as error:  # of one realization, or of all columns
            self.remarks.append(f"{part.name}: {method} has no stability: {error}")
            return []
        numbers = np.array([index.nogueira, index.low, index.high])
        ours, low, high = (self.experiment.scale * numbers).tolist()
        spread = (high - low) / 2 / float(norm.ppf((1 + index.level) / 2))
        cell = Cell(
            part.name, method, size, ours, spread, low, high, len(chosen), None, "", None, None
        )
        return [self._compared(part, cell, part.printed(method, size))]

    def _signs(
        self, part: Part, found: Results, cell: Cell, scores: Mapping[int, float]
    ) -> tuple[str | None, str | None]:
        """Signs of the test of the reference against the method of a cell, ours and printed."""
        reference, signs = self.experiment.reference, part.signs.get(cell.method)
        printed = None if signs is None else signs[part.sizes.index(cell.size or 0)]
        if reference not in found.methods or reference == cell.method or len(scores) < 2:
            return None, printed
        against = found.values(self.experiment.metric, str(reference), **part.where(cell.size))
        common = sorted(scores.keys() & against.keys())
        if len(common) < 2:
            return None, printed
        test = paired_t([against[i] for i in common], [scores[i] for i in common])
        better = metric(self.experiment.metric).greater_is_better
        return mark(test, greater_is_better=better), printed

    def _cell(
        self, part: Part, method: str, size: int | None, values: Any, published: float | None
    ) -> Cell:
        n = len(values)
        hits = self.experiment.metric == "hit"
        scaled = values * (1 if hits else self.experiment.scale)
        ours = float(scaled.sum() if hits else scaled.mean())
        spread = float(scaled.std(ddof=1)) if n > 1 else float("nan")
        low, high = float(scaled.min()), float(scaled.max())
        cell = Cell(part.name, method, size, ours, spread, low, high, n, None, "", None, None)
        return self._compared(part, cell, published)

    def _compared(self, part: Part, cell: Cell, published: float | None) -> Cell:
        """The cell with the published number, and the mark that it gets by it."""
        if published is None:
            return cell
        sound = part.is_sound(published) and cell.method not in self.experiment.unsound
        mark = mark_of(self.experiment, cell, published) if sound else "?"
        return cell._replace(published=published, mark=mark)
