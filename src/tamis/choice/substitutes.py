"""Which columns that were left out could stand in the place of one that was kept."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from tamis._arrays import Array, Mask, Subset, improves, is_int, is_real, standardised, target_kind
from tamis._frame import frame_of
from tamis._parallel import parallel_map
from tamis._random import draw_seed, fix_seeds
from tamis.choice.error import standard_error
from tamis.choice.likeness import dense, indicators, likeness
from tamis.contract import ForwardCriterion, Grouping, Selection
from tamis.contract.choice import counted
from tamis.contract.criterion import check_target, with_unit
from tamis.density.discrete import category_mask
from tamis.evaluation.dealing import folds_of
from tamis.evaluation.losses import check_predicts, held_out_losses, weights_name
from tamis.exceptions import InvalidParameter, TamisWarning
from tamis.search.categories import for_columns, given_categories

NOTE = "Judged on rows that the selection has seen: compare the swaps, do not quote them."
#: Rows of a table that are shown.
SHOWN = 25


class Substitute(NamedTuple):
    """A column that was left out, in the place of one that was kept; units where there are groups.

    Attributes
    ----------
    column, substitute : str or int
        Names where the table had some, else indices.
    correlation : float
        Absolute; of a category or a group the greatest that a sum of its columns can have.
    score_change : float
        What the criterion gives the substitute beside the other columns kept, less what it gives
        the column there; nan of a criterion that scores no additions.
    loss_change : float
        Mean rise of the squared loss on rows left out, below 0 where the swap predicts better; nan
        without a target of classes or numbers.
    standard_error : float
        Of ``loss_change``, from the differences of the folds.
    stands_in : bool or None
        Whether the rise is within what is allowed; None where nothing was predicted.
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
    """Swaps of a column that was kept for one that was left out, see :class:`Substitute`.

    The rows took part in the selection: compare the swaps, do not quote them.

    Attributes
    ----------
    swaps : tuple of Substitute
        By kept column, in the order of the table, the most alike first.
    loss : float
        Mean squared loss of the kept columns on rows left out (Brier's score for classes).
    max_loss : float
        The rise of it within which a column stands in.
    n_kept : int
        Kept columns, or units, whose substitutes were looked for.
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
        """The columns that stand in for one that was kept.

        Parameters
        ----------
        column : str or int
        """
        return [swap.substitute for swap in self if swap.column == column and swap.stands_in]

    def to_frame(self) -> Any:
        """One row per swap, as polars or pandas frame."""
        return frame_of(self.swaps, Substitute._fields)

    def __repr__(self) -> str:
        n_with = len({swap.column for swap in self if swap.stands_in})
        said = f"<Substitutes for {n_with} of {counted(self.n_kept, 'kept column')}"
        if not np.isnan(self.loss):
            said += f": squared loss {self.loss:.4g}, which may rise by {self.max_loss:.2g}"
        lines = [f"{said}>"]
        lines += _aligned([_told(swap) for swap in self.swaps[:SHOWN]])
        if len(self) > SHOWN:
            lines.append(f"... and {len(self) - SHOWN} more: to_frame() has all")
        return "\n".join([*lines, NOTE] if len(self) else lines)


def _told(swap: Substitute) -> tuple[str, ...]:
    """A swap as the cells of a line."""
    cells = [str(swap.column), str(swap.substitute), f"|r| {swap.correlation:.2f}"]
    if not np.isnan(swap.score_change):
        cells.append(f"score {swap.score_change:+.3g}")
    if swap.stands_in is not None:
        cells.append(f"loss {swap.loss_change:+.2g} ± {swap.standard_error:.2g}")
        cells.append("stands in" if swap.stands_in else "loses")
    return tuple(cells)


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


class Swaps(NamedTuple):
    """A table cut down to the units that are kept and their candidates.

    ``pairs`` are (kept, candidate, likeness), counted among those units, as ``kept`` is.
    """

    X: Array
    y: NDArray[Any] | None
    grouping: Grouping
    search: Any
    categories: Mask | None
    kept: Subset
    pairs: list[tuple[int, int, float]]
    weights: Array | None

    def swapped(self, old: int, new: int) -> Subset:
        """What is kept, with another unit in the place of one."""
        return with_unit(self.kept[self.kept != old], new)


def substitutes(
    selection: Selection,
    X: Any,
    y: Any = None,
    *,
    estimator: Any = None,
    max_loss: float | None = None,
    min_correlation: float = 0.7,
    n_candidates: int = 3,
    n_folds: int = 5,
    random_state: Any = None,
    n_jobs: int | None = None,
    sample_weight: Any = None,
) -> Substitutes:
    """Work of :meth:`tamis.contract.Selection.substitutes`, where the parameters are described."""
    _check(max_loss, min_correlation, n_candidates, n_folds)
    read, seed = selection._reread(X, y), draw_seed(random_state)
    read, weights = _weighed(read, sample_weight)
    swaps, units = _cut_down(read, weights, min_correlation, n_candidates)
    scores = _score_changes(swaps, seed)
    judged = _judged(swaps, estimator, n_folds, seed, n_jobs)
    limit = judged.loss_error if max_loss is None else float(max_loss)
    found = []
    for i, (old, new, alike) in enumerate(swaps.pairs):
        names = (read.labels[int(units[old])], read.labels[int(units[new])])
        rise, error = float(judged.rises[i]), float(judged.errors[i])
        stands = None if np.isnan(rise) else not improves(rise, limit)
        found.append(Substitute(*names, alike, float(scores[i]), rise, error, stands))
    n_free = len(np.setdiff1d(swaps.kept, swaps.grouping.fixed_units))
    return Substitutes(tuple(found), judged.loss, limit, n_free)


def _check(max_loss: Any, min_correlation: Any, n_candidates: Any, n_folds: Any) -> None:
    if max_loss is not None and not is_real(max_loss):
        raise InvalidParameter(f"substitutes needs max_loss as a number or None, not {max_loss!r}.")
    if not (is_real(min_correlation) and 0 <= min_correlation <= 1):
        raise InvalidParameter(
            f"substitutes needs min_correlation in [0, 1], not {min_correlation!r}."
        )
    for name, value, least in (("n_candidates", n_candidates, 1), ("n_folds", n_folds, 2)):
        if not (is_int(value) and value >= least):
            raise InvalidParameter(f"substitutes needs {name} of at least {least}, not {value!r}.")


def _weighed(read: Any, sample_weight: Any) -> tuple[Any, Array | None]:
    """The rows that have a weight, and their weights; a weight of 0 is as if a row were not there.

    Without weights all rows, and None.
    """
    if sample_weight is None:
        return read, None
    n_rows = read.X.shape[0]
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        weights = np.array([np.nan])
    good = weights.shape == (n_rows,) and np.isfinite(weights).all() and (weights >= 0).all()
    if not good or not weights.any():
        raise InvalidParameter(
            f"substitutes needs a sample_weight for each of {n_rows} rows, numbers of at least 0 "
            "that are not all 0: those of the fit."
        )
    rows = np.flatnonzero(weights)
    target = None if read.y is None else read.y[rows]
    return read._replace(X=read.X[rows], y=target), weights[rows]


def _cut_down(
    read: Any, weights: Array | None, min_correlation: float, n_candidates: int
) -> tuple[Swaps, Subset]:
    """The units that matter, and which units of the whole table they are."""
    search, grouping, n_columns = read.search, read.search.units_, read.X.shape[1]
    categories = _categories_of(search, n_columns)
    kept = np.flatnonzero(search.unit_support_)
    free = np.setdiff1d(kept, grouping.fixed_units)
    alike = likeness(read.X, free, grouping, categories)
    alike[:, kept] = -1.0
    pairs = []
    for row, unit in enumerate(free):
        best = np.argsort(-alike[row], kind="stable")[:n_candidates]
        # r = 0.7 of a column and its double must not be lost to rounding
        close = best[alike[row, best] >= min_correlation - 1e-12]
        pairs += [(int(unit), int(other), float(alike[row, other])) for other in close]
    units = np.union1d(kept, np.array([other for _, other, _ in pairs], dtype=np.intp))
    columns = grouping.columns(units)
    place = {int(unit): index for index, unit in enumerate(units)}
    cut = Swaps(
        read.X[:, columns],
        read.y,
        grouping.restricted(units),
        for_columns(search, columns, n_columns),
        None if categories is None else categories[columns],
        np.array([place[int(unit)] for unit in kept], dtype=np.intp),
        [(place[old], place[new], r) for old, new, r in pairs],
        weights,
    )
    return cut, units


def _innermost(search: Any) -> Any:
    """The part of a selection that has a criterion, where there is one."""
    for way in ("second", "search"):
        while hasattr(search, way):
            search = getattr(search, way)
    return search


def _categories_of(search: Selection, n_columns: int) -> Mask | None:
    """Which columns are codes, as any criterion inside was told."""
    masks = [
        mask
        for given in given_categories(search)
        if (mask := category_mask(type(search).__name__, given, n_columns)) is not None
    ]
    return np.any(masks, axis=0) if masks else None


def _score_changes(swaps: Swaps, seed: int) -> Array:
    """For each swap what the criterion gives the new unit, less what it gives the old one."""
    walk = _innermost(swaps.search)
    criterion = getattr(walk, "criterion", None)
    changes = np.full(len(swaps.pairs), np.nan)
    if not isinstance(criterion, ForwardCriterion) or not swaps.pairs:
        return changes
    criterion = clone(criterion).grouped(swaps.grouping.members)
    fix_seeds(criterion, root=seed)
    scaled = walk.standardize and not criterion.reads_scale
    olds = np.array([old for old, _, _ in swaps.pairs])
    with warnings.catch_warnings():  # said by the search itself
        warnings.simplefilter("ignore", TamisWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighed = _for_criterion(criterion, swaps.weights)
        criterion.fit(standardised(swaps.X) if scaled else swaps.X, swaps.y, **weighed)
        for old in np.unique(olds):
            here = np.flatnonzero(olds == old)
            asked = np.unique([old, *(swaps.pairs[i][1] for i in here)])
            gains = dict(
                zip(asked, criterion.gain(swaps.kept[swaps.kept != old], asked), strict=True)
            )
            changes[here] = [gains[swaps.pairs[i][1]] - gains[old] for i in here]
    return changes


def _for_criterion(criterion: Any, weights: Array | None) -> dict[str, Array]:
    """The weights by the name under which a criterion takes them, nothing where it takes none."""
    if weights is None or not criterion.takes_metadata:
        return {}
    name = weights_name(criterion.estimator) if hasattr(criterion, "estimator") else None
    return {name or "sample_weight": weights}


class Judged(NamedTuple):
    """The loss of what is kept, its standard error over rows, and by how much each swap raises it.

    ``errors`` are those of the rises, from the differences of the folds.
    """

    loss: float
    loss_error: float
    rises: Array
    errors: Array


class SwapModel(NamedTuple):
    """What predicts the target from units of a table, on rows that it was not trained on."""

    estimator: Any
    X: Array
    y: NDArray[Any]
    folds: list[Any]
    task: str
    grouping: Grouping
    categories: Mask | None
    weights: Array | None

    def losses(self, subset: Subset) -> list[Array]:
        """Of the rows of each fold, from these units alone."""
        columns = self.grouping.columns(subset)
        table = indicators(self.X[:, columns], columns, self.categories)
        return [
            held_out_losses(self.estimator, table, self.y, train, test, self.task, self.weights)
            for train, test in self.folds
        ]

    def means(self, subset: Subset) -> list[float]:
        """Of the losses of each fold."""
        return self.means_of(self.losses(subset))

    def means_of(self, losses: list[Array]) -> list[float]:
        """Of the losses of each fold, by the weights of its rows."""
        weights = [None if self.weights is None else self.weights[test] for _, test in self.folds]
        return [
            float(np.average(fold, weights=own)) for fold, own in zip(losses, weights, strict=True)
        ]

    def whole(self, losses: list[Array]) -> tuple[float, float]:
        """The mean loss over all rows, and its standard error."""
        rows, n = np.concatenate(losses), len(self.y)
        own = np.ones(n) if self.weights is None else self.weights
        own = own[np.concatenate([test for _, test in self.folds])] / own.sum()
        mean = float(own @ rows)
        unit = np.abs(rows - mean).max() or 1.0  # squares of squares are soon out of reach
        spread = np.sqrt(n / (n - 1) * (own * (rows - mean) / unit) @ (own * (rows - mean) / unit))
        return mean, float(spread * unit)


def _judged(swaps: Swaps, estimator: Any, n_folds: int, seed: int, n_jobs: int | None) -> Judged:
    """What a model loses by each swap on rows that it was not trained on."""
    nothing = np.full(len(swaps.pairs), np.nan)
    task = _task(swaps)
    if task is None or swaps.y is None or not len(swaps.kept):
        return Judged(np.nan, np.nan, nothing, nothing)
    X, y, weights = dense(swaps.X), swaps.y, swaps.weights
    check_predicts("substitutes", estimator, y, task)
    chosen = _without_gaps(estimator, X)
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
    errors = [standard_error(rise, 1 / (n_folds - 1)) for rise in rises]
    return Judged(*model.whole(kept), rises.mean(axis=1), np.array(errors))


def _task(swaps: Swaps) -> str | None:
    """How the target is read; None where there is none that an estimator could predict."""
    y, criterion = swaps.y, getattr(_innermost(swaps.search), "criterion", None)
    if y is None or y.dtype.names is not None:
        return None
    task = target_kind(y) if criterion is None else check_target(criterion, y)
    one = y.ndim == 1 or task == "regression"
    return task if one and task in ("classification", "regression") else None


def _without_gaps(estimator: Any, X: Array) -> Any:
    """A clone of the estimator, behind means in the place of gaps that it does not take."""
    model = Ridge() if estimator is None else clone(estimator)
    if not np.isnan(X).any() or get_tags(model).input_tags.allow_nan:
        return model
    return make_pipeline(SimpleImputer(keep_empty_features=True), model)
