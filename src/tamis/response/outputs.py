"""Kinds of model outputs that are compared: probabilities or classes, a density, or a score.

An ``Output`` belongs to an estimator and its training data. It trains the models and measures the
change of their outputs. Engines support scores that are means over rows. Other scores need altered
copies of the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring, get_scorer

from tamis._arrays import Array, check_target_range
from tamis._namespace import host
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.response.calibration import (
    CalibratedMachines,
    calibrate_machines,
    is_one_against_the_rest,
    left_out_models,
)
from tamis.response.comparison import (
    AnyComparison,
    CopyComparison,
    EngineComparison,
    ScoreComparison,
    outputs_of,
    replacement_losses,
)
from tamis.response.derivative import ScaleSlopes, probability_slopes, slopes_of
from tamis.response.device import report_processor
from tamis.response.distances import (
    GaussDivergence,
    LaplaceDivergence,
    Statistic,
    WeightedLoss,
    mean_change,
    total_variation,
)
from tamis.response.engines.base import FoldModel, Model, Outputs
from tamis.response.engines.registry import check_usable, last_step
from tamis.response.fold_models import FoldTraining, fit_clone, take_rows
from tamis.response.perturbations import (
    Derivative,
    Perturbation,
    Removal,
    Replacement,
    Units,
)
from tamis.response.predictions import (
    as_it_is,
    decided_classes,
    decisions_of,
    encode_classes,
    log_probabilities,
    on_outputs,
    predictions_of,
    probabilities_of,
    quick_scorer,
    responses_of,
)
from tamis.validation.splits import Rows

NOISES: dict[str, Any] = {"laplace": LaplaceDivergence, "gaussian": GaussDivergence}
#: Function that returns the distance between the outputs of models trained on other columns and the
#: outputs of the original models.
Distance = Callable[[list[FoldModel], Array], float]


class Output(ABC):
    """Compared output of an estimator trained on a table."""

    #: Model that uses no columns.
    dummy: Any = DummyClassifier()
    #: Link of leave-one-out models, or None if their decisions are calibrated by sigmoids.
    left_out_link: Outputs | None = staticmethod(as_it_is)

    def __init__(self, training: FoldTraining, estimator: Any):
        check_usable(training.name, estimator)
        self.training, self.estimator = training, estimator

    @abstractmethod
    def view(self, fitted: Any) -> Model:
        """Wrap a trained estimator as a model whose outputs are compared."""

    def constants(self) -> list[FoldModel]:
        """Return models that use no columns, as a baseline."""
        training, nothing = self.training, np.zeros((len(self.training.X), 0))
        assert training.y is not None
        fitted = fit_clone(self.dummy, nothing[training.rows], training.y[training.rows], {})
        return [FoldModel(self.view(fitted), np.arange(len(nothing)))]

    @abstractmethod
    def statistic(self, before: Array) -> Statistic:
        """Return the statistic that measures changes from the original outputs ``before``."""

    def models(self, X: Any) -> list[FoldModel]:
        """Train models on the columns of ``X``. Together they predict each row once."""
        training = self.training
        if training.left_out:
            return left_out_models(training, self.estimator, X, self.left_out_link)
        return [
            FoldModel(self.view(training.fit(self.estimator, X, train)), rest)
            for train, rest in training.parts
        ]

    def comparison(self, models: list[FoldModel], X: Any) -> AnyComparison:
        """Return an object that compares the models' outputs before and after perturbations."""
        training = self.training
        return EngineComparison(
            models, X, self.statistic, training.n_jobs, training.place, training.precision
        )

    def distance(self, models: list[FoldModel], X: Array) -> Distance:
        """Return a function that compares the outputs of ``models`` and of other models."""
        statistic = self.statistic(outputs_of(models, X))
        return lambda others, Z: statistic.score(outputs_of(others, Z))

    def slopes(self, X: Array, units: Units, way: Derivative) -> Array:
        """Return the mean absolute derivative of the outputs with respect to each unit's scale."""
        raise NotImplementedError


