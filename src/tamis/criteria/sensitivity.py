"""Sensitivities: how far a trained model's output moves when a column is perturbed."""

from abc import abstractmethod
from math import nan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from tamis._arrays import Array, Subset
from tamis._namespace import device_asked
from tamis._random import draw_seed
from tamis.contract import Cost
from tamis.criteria.chance import ChanceAdjusted
from tamis.criteria.model import GROUPS, is_tuner, names_by_position
from tamis.density.sums import check_precision
from tamis.exceptions import IncompatibleCriterion
from tamis.response.left_out import check_left_out
from tamis.response.losses import losses, mean_and_error
from tamis.response.memory import comparison_bytes
from tamis.response.opening import check_usable, last_step
from tamis.response.outputs import Output
from tamis.response.perturbations import Derivative, Replacement, Zero, resolve
from tamis.response.training import SensitivityTraining, fold_count, holds_out, labelled_rows
from tamis.svm.machine import is_newton
from tamis.svm.tuned import TunedMachine


class Sensitivity(ChanceAdjusted):
    """Loss of a unit: how far a trained model's output moves when its columns are perturbed.

    A subclass says which output that is (:meth:`_output`).
    """

    by: Any
    on: Any
    n_repeats: Any
    n_values: Any
    random_state: Any
    n_jobs: Any
    #: Label of rows without one, of a criterion that can do with such.
    unlabelled: Any = None
    #: What the output is, to ask which perturbations it knows.
    _kind: ClassVar[type[Output]]

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        return self.on not in ("training", "left-out")

    @property
    def runs_on_device(self) -> bool:  # type: ignore[override]
        """Of machines with a Gaussian kernel, whose columns are replaced one by one."""
        way = self.by
        if isinstance(way, str):
            replaced = way in ("marginal", "permutation", "zero")
        else:
            replaced = isinstance(way, Replacement) and not (isinstance(way, Zero) and way.centres)
        inner = getattr(self.estimator, "estimator", None) if is_tuner(self.estimator) else None
        last = last_step(self.estimator if inner is None else inner)
        known = isinstance(last, SVC | SVR | NuSVC | NuSVR | TunedMachine) or is_newton(last)
        return replaced and known and getattr(last, "kernel", "rbf") == "rbf"

    def cost(self, n_samples: int, n_features: int, n_rounds: int = 1) -> Cost | None:
        """Return the memory for kernel machines, networks and ridge regression.

        They may stand behind scalers, or inside ``GridSearchCV``, :class:`TunedSVC` or
        :class:`TunedSVR`. The memory of any other estimator is not known.
        """
        name, n_trained = type(self).__name__, self._n_trained(n_features)
        way = resolve(name, self.by, self.n_repeats, self.n_values)
        n_folds = fold_count(n_samples) if holds_out(name, self.on, n_features, n_samples) else 1
        held = comparison_bytes(
            self.estimator, way, n_samples, n_trained, n_folds=n_folds, copied=self._copied
        )
        return None if held is None else Cost(nan, held)

    @property
    def _grows_with_columns(self) -> bool:
        """Whether columns are replaced or removed: one scale of a group is one direction."""
        way = resolve(type(self).__name__, self.by, self.n_repeats, self.n_values)
        return not isinstance(way, Derivative)

    @property
    def _copied(self) -> bool:
        """Whether altered copies are made, which no engine follows."""
        return False

    @abstractmethod
    def _output(self, training: SensitivityTraining, estimator: Any) -> Output:
        """What is compared, of an estimator."""

    def check(self) -> None:
        name = type(self).__name__
        way = resolve(name, self.by, self.n_repeats, self.n_values)
        self._kind.check(name, way)
        holds_out(name, self.on, 0, 0)
        check_precision(name, self.precision)
        if self.on == "left-out":
            check_left_out(name, self.estimator, way)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        name = type(self).__name__
        check_usable(name, self.estimator)
        rows = labelled_rows(name, y, self.unlabelled, len(X))
        metadata = self._routed(params, len(X))
        table = self._with_copies(X, y)
        classification = self.task_ == "classification"
        self._said: tuple[Subset, Array] | None = None
        self._training = SensitivityTraining(
            name, table, y, rows, self.task_,
            held_out=holds_out(name, self.on, X.shape[1], len(rows)),
            left_out=self.on == "left-out",
            stratified=classification and is_classifier(self.estimator),
            groups=metadata.split.get(GROUPS), fit_params=metadata.fit,
            score_params=metadata.score, seed=draw_seed(self.random_state), n_jobs=self.n_jobs,
            place=device_asked(), precision=self.precision,
        )  # fmt: skip
        _ = self._training.parts  # folds that cannot be made are said before any training
        self._learn_model(table, y, metadata, rows)

    def _prepare(self, estimator: Any) -> None:
        self._compared = self._output(self._training, estimator)

    def loss(self, subset: Subset) -> Array:
        way = resolve(type(self).__name__, self.by, self.n_repeats, self.n_values)
        units = self._units(subset)
        if len(units.columns) < self._X.shape[1] and names_by_position(self.estimator_):
            raise IncompatibleCriterion(
                f"{type(self).__name__} trains {type(self.estimator_).__name__} on some of the "
                "columns, of which categorical_features would name others. Use "
                "CrossValidated, which sees to it, or leave categorical_features out."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # NaN of a model's answers is refused
            repeats = losses(self._compared, way, units)
        self._said = None
        if len(repeats) == 1:
            return self._above_chance(repeats[0])
        means, errors = mean_and_error(repeats)
        if self._has_copies:
            errors = np.hypot(*np.split(errors, 2))
        self._said = (subset.copy(), errors)
        return self._above_chance(means)

    def errors(self, subset: Subset) -> Array | None:
        """Standard errors over the shuffles of the last losses; None where there is one draw."""
        if self._said is None or not np.array_equal(self._said[0], subset):
            return None
        return self._said[1]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to the estimator's ``fit``, groups to our own folds."""
        router = super().get_metadata_routing()
        if self._makes_folds or is_tuner(self.estimator):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=GroupKFold(), method_mapping=mapping)
        return router
