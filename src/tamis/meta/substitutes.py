"""Columns that could replace a selected column, and the cross-validated losses of such swaps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from tamis._arrays import Array, Mask, Subset, improves, target_kind
from tamis._checks import NONE, check_values, integer, number
from tamis._format import format_count
from tamis._frame import frame_of
from tamis._parallel import parallel_map
from tamis._seeds import Seed, draw_seed, fix_seeds
from tamis.contract import Selection
from tamis.contract.criterion import check_target
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter
from tamis.meta.swaps import Swaps, cut_down, dense, indicators, score_changes
from tamis.validation.held_out import check_predicts, held_out_losses, weights_name
from tamis.validation.resamples import error_of_mean, folds_of
from tamis.validation.splits import read_row_weights

NOTE = "The losses are optimistic (rows used for selection): use them only to compare swaps."
#: Maximum number of swaps that are printed.
SHOWN = 25


class Substitute(NamedTuple):
    """A swap of a selected column for another column, or of a group for another group.

    Attributes
    ----------
    column, substitute : str or int
        The selected column and its replacement, by name if the table had names, else by index.
    correlation : float
        Absolute correlation between the two columns. For categorical columns or groups, it is the
        smallest canonical correlation of their indicators or columns.
    score_change : float
        Gain of adding the substitute to the other selected columns, minus the gain of adding the
        column. NaN if the criterion does not score additions.
    loss_change : float
        Mean change of the squared loss on held-out rows. It is negative if predictions improve with
        the swap, and NaN if the target consists of neither classes nor numbers.
    standard_error : float
        Standard error of ``loss_change``, from its variation over folds.
    stands_in : bool or None
        Whether ``loss_change`` is at most ``max_loss``. None if there was no target to predict.
    """

    column: Any
    substitute: Any
    correlation: float
    score_change: float
    loss_change: float
    standard_error: float
    stands_in: bool | None


@dataclass(frozen=True, repr=False)
class Substitutes:
    """Swaps of selected columns for other columns, see :class:`Substitute`.

    The selection was made on the same rows, so the losses are optimistic. Use them to compare
    swaps, not as error estimates.

    Attributes
    ----------
    swaps : tuple of Substitute
        The swaps, sorted by selected column in table order, the most similar substitute first.
    loss : float
        Mean squared loss of the selected columns on held-out rows (Brier score for classes).
    max_loss : float
        The largest increase of the loss that a substitute may cause.
    n_kept : int
        Number of selected columns, or units, that may be replaced.
    """

    swaps: tuple[Substitute, ...]
    loss: float
    max_loss: float
    n_kept: int

    def __iter__(self) -> Iterator[Substitute]:
        return iter(self.swaps)

    def __len__(self) -> int:
        return len(self.swaps)

    def of(self, column: Any) -> list[Any]:
        """Return the columns that can replace a selected column.

        Parameters
        ----------
        column : str or int
            The selected column.
        """
        return [swap.substitute for swap in self if swap.column == column and swap.stands_in]

    def to_frame(self) -> Any:
        """Return a polars or pandas frame with one row per swap."""
        return frame_of(self.swaps, Substitute._fields)

    def __repr__(self) -> str:
        n_with = len({swap.column for swap in self if swap.stands_in})
        title = f"<Substitutes for {n_with} of {format_count(self.n_kept, 'selected column')}"
        if not np.isnan(self.loss):
            title += f": squared loss {self.loss:.4g}, which may rise by {self.max_loss:.2g}"
        lines = [f"{title}>"]
        lines += _align([_cells(swap) for swap in self.swaps[:SHOWN]])
        if len(self) > SHOWN:
            lines.append(f"... and {len(self) - SHOWN} more: to_frame() has all")
        return "\n".join([*lines, NOTE] if len(self) else lines)


def _cells(swap: Substitute) -> tuple[str, ...]:
    """Return the cells of a printed row."""
    cells = [str(swap.column), str(swap.substitute), f"|r| {swap.correlation:.2f}"]
    if not np.isnan(swap.score_change):
        cells.append(f"score {swap.score_change:+.3g}")
    if swap.stands_in is not None:
        cells.append(f"loss {swap.loss_change:+.2g} ± {swap.standard_error:.2g}")
        cells.append("can replace" if swap.stands_in else "is worse")
    return tuple(cells)


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def substitutes(
    selection: Selection,
    X: Any,
    y: Any,
    *,
    estimator: Any,
    max_loss: float | None,
    min_correlation: float,
    n_candidates: int,
    n_folds: int,
    random_state: Seed,
    n_jobs: int | None,
    sample_weight: Any,
) -> Substitutes:
    """Find substitutes, see :meth:`tamis.contract.Selection.substitutes`."""
    asked = {
        "max_loss": number() | NONE,
        "min_correlation": number(least=0, most=1),
        "n_candidates": integer(1),
        "n_folds": integer(2),
    }
    given = {"max_loss": max_loss, "min_correlation": min_correlation}
    check_values("substitutes", asked, **given, n_candidates=n_candidates, n_folds=n_folds)
    read, seed = selection._reread(X, y), draw_seed(random_state)
    read, weights = _weigh(read, sample_weight)
    swaps, units = cut_down(read, weights, min_correlation, n_candidates)
    scores = score_changes(swaps, seed)
    judged = judged_swaps(swaps, estimator, n_folds, seed, n_jobs)
    limit = judged.loss_error if max_loss is None else float(max_loss)
    found = []
    for i, (old, new, similarity) in enumerate(swaps.pairs):
        names = (read.labels[int(units[old])], read.labels[int(units[new])])
        rise, error = float(judged.rises[i]), float(judged.errors[i])
        stands = None if np.isnan(rise) else not improves(rise, limit)
        found.append(Substitute(*names, similarity, float(scores[i]), rise, error, stands))
    n_free = len(np.setdiff1d(swaps.kept, swaps.grouping.fixed_units))
    return Substitutes(tuple(found), judged.loss, limit, n_free)


def _weigh(read: Any, sample_weight: Any) -> tuple[Any, Array | None]:
    """Return the rows with positive weight, and their weights (None if not weighted)."""
    weights = read_row_weights("substitutes", sample_weight, read.X.shape[0])
    if weights is None:
        return read, None
    rows = np.flatnonzero(weights)
    target = None if read.y is None else read.y[rows]
    return read._replace(X=read.X[rows], y=target), weights[rows]


class Judged(NamedTuple):
    """The loss with the selected units, and its increase for each swap.

    ``errors`` holds the standard error of each increase, from its variation over folds.
    """

    loss: float
    loss_error: float
    rises: Array
    errors: Array


class SwapModel(NamedTuple):
    """A model that predicts the target from units of a table, by cross-validation."""

    estimator: Any
    X: Array
    y: NDArray[Any]
    folds: list[Any]
    task: str
    grouping: Grouping
    categories: Mask | None
    weights: Array | None

    def losses(self, subset: Subset) -> list[Array]:
        """Return the losses on the held-out rows of each fold when the model uses these units."""
        columns = self.grouping.columns(subset)
        table = indicators(self.X[:, columns], columns, self.categories)
        return [
            held_out_losses(self.estimator, table, self.y, train, test, self.task, self.weights)
            for train, test in self.folds
        ]

    def means(self, subset: Subset) -> list[float]:
        """Return the mean loss on each fold when the model uses these units."""
        return self.means_of(self.losses(subset))

    def means_of(self, losses: list[Array]) -> list[float]:
        """Return the weighted mean loss on each fold."""
        weights = [None if self.weights is None else self.weights[test] for _, test in self.folds]
        return [
            float(np.average(fold, weights=own)) for fold, own in zip(losses, weights, strict=True)
        ]

    def total(self, losses: list[Array]) -> tuple[float, float]:
        """Return the mean loss over all rows, and its standard error."""
        rows, n = np.concatenate(losses), len(self.y)
        own = np.ones(n) if self.weights is None else self.weights
        own = own[np.concatenate([test for _, test in self.folds])] / own.sum()
        mean = float(own @ rows)
        unit = np.abs(rows - mean).max() or 1.0  # so that squares of losses do not overflow
        spread = np.sqrt(n / (n - 1) * (own * (rows - mean) / unit) @ (own * (rows - mean) / unit))
        return mean, float(spread * unit)


def judged_swaps(
    swaps: Swaps, estimator: Any, n_folds: int, seed: int, n_jobs: int | None
) -> Judged:
    """Return the cross-validated loss of a model, and how much it rises with each swap."""
    nothing = np.full(len(swaps.pairs), np.nan)
    task = _task(swaps)
    if task is None or swaps.y is None or not len(swaps.kept):
        return Judged(np.nan, np.nan, nothing, nothing)
    X, y, weights = dense(swaps.X), swaps.y, swaps.weights
    check_predicts("substitutes", estimator, y, task)
    chosen = _with_imputer(estimator, X)
    if weights is not None and weights_name(chosen) is None:
        raise InvalidParameter(
            f"substitutes cannot use sample_weight: {type(estimator).__name__}.fit does not take "
            "it. Leave sample_weight out, or use an estimator whose fit does."
        )
    fix_seeds(chosen, root=seed)
    folds = list(folds_of(y, np.arange(len(X)), n_folds, seed, task))
    model = SwapModel(chosen, X, y, folds, task, swaps.grouping, swaps.categories, weights)
    kept = model.losses(swaps.kept)
    base = np.array(model.means_of(kept))
    others = ((swaps.swapped(old, new),) for old, new, _ in swaps.pairs)
    means = parallel_map(model.means, others, n_jobs=n_jobs)
    rises = np.array([np.array(one) - base for one in means]).reshape(-1, n_folds)
    errors = [error_of_mean(rise, 1 / (n_folds - 1)) for rise in rises]
    return Judged(*model.total(kept), rises.mean(axis=1), np.array(errors))


def _task(swaps: Swaps) -> str | None:
    """Return the task, or None if there is no target that an estimator could predict."""
    y, criterion = swaps.y, getattr(swaps.walk, "criterion", None)
    if y is None or y.dtype.names is not None:
        return None
    task = target_kind(y) if criterion is None else check_target(criterion, y)
    one = y.ndim == 1 or task == "regression"
    return task if one and task in ("classification", "regression") else None


def _with_imputer(estimator: Any, X: Array) -> Any:
    """Return a clone of the estimator, with mean imputation if it does not accept NaN."""
    model = Ridge() if estimator is None else clone(estimator)
    if not np.isnan(X).any() or get_tags(model).input_tags.allow_nan:
        return model
    return make_pipeline(SimpleImputer(keep_empty_features=True), model)
