"""The fall of a score: by engines if it is a mean over rows, by altered copies otherwise."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring

from tamis._arrays import Array, check_target_range
from tamis._namespace import host, note, say_processor
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.response.comparison import AnyComparison, CopyComparison
from tamis.response.device import INSTEAD
from tamis.response.distances import Statistic, WeightedLoss
from tamis.response.engines.base import FoldModel, Model
from tamis.response.engines.registry import last_step
from tamis.response.fold_models import FoldTraining, fit_clone, take_rows
from tamis.response.outputs import Distance, Output
from tamis.response.perturbations import Perturbation, Zero
from tamis.response.predictions import coded, decisions_of, predictions_of
from tamis.validation.splits import Rows


class ScoreOutput(Output):
    """A score, which engines follow if it is accuracy, R² or the squared error."""

    def __init__(self, training: FoldTraining, estimator: Any, scoring: Any):
        super().__init__(training, estimator)
        self.scorer = one_scorer(training.name, estimator, scoring)
        self.plain = self._plain(plain_score(estimator, scoring))

    def _plain(self, plain: str | None) -> str | None:
        """The score if engines can follow it: no weights, and R² with something to explain."""
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
        if isinstance(perturbation, Zero) and perturbation.centres:
            raise IncompatibleCriterion(
                f"{name} alters rows, never a kernel's centres. Use by='zero'."
            )

    def view(self, fitted: Any) -> Model:
        if self.plain == "accuracy":
            return decisions_of(fitted, self.training.classes)
        return predictions_of(fitted)

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
        """The fall of a plain score, which is a weighted mean of the losses of rows."""
        training, accuracy = self.training, self.plain == "accuracy"
        if accuracy:
            truth = coded(training.codes, len(training.classes))
        else:
            truth = np.asarray(training.y, dtype=np.float64)[:, None]
        weights = np.empty(len(truth))  # of the rows in the mean over the folds of a score
        for _, rows in training.parts:
            spread = self._spread(rows) if self.plain == "r2" else len(rows)
            weights[rows] = 1 / (len(training.parts) * spread)
        return WeightedLoss(before, truth, weights, not accuracy)

    def _spread(self, rows: Rows) -> float:
        """Sum of squares that R² divides by."""
        y = np.asarray(self.training.y, dtype=np.float64)[rows]
        return float(((y - y.mean()) ** 2).sum())

    def comparison(self, models: list[FoldModel], X: Any) -> AnyComparison:
        if self.plain is not None:
            return super().comparison(models, X)
        say_processor("Scores but accuracy, R² and the mean squared error are found", INSTEAD)
        note("scores")
        return CopyComparison(partial(self.mean_score, models), host(X))

    def distance(self, models: list[FoldModel], X: Array) -> Distance:
        base = self.mean_score(models, X)
        return lambda others, Z: base - self.mean_score(others, Z)

    def mean_score(self, models: list[FoldModel], X: Array) -> float:
        """Mean over the folds, as in cross-validation."""
        training, found = self.training, []
        for model, rows in models:
            truth = () if training.y is None else (training.y[rows],)
            weights = take_rows(training.score_params, rows)
            found.append(float(self.scorer(model.fitted, X[rows], *truth, **weights)))
        return float(np.mean(found))


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
