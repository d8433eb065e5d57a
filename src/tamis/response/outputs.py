"""What of a model's answers is compared: probabilities or decisions, a density, a score.

An output belongs to a training and an estimator: it trains the models of a round, and says how far
their answers move.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor

from tamis._arrays import Array, check_target_range, is_int
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.response.answers import (
    as_it_is,
    decided_classes,
    decisions_of,
    predictions_of,
    probabilities_of,
)
from tamis.response.calibration import CalibratedMachines, calibrated_machines, one_against_the_rest
from tamis.response.comparison import DrawComparison, moved, outputs_of
from tamis.response.derivative import ScaleSlopes, probability_slopes, slopes_of
from tamis.response.device import comparison_of
from tamis.response.distances import (
    GaussDivergence,
    LaplaceDivergence,
    Statistic,
    TotalVariation,
)
from tamis.response.engine import Model
from tamis.response.left_out import left_out_models, left_out_probabilities
from tamis.response.opening import check_usable, last_step
from tamis.response.perturbations import Derivative, Perturbation
from tamis.response.training import FoldModel, SensitivityTraining
from tamis.response.units import Units

NOISES: dict[str, Any] = {"laplace": LaplaceDivergence, "gaussian": GaussDivergence}

#: Distance of other models, which see other columns, from those that a round began with.
Distance = Callable[[list[FoldModel], Array], float]


class Output(ABC):
    """What is compared, of one estimator trained on one table."""

    def __init__(self, training: SensitivityTraining, estimator: Any):
        check_usable(training.name, estimator)
        self.training, self.estimator = training, estimator

    @staticmethod
    def check(name: str, perturbation: Perturbation) -> None:
        """Refuse a perturbation that the output has no use for."""
        if isinstance(perturbation, Derivative):
            raise IncompatibleCriterion(
                f"{name} has no derivative; PosteriorSensitivity has. Use "
                "by='marginal', 'permutation', 'zero' or 'removal'."
            )

    @abstractmethod
    def models(self, X: Array) -> list[FoldModel]:
        """Models trained on these columns; together they answer for all rows, each once."""

    @abstractmethod
    def constants(self) -> list[FoldModel]:
        """Models that look at no column."""

    @abstractmethod
    def statistic(self, before: Array) -> Statistic:
        """How far outputs move from these."""

    def comparison(self, models: list[FoldModel], X: Any) -> DrawComparison:
        """Who follows the draws of a perturbation."""
        training = self.training
        return comparison_of(
            models, X, self.statistic, training.n_jobs, training.place, training.precision
        )

    def distance(self, models: list[FoldModel], X: Array) -> Distance:
        """How far other models are from these."""
        statistic = self.statistic(outputs_of(models, X))
        return lambda others, Z: moved(statistic, outputs_of(others, Z))

    def slopes(self, X: Array, units: Units, way: Derivative) -> Array:
        """Derivatives of what is compared by the scale of each unit, for outputs that have any."""
        raise NotImplementedError


class ProbabilityOutput(Output):
    """Posterior probabilities, calibrated where a classifier has none, or predicted classes."""

    def __init__(self, training: SensitivityTraining, estimator: Any, kind: str, calibration: Any):
        super().__init__(training, estimator)
        self.kind, self.calibration = kind, calibration
        self.calibrates = needs_calibration(kind, estimator)
        if self.calibrates:
            self._check_calibration()

    def _check_calibration(self) -> None:
        name, last = self.training.name, type(last_step(self.estimator)).__name__
        if not hasattr(self.estimator, "decision_function"):
            raise IncompatibleCriterion(
                f"{name} needs predict_proba or decision_function, and "
                f"{last} has neither. Use output='decision'."
            )
        if self.calibration is None:
            raise InvalidParameter(
                f"{name}: {last} gives no probabilities and needs "
                "calibration, a number of folds or a held-out fraction, not None. Or use "
                "output='decision', which needs none."
            )
        if self.training.fit_params and one_against_the_rest(self.training, self.estimator):
            names = ", ".join(self.training.fit_params)
            raise InvalidParameter(
                f"{name} cannot use {names} with an SVM of more than two classes."
                f" Leave {names} out, or use output='decision'."
            )

    @staticmethod
    def check(name: str, perturbation: Perturbation) -> None:
        """Probabilities have a derivative."""

    def models(self, X: Array) -> list[FoldModel]:
        if self.training.left_out:
            return self._left_out(X)
        if self.calibrates:
            return self.machines(X).models()
        answers = probabilities_of if self.kind == "probability" else decisions_of
        training = self.training
        return [
            FoldModel(answers(training.fitted(self.estimator, X, train), training.classes), rest)
            for train, rest in training.parts
        ]

    def _left_out(self, X: Array) -> list[FoldModel]:
        training, estimator = self.training, self.estimator
        if self.calibrates:
            return left_out_probabilities(training, estimator, X)
        return left_out_models(training, estimator, X, decided_classes(len(training.classes)))

    def machines(self, X: Array) -> CalibratedMachines:
        return calibrated_machines(self.training, self.estimator, X, self.calibration)

    def constants(self) -> list[FoldModel]:
        c, training = len(self.training.classes), self.training
        shares = np.bincount(training.codes[training.rows], minlength=c) / len(training.rows)
        if self.kind == "decision":
            shares = np.eye(c)[shares.argmax()]
        answer = shares[1:] if c == 2 else shares

        def raw(X: Array) -> Array:
            return np.tile(answer, (len(X), 1))

        return [FoldModel(Model(None, "constant", raw, as_it_is), np.arange(len(training.X)))]

    def statistic(self, before: Array) -> TotalVariation:
        return TotalVariation(before)

    def slopes(self, X: Array, units: Units, way: Derivative) -> Array:
        """Mean absolute derivatives of the posterior by the scale of each unit (FSPP4)."""
        if not self.calibrates:
            raise IncompatibleCriterion(
                f"by='derivative' needs an SVC, which {self.training.name} calibrates itself, not "
                f"{type(self.estimator).__name__}. Use by='marginal'."
            )
        machines = self.machines(X)
        follow: ScaleSlopes | None = None
        if way.calibration:
            parts = machines.calibrating
            known = ScaleSlopes.joined(
                [slopes_of(m, X[rows], units, way.follow) for m, rows in parts]
            )
            rows = np.concatenate([rows for _, rows in parts])
            follow = known.sigmoids(machines.sigmoids, self.training.codes[rows])
        total = sum(
            probability_slopes(slopes_of(m, X[rows], units, way.follow), machines.sigmoids, follow)
            for m, rows in machines.answering
        )
        return np.asarray(total / len(X))


def needs_calibration(kind: str, estimator: Any) -> bool:
    """Whether probabilities are asked of a classifier that has none."""
    return kind == "probability" and not hasattr(estimator, "predict_proba")


def check_calibration(name: str, calibration: Any) -> None:
    """Refuse what is neither a number of folds, a fraction nor None."""
    share = isinstance(calibration, float) and 0 < calibration < 1
    if calibration is not None and not share and not (is_int(calibration) and calibration >= 2):
        raise InvalidParameter(
            f"{name} needs calibration as a number of folds (2 or more), a fraction "
            f"in (0, 1) or None, not {calibration!r}."
        )


class DensityOutput(Output):
    """The density around what a regressor predicts."""

    def __init__(self, training: SensitivityTraining, estimator: Any, noise: str, symmetric: bool):
        super().__init__(training, estimator)
        self.noise, self.symmetric = noise, symmetric
        check_target_range(training.name, np.asarray(training.y))

    def models(self, X: Array) -> list[FoldModel]:
        training = self.training
        if training.left_out:
            return left_out_models(training, self.estimator, X, as_it_is)
        return [
            FoldModel(predictions_of(training.fitted(self.estimator, X, train)), rest)
            for train, rest in training.parts
        ]

    def constants(self) -> list[FoldModel]:
        nothing = np.zeros((len(self.training.X), 1))
        dummy = DummyRegressor(strategy="median" if self.noise == "laplace" else "mean")
        fitted = dummy.fit(nothing, self.training.y)
        return [FoldModel(predictions_of(fitted), np.arange(len(nothing)))]

    def statistic(self, before: Array) -> Statistic:
        y = np.asarray(self.training.y, dtype=np.float64)
        found: Statistic = NOISES[self.noise](before, y, self.symmetric)
        return found
