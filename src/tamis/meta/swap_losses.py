"""Cross-validated losses of swaps of units."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from tamis._arrays import Array, Mask, Subset, target_kind
from tamis._parallel import parallel_map
from tamis._seeds import fix_seeds
from tamis.choice.error import standard_error
from tamis.contract.criterion import check_target
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter
from tamis.meta.swaps import Swaps, dense, indicators
from tamis.validation.held_out import check_predicts, held_out_losses, weights_name
from tamis.validation.resamples import folds_of


class Judged(NamedTuple):
    """The loss with the selected units, its standard error over rows, and its rise for each swap.

    ``errors`` holds the standard error of each rise, from its variation over folds.
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
    errors = [standard_error(rise, 1 / (n_folds - 1)) for rise in rises]
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