class ProbabilityOutput(Output):
    """Class probabilities or predicted classes.

    Decision values are calibrated if the classifier has no probabilities.
    """

    def __init__(self, training: FoldTraining, estimator: Any, kind: str, calibration: Any):
        super().__init__(training, estimator)
        self.kind, self.calibration = kind, calibration
        self.calibrates = needs_calibration(kind, estimator)
        self.left_out_link = None if self.calibrates else decided_classes(len(training.classes))
        if self.calibrates:
            self._check_calibration()

    def _check_calibration(self) -> None:
        name, last = self.training.name, type(last_step(self.estimator)).__name__
        if not hasattr(self.estimator, "decision_function"):
            raise IncompatibleCriterion(
                f"{name} needs predict_proba or decision_function, but {last} has neither. Use "
                "output='decision'."
            )
        if self.calibration is None:
            raise InvalidParameter(
                f"{name} needs calibration as a number of folds or a held-out fraction, because "
                f"{last} has no predict_proba, got None. Or use output='decision'."
            )
        if self.training.fit_params and is_one_against_the_rest(self.training, self.estimator):
            names = ", ".join(self.training.fit_params)
            raise InvalidParameter(
                f"{name} cannot use {names} with an SVM of more than two classes. Leave {names} "
                "out, or use output='decision'."
            )

    def view(self, fitted: Any) -> Model:
        view = probabilities_of if self.kind == "probability" else decisions_of
        return view(fitted, self.training.classes)

    def models(self, X: Any) -> list[FoldModel]:
        if self.calibrates and not self.training.left_out:
            return self.machines(X).models()
        return super().models(X)

    def machines(self, X: Any) -> CalibratedMachines:
        """Train SVMs and calibrate their probabilities."""
        return calibrate_machines(self.training, self.estimator, X, self.calibration)

    def statistic(self, before: Array) -> Statistic:
        return total_variation(before)

    def slopes(self, X: Array, units: Units, way: Derivative) -> Array:
        """Return the mean absolute derivative of the probabilities for each unit (FSPP4)."""
        if not self.calibrates:
            raise IncompatibleCriterion(
                f"{self.training.name} with by='derivative' needs an SVC without probabilities, "
                f"got {type(self.estimator).__name__}. Use by='marginal'."
            )
        machines = self.machines(X)

        def slopes(parts: list[tuple[Any, Any]]) -> list[ScaleSlopes]:
            return [slopes_of(machine, X[rows], units, way.follow) for machine, rows in parts]

        follow: ScaleSlopes | None = None
        if way.calibration:
            rows = np.concatenate([rows for _, rows in machines.calibrating])
            known = ScaleSlopes.joined(slopes(machines.calibrating))
            follow = known.sigmoids(machines.sigmoids, self.training.codes[rows])
        parts = slopes(machines.predicting)
        total = sum(probability_slopes(part, machines.sigmoids, follow) for part in parts)
        return np.asarray(total / len(X))


def needs_calibration(kind: str, estimator: Any) -> bool:
    """Return whether probabilities are compared although the model has no ``predict_proba``."""
    return kind == "probability" and not hasattr(estimator, "predict_proba")


class DensityOutput(Output):
    """Noise density around the predictions of a regressor."""

    def __init__(self, training: FoldTraining, estimator: Any, noise: str, symmetric: bool):
        super().__init__(training, estimator)
        self.noise, self.symmetric = noise, symmetric
        self.y = np.asarray(training.y, dtype=np.float64)
        self.dummy = DummyRegressor(strategy="median" if noise == "laplace" else "mean")
        check_target_range(training.name, np.asarray(training.y))

    def view(self, fitted: Any) -> Model:
        return predictions_of(fitted)

    def statistic(self, before: Array) -> Statistic:
        found: Statistic = NOISES[self.noise](before, self.y, self.symmetric)
        return found


