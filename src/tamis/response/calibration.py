"""Probabilities of decision values: Platt's sigmoids, fitted by scikit-learn, and their rows."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsRestClassifier

from tamis._arrays import Array, is_int
from tamis.folds.rows import Fold, Rows, held_out
from tamis.response.answers import Decided
from tamis.response.engine import Model
from tamis.response.opening import last_step
from tamis.response.training import FoldModel, SensitivityTraining, rows_of, some_rows


class Sigmoids(NamedTuple):
    """p = 1 / (1 + exp(A f + B)) for each output; several are normalised to sum 1."""

    slopes: Array
    offsets: Array

    def probabilities(self, decisions: Array) -> Array:
        """Probability of the second of two classes, or of each of several."""
        z = decisions * self.slopes
        z += self.offsets
        with np.errstate(over="ignore"):
            np.exp(z, out=z)
        z += 1.0
        p = np.reciprocal(z, out=z)
        if len(self.slopes) == 1:
            return p
        total = p.sum(axis=-1, keepdims=True)
        return np.divide(p, total, out=np.full_like(p, 1 / len(self.slopes)), where=total > 0)

    def suit(self, decisions: Array) -> bool:
        """Whether one of them rises, and none is a step for these decisions.

        Platt's targets are no surer than log(n + 1), so that a sigmoid which leaves half of the
        rows surer than twice that was made for decisions of another size.
        """
        sure = np.median(np.abs(decisions * self.slopes + self.offsets), axis=0)
        return bool((self.slopes < 0).any() and (sure <= 2 * np.log(len(decisions) + 1)).all())


class Decisions(ClassifierMixin, BaseEstimator):
    """Classifier whose input already is its decision values."""

    def fit(self, X: Array, y: NDArray[Any]) -> "Decisions":
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Array) -> NDArray[Any]:
        """Class of the greatest decision value."""
        two = X.shape[1] == 1
        return np.asarray(self.classes_[(X[:, 0] > 0).astype(int) if two else X.argmax(axis=1)])

    def decision_function(self, X: Array) -> Array:
        """The input."""
        return X[:, 0] if X.shape[1] == 1 else X


def fit_sigmoids(decisions: Array, codes: NDArray[np.intp], weights: Any = None) -> Sigmoids:
    """Sigmoids of decision values that the machines gave for rows they had not seen.

    Platt's targets and the fit are those of ``CalibratedClassifierCV(method="sigmoid")``.
    """
    known = FrozenEstimator(Decisions().fit(decisions, codes))
    everything = np.arange(len(codes))
    fitted = CalibratedClassifierCV(
        known, method="sigmoid", ensemble=False, cv=[(everything, everything)]
    )
    with warnings.catch_warnings():  # the machines behind the decisions had the weights already
        warnings.filterwarnings("ignore", "Since FrozenEstimator does not appear", UserWarning)
        fitted.fit(decisions, codes, sample_weight=weights)
    calibrators = fitted.calibrated_classifiers_[0].calibrators
    slopes = np.array([float(one.a_) for one in calibrators])
    return Sigmoids(slopes, np.array([float(one.b_) for one in calibrators]))


class CalibratedMachines(NamedTuple):
    """Machines with the rows that they answer for, with those that made the sigmoids, and these."""

    answering: list[tuple[Any, Rows]]
    calibrating: list[tuple[Any, Rows]]
    sigmoids: Sigmoids

    def models(self) -> list[FoldModel]:
        """Machines whose decisions become probabilities."""
        link = self.sigmoids.probabilities
        return [
            FoldModel(Model(machine, "decision_function", Decided(machine), link), rows)
            for machine, rows in self.answering
        ]


def calibrated_machines(
    training: SensitivityTraining, estimator: Any, X: Array, calibration: int | float
) -> CalibratedMachines:
    """Machines with sigmoids from rows that they had not seen, where those are of use.

    ``calibration`` is a number of folds or a held-out fraction; rows that are held out anyway serve
    instead.
    """
    apart = one_against_the_rest(training, estimator)
    base = OneVsRestClassifier(estimator) if apart else estimator
    if training.held_out:
        answering = [(training.fitted(base, X, train), rest) for train, rest in training.parts]
        unseen = [(machine, rest[training.codes[rest] >= 0]) for machine, rest in answering]
        return CalibratedMachines(answering, unseen, _sigmoids(training, X, unseen))
    train, parts = calibrating_parts(training, calibration)
    unseen = [(training.fitted(base, X, rows), rest) for rows, rest in parts]
    whole = training.fitted(base, X, train) if is_int(calibration) else unseen[0][0]
    answering = [(whole, np.arange(X.shape[0]))]
    sigmoids = _sigmoids(training, X, unseen)
    if sigmoids.suit(Decided(whole)(some_rows(X, train))):
        return CalibratedMachines(answering, unseen, sigmoids)
    # a nearly diagonal kernel answers almost nothing on unseen rows, and +-1 on its own: a
    # sigmoid made for the former is a step for the latter, and every score would be 0
    seen = [(whole, train)]
    return CalibratedMachines(answering, seen, _sigmoids(training, X, seen))


def one_against_the_rest(training: SensitivityTraining, estimator: Any) -> bool:
    """Whether the decisions are votes, which jump; machines one against the rest do not."""
    votes = hasattr(last_step(estimator), "decision_function_shape")
    return votes and len(training.classes) > 2


def calibrating_parts(
    training: SensitivityTraining, calibration: int | float
) -> tuple[Rows, list[Fold]]:
    """Rows that the machine trains on, and (train, rest) of those that make the sigmoid."""
    if is_int(calibration):
        return training.rows, training.split(int(calibration))
    rows, codes = training.rows, training.codes
    groups = None if training.groups is None else training.groups[rows]
    parts = held_out(training.name, calibration, codes[rows], groups, training.seed)
    train, rest = (rows[part] for part in parts)
    return train, [(train, rest)]


def _sigmoids(
    training: SensitivityTraining, X: Array, machines: list[tuple[Any, Rows]]
) -> Sigmoids:
    decisions = np.concatenate([Decided(machine)(some_rows(X, rest)) for machine, rest in machines])
    rows = np.concatenate([rest for _, rest in machines])
    weights = rows_of(training.fit_params, rows).get("sample_weight")
    return fit_sigmoids(decisions, training.codes[rows], weights)
