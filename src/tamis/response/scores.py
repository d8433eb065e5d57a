"""The fall of a score: by engines where it is a mean over rows, by altered copies otherwise."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring

from tamis._arrays import Array, Mask, Subset, check_target_range
from tamis._namespace import host, note, say_processor
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.folds.rows import Rows
from tamis.response.answers import coded, decisions_of, predictions_of
from tamis.response.comparison import DrawComparison
from tamis.response.device import INSTEAD
from tamis.response.distances import Statistic, WeightedLoss
from tamis.response.engine import Model
from tamis.response.opening import last_step
from tamis.response.outputs import Distance, Output
from tamis.response.perturbations import Draw, Perturbation, Points, Shuffle
from tamis.response.training import FoldModel, SensitivityTraining, rows_of, trained


class ScoreOutput(Output):
    """A score, which engines follow where it is accuracy, R² or the squared error."""

    def __init__(self, training: SensitivityTraining, estimator: Any, scoring: Any):
        super().__init__(training, estimator)
        self.scorer = one_scorer(training.name, estimator, scoring)
        self.plain = self._plain(plain_score(estimator, scoring))

    def _plain(self, plain: str | None) -> str | None:
        """The score where engines can follow it: no weights, and R² with something to explain."""
        training = self.training
        if plain is None or training.y is None or training.y.ndim > 1 or training.score_params:
            return None
        if plain != "accuracy":
            check_target_range(training.name, training.y)
        if plain == "r2" and any(not self._spread(rows) > 0 for _, rows in training.parts):
            return None
        return plain

    @staticmethod
    def check(name: str, perturbation: Perturbation) -> None:
        """Refuse derivatives, and centres, which no score looks at."""
        Output.check(name, perturbation)
        if getattr(perturbation, "centres", False):
            raise IncompatibleCriterion(
                f"{name} alters rows, never a kernel's centres. Use by='zero'."
            )

    def models(self, X: Array) -> list[FoldModel]:
        training = self.training
        return [
            FoldModel(self.answers(training.fitted(self.estimator, X, train)), rest)
            for train, rest in training.parts
        ]

    def answers(self, fitted: Any) -> Model:
        """What a plain score looks at; any other asks the model itself."""
        if self.plain == "accuracy":
            return decisions_of(fitted, self.training.classes)
        return predictions_of(fitted)

    def constants(self) -> list[FoldModel]:
        training = self.training
        assert training.y is not None
        dummy = DummyClassifier() if training.task == "classification" else DummyRegressor()
        weights = {n: v for n, v in training.fit_params.items() if n == "sample_weight"}
        nothing = np.zeros((len(training.X), 0))
        return [
            FoldModel(
                predictions_of(
                    trained(dummy, nothing[train], training.y[train], rows_of(weights, train))
                ),
                rest,
            )
            for train, rest in training.parts
        ]

    def statistic(self, before: Array) -> Statistic:
        """The fall of a plain score, which is a weighted mean of the losses of rows."""
        training = self.training
        if self.plain == "accuracy":
            truth = coded(training.codes, len(training.classes))
        else:
            truth = np.asarray(training.y, dtype=np.float64)[:, None]
        return WeightedLoss(before, truth, self._row_weights(), self.plain != "accuracy")

    def _row_weights(self) -> Array:
        """Weights of the rows in the mean over the folds of a score."""
        parts = self.training.parts
        found = np.empty(len(self.training.X))
        for _, rows in parts:
            spread = self._spread(rows) if self.plain == "r2" else len(rows)
            found[rows] = 1 / (len(parts) * spread)
        return found

    def _spread(self, rows: Rows) -> float:
        """Sum of squares that R² divides by."""
        y = np.asarray(self.training.y, dtype=np.float64)[rows]
        return float(((y - y.mean()) ** 2).sum())

    def comparison(self, models: list[FoldModel], X: Any) -> DrawComparison:
        if self.plain is not None:
            return super().comparison(models, X)
        say_processor("Scores but accuracy, R² and the mean squared error are found", INSTEAD)
        note("scores")
        return CopyComparison(self, models, host(X))

    def distance(self, models: list[FoldModel], X: Array) -> Distance:
        base = self.mean_score(models, X)
        return lambda others, Z: base - self.mean_score(others, Z)

    def mean_score(self, models: list[FoldModel], X: Array) -> float:
        """Mean over the folds, as cross-validation has it."""
        return float(np.mean([self._score(part, X[part.rows]) for part in models]))

    def _score(self, part: FoldModel, X: Array) -> float:
        training = self.training
        truth = () if training.y is None else (training.y[part.rows],)
        weights = rows_of(training.score_params, part.rows)
        return float(self.scorer(part.model.fitted, X, *truth, **weights))


class CopyComparison:
    """Any score, of explicitly altered copies of the rows."""

    def __init__(self, output: ScoreOutput, models: list[FoldModel], X: Array):
        self.output, self.models, self.X = output, models, X
        self.base = output.mean_score(models, X)

    def scores(self, units: Subset, draw: Draw, wanted: Mask) -> Array:
        found = np.zeros(len(units))
        for unit in np.flatnonzero(wanted):
            found[unit] = self.base - self._altered(units[unit], unit, draw)
        return found

    def _altered(self, columns: Subset, unit: Any, draw: Draw) -> float:
        """Score with one unit replaced."""
        altered = self.X.copy()
        if isinstance(draw, Shuffle):
            altered[:, columns] = self.X[draw.donors[:, None], columns]
            return self.output.mean_score(self.models, altered)
        assert isinstance(draw, Points)
        total = 0.0
        for values, weight in zip(draw.values[unit], draw.weights[unit], strict=True):
            if weight > 0:
                altered[:, columns] = values
                total += weight * self.output.mean_score(self.models, altered)
        return total


def one_scorer(name: str, estimator: Any, scoring: Any) -> Any:
    """The scorer that a parameter names; several are refused."""
    check_scored(name, estimator, scoring)
    scorer = check_scoring(estimator, scoring=scoring)
    if not callable(scorer) or isinstance(scoring, list | tuple | set | dict):
        raise InvalidParameter(
            f"{name} needs one score, not {scoring!r}. Write scoring='accuracy' "
            "or a function of (estimator, X, y)."
        )
    return scorer


def check_scored(name: str, estimator: Any, scoring: Any) -> None:
    """Refuse an estimator without predictions that a score could be computed from."""
    named = ("predict", "predict_proba", "decision_function") if scoring is not None else ("score",)
    if callable(scoring) or any(hasattr(estimator, method) for method in named):
        return
    raise IncompatibleCriterion(
        f"{name} needs an estimator that predicts the target, but {type(estimator).__name__} does "
        "not. Give a classifier or a regressor, or scoring as a function of (estimator, X, y)."
    )


def plain_score(estimator: Any, scoring: Any) -> str | None:
    """Accuracy, r2 or neg_mean_squared_error where a score is one of them, else None."""
    own = getattr(type(last_step(estimator)), "score", None)
    if scoring is None and own is ClassifierMixin.score:
        return "accuracy"
    if scoring is None and own is RegressorMixin.score:
        return "r2"
    regression = is_regressor(estimator) and scoring in ("r2", "neg_mean_squared_error")
    accuracy = is_classifier(estimator) and scoring == "accuracy"
    return str(scoring) if regression or accuracy else None