def losses(output: Output, way: Perturbation, units: Units) -> Array:
    """Return the change of the outputs for each perturbed unit, of shape (repeats, units).

    A unit is a column, or a group of columns that is selected as one. Only ``Removal`` trains a new
    model for each unit. The value of a skipped repeat is nan.
    """
    training = output.training
    if isinstance(way, Replacement):
        X = training.columns(output.estimator, units.columns)
        comparison = output.comparison(output.models(X), X)
        return replacement_losses(comparison, way, units, X, training.seed, training.n_jobs)
    report_processor("Models retrained without a column, and derivatives, are computed")
    X = training.X[:, units.columns]
    if not isinstance(way, Removal):
        return output.slopes(X, units, way)[None]
    distance, found = output.distance(output.models(X), X), []
    for index in range(len(units.sizes)):
        rest = training.X[:, units.without(index)]
        models = output.models(rest) if rest.shape[1] else output.constants()
        found.append(distance(models, rest))
    return np.array([found])


class ScoreOutput(Output):
    """Score of a model.

    ``plain`` is the name of the score if it is a mean over rows that engines can sum up. For any
    other score of scikit-learn, engines compute the outputs of all rows, and the score is computed
    from these outputs.
    """

    def __init__(self, training: FoldTraining, estimator: Any, scoring: Any):
        super().__init__(training, estimator)
        self.scorer = one_scorer(training.name, estimator, scoring)
        self.plain = self._plain(plain_score(estimator, scoring))

    def _plain(self, plain: str | None) -> str | None:
        """Return the name of the score if engines support it, or else None.

        Engines do not support weights or, for R², a constant target.
        """
        training = self.training
        if plain is None or training.y is None or training.y.ndim > 1 or training.score_params:
            return None
        if plain == "neg_log_loss":
            return plain if self._has_all_classes else None
        if plain != "accuracy":
            check_target_range(training.name, training.y)
        if plain == "r2" and any(not self._spread(rows) > 0 for _, rows in training.parts):
            return None
        return plain

    def view(self, fitted: Any) -> Model:
        if self.plain == "accuracy":
            return decisions_of(fitted, self.training.classes)
        if self.plain == "neg_log_loss":
            probabilities = probabilities_of(fitted, self.training.classes)
            return replace(probabilities, link=log_probabilities)
        method = None if self.plain else self.method(fitted)
        return responses_of(fitted, method) or predictions_of(fitted)

    def method(self, fitted: Any) -> str | None:
        """Return the method of the model that the scorer calls, or None if it is not known."""
        truth = self.training.y
        if not isinstance(self.scorer, SCORER) or truth is None or truth.ndim > 1:
            return None
        asked = self.scorer._response_method
        names = [asked] if isinstance(asked, str) else asked
        return next((name for name in names if hasattr(fitted, name)), None)

    @property
    def _has_all_classes(self) -> bool:
        """Whether each fold has rows of all classes. Otherwise the log loss is not defined."""
        n_classes, codes = len(self.training.classes), self.training.codes
        each = (rows for fold in self.training.parts for rows in fold)
        return hasattr(self.estimator, "predict_proba") and all(
            len(np.unique(codes[rows])) == n_classes for rows in each
        )

    def constants(self) -> list[FoldModel]:
        training = self.training
        assert training.y is not None
        dummy = DummyClassifier() if training.task == "classification" else DummyRegressor()
        weights = {n: v for n, v in training.fit_params.items() if n == "sample_weight"}
        nothing, found = np.zeros((len(training.X), 0)), []
        for train, rest in training.parts:
            own = take_rows(weights, train)
            fitted = fit_clone(dummy, nothing[train], training.y[train], own)
            found.append(FoldModel(predictions_of(fitted), rest))
        return found

    def statistic(self, before: Array) -> Statistic:
        """Return a statistic that computes the decrease of the score from the rows' losses."""
        training, loss = self.training, "linear"
        if self.plain == "accuracy":  # a class is wrong if its indicator is not the true one
            truth = 1 - 2 * encode_classes(training.codes, len(training.classes))
            truth /= min(truth.shape[1], 2)
        elif self.plain == "neg_log_loss":  # the outputs are logarithms
            truth = -np.eye(len(training.classes))[training.codes]
        else:
            loss = "absolute" if self.plain == "neg_mean_absolute_error" else "squared"
            truth = np.asarray(training.y, dtype=np.float64)[:, None]
        weights = np.empty(len(truth))  # weight of each row in the mean over the folds
        for _, rows in training.parts:
            spread = self._spread(rows) if self.plain == "r2" else len(rows)
            weights[rows] = 1 / (len(training.parts) * spread)
        return WeightedLoss(before, truth, weights, loss)

    def _spread(self, rows: Rows) -> float:
        """Return the total sum of squares of the target in these rows, the denominator of R²."""
        y = np.asarray(self.training.y, dtype=np.float64)[rows]
        return float(((y - y.mean()) ** 2).sum())

    def comparison(self, models: list[FoldModel], X: Any) -> AnyComparison:
        if self.plain is not None:
            return super().comparison(models, X)
        report_processor("Scores that are not means over rows are computed")
        return self.stored(models, host(X)) or CopyComparison(
            partial(self.mean_score, models), host(X)
        )

    def stored(
        self, models: list[FoldModel], X: Array, n_jobs: int | None = None
    ) -> ScoreComparison | None:
        """Return a comparison of outputs that engines compute, or None if they cannot."""
        if any(responses_of(m.fitted, self.method(m.fitted)) is None for m, _ in models):
            return None
        engines = EngineComparison(models, X, mean_change, n_jobs)
        if engines.makes_copies:
            return None
        known = [FoldModel(replace(m, fitted=on_outputs(m.fitted)), rows) for m, rows in models]
        return ScoreComparison(engines, partial(self.mean_score, known, quick=True))

    def distance(self, models: list[FoldModel], X: Array) -> Distance:
        base = self.mean_score(models, X)
        return lambda others, Z: base - self.mean_score(others, Z)

    def mean_score(self, models: list[FoldModel], X: Array, quick: bool = False) -> float:
        """Return the mean score over the folds, as in cross-validation.

        If ``quick``, ``X`` contains outputs of the models, and faster functions may compute the
        score.
        """
        training, found = self.training, []
        for model, rows in models:
            truth = () if training.y is None else (training.y[rows],)
            weights, scorer = take_rows(training.score_params, rows), self.scorer
            if quick and not weights:
                scorer = quick_scorer(scorer, model.fitted, *truth)
            found.append(float(scorer(model.fitted, X[rows], *truth, **weights)))
        return float(np.mean(found))


