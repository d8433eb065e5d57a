"""Sensitivities: how far a trained model's output moves when a column is perturbed."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from tamis._arrays import Array, Subset
from tamis._checks import NONE, Constraints, integer, one_of
from tamis._namespace import device_asked
from tamis._seeds import draw_seed
from tamis.contract import BackwardCriterion
from tamis.criteria.chance import ChanceAdjusted
from tamis.criteria.model import (
    GROUPS,
    ModelCriterion,
    inner_estimator,
    is_tuner,
    names_by_position,
)
from tamis.exceptions import IncompatibleCriterion
from tamis.response.engines.registry import check_usable, last_step
from tamis.response.fold_models import FoldTraining, fold_count, holds_out, labelled_rows
from tamis.response.left_out import check_left_out
from tamis.response.memory import comparison_bytes
from tamis.response.outputs import Output, losses, mean_and_error
from tamis.response.perturbations import Derivative, Perturbation, Replacement, Zero, resolve
from tamis.response.tuners import TunedSVC
from tamis.svm.machine import is_newton
from tamis.svm.relative import TunedSVR


class Sensitivity(ChanceAdjusted, ModelCriterion, BackwardCriterion):
    """Loss of a unit: how far a trained model's output moves when its columns are perturbed.

    A subclass says which output that is (:meth:`_output`).
    """

    by: Any
    on: Any
    n_repeats: Any
    n_values: Any
    random_state: Any
    n_jobs: Any
    precision: Any
    #: Label of rows without one, of a criterion that can do with such.
    unlabelled: Any = None
    #: What the output is, to ask which perturbations it knows.
    _kind: ClassVar[type[Output]]
    _constraints: ClassVar[Constraints] = {
        "on": one_of("training", "held-out", "left-out", "auto"),
        "precision": one_of("double", "single"),
        "unlabelled": integer() | NONE,
    }

    @property
    def _way(self) -> Perturbation:
        """How a column is perturbed."""
        return resolve(type(self).__name__, self.by, self.n_repeats, self.n_values)

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        return self.on not in ("training", "left-out")

    @property
    def runs_on_device(self) -> bool:  # type: ignore[override]
        """Whether it replaces single columns of a machine with a Gaussian kernel."""
        way, last = self._way, last_step(inner_estimator(self.estimator))
        known = isinstance(last, SVC | SVR | NuSVC | NuSVR | TunedSVC | TunedSVR) or is_newton(last)
        replaced = isinstance(way, Replacement) and not (isinstance(way, Zero) and way.centres)
        return replaced and known and getattr(last, "kernel", "rbf") == "rbf"

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Return the memory for kernel machines, networks and ridge regression.

        They may stand behind scalers, or inside ``GridSearchCV``, :class:`TunedSVC` or
        :class:`TunedSVR`. The memory of any other estimator is not known.
        """
        n_trained = self._n_trained(n_features)
        n_folds = fold_count(n_samples) if holds_out(self.on, n_features, n_samples) else 1
        return comparison_bytes(
            self.estimator, self._way, n_samples, n_trained, n_folds=n_folds, copied=self._copied
        )

    @property
    def _is_adjusted(self) -> bool:
        # one scale of a group is one direction, however many columns it has
        grows = self.adjusted != "auto" or not isinstance(self._way, Derivative)
        return grows and super()._is_adjusted

    @property
    def _copied(self) -> bool:
        """Whether altered copies are made, which no engine follows."""
        return False

    @abstractmethod
    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        """What is compared, of an estimator."""

    def check(self) -> None:
        super().check()
        name, way = type(self).__name__, self._way
        self._kind.check(name, way)
        if self.on == "left-out":
            check_left_out(name, self.estimator, way)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        name = type(self).__name__
        check_usable(name, self.estimator)
        rows = labelled_rows(name, y, self.unlabelled, len(X))
        metadata = self._routed(params, len(X))
        table = self._with_copies(X, y)
        classification = self.task_ == "classification"
        self._repeats: tuple[Subset, Array] | None = None
        training = FoldTraining(
            name, table, y, rows, self.task_, held_out=holds_out(self.on, X.shape[1], len(rows)),
            left_out=self.on == "left-out",
            stratified=classification and is_classifier(self.estimator),
            groups=metadata.split.get(GROUPS), fit_params=metadata.fit,
            score_params=metadata.score, seed=draw_seed(self.random_state), n_jobs=self.n_jobs,
            place=device_asked(), precision=self.precision,
        )  # fmt: skip
        _ = training.parts  # folds that cannot be made are refused before any training
        self._learn_model(table, y, metadata, training)

    def _prepare(self, estimator: Any) -> None:
        self._compared = self._output(self._training, estimator)

    def loss(self, subset: Subset) -> Array:
        units = self._units(subset)
        if len(units.columns) < self._X.shape[1] and names_by_position(self.estimator_):
            raise IncompatibleCriterion(
                f"{type(self).__name__} trains {type(self.estimator_).__name__} on some of the "
                "columns, of which categorical_features would name others. Use "
                "CrossValidated, which sees to it, or leave categorical_features out."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # NaN outputs of a model are refused
            repeats = losses(self._compared, self._way, units)
        self._repeats = None
        if len(repeats) == 1:
            return self._above_chance(repeats[0])
        means, errors = mean_and_error(repeats)
        if self._has_copies:
            errors = np.hypot(*np.split(errors, 2))
        self._repeats = (subset.copy(), errors)
        return self._above_chance(means)

    def errors(self, subset: Subset) -> Array | None:
        """Standard errors over the shuffles of the last losses; None if there is one draw."""
        if self._repeats is None or not np.array_equal(self._repeats[0], subset):
            return None
        return self._repeats[1]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to the estimator's ``fit``, groups to our own folds."""
        router = super().get_metadata_routing()
        if self._makes_folds or is_tuner(self.estimator):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=GroupKFold(), method_mapping=mapping)
        return router