#: Class of the scorers that scikit-learn makes. They call a single method of the model, once.
SCORER = type(get_scorer("accuracy"))


def one_scorer(name: str, estimator: Any, scoring: Any) -> Any:
    """Return the scorer of a ``scoring`` parameter. Raise an error for more than one score."""
    check_scored(name, estimator, scoring)
    scorer = check_scoring(estimator, scoring=scoring)
    if not callable(scorer) or isinstance(scoring, list | tuple | set | dict):
        raise InvalidParameter(
            f"{name} needs one score, got {scoring!r}. Write scoring='accuracy' or a function of "
            "(estimator, X, y)."
        )
    return scorer


def check_scored(name: str, estimator: Any, scoring: Any) -> None:
    """Raise an error if an estimator has no predictions that can be scored."""
    named = ("predict", "predict_proba", "decision_function") if scoring is not None else ("score",)
    if callable(scoring) or any(hasattr(estimator, method) for method in named):
        return
    raise IncompatibleCriterion(
        f"{name} needs an estimator that predicts the target, but {type(estimator).__name__} does "
        "not. Give a classifier or a regressor, or scoring as a function of (estimator, X, y)."
    )


def plain_score(estimator: Any, scoring: Any) -> str | None:
    """Return the name of the score if it is a mean over rows that engines support, or else None."""
    own = getattr(type(last_step(estimator)), "score", None)
    if scoring is None and own is ClassifierMixin.score:
        return "accuracy"
    if scoring is None and own is RegressorMixin.score:
        return "r2"
    if not isinstance(scoring, str):
        return None
    errors = ("r2", "neg_mean_squared_error", "neg_mean_absolute_error")
    regression = is_regressor(estimator) and scoring in errors
    classification = is_classifier(estimator) and scoring in ("accuracy", "neg_log_loss")
    return scoring if regression or classification else None
