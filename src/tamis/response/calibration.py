"""SVMs calibrated by Platt's sigmoids, and leave-one-out models of least-squares SVMs.

All leave-one-out models are computed from a single matrix inverse
(:mod:`tamis.svm.newton.left_out`), without further training.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.multiclass import OneVsRestClassifier

from tamis._arrays import Array, is_int
from tamis._namespace import host, move, namespace, note
from tamis.exceptions import IncompatibleCriterion
from tamis.response.engines.base import FoldModel, Model, Outputs
from tamis.response.engines.kernel import MOST_VALUES
from tamis.response.fold_models import FoldTraining, select_rows, take_rows
from tamis.response.perturbations import Derivative, Perturbation
from tamis.response.predictions import as_it_is, decision_values, has_votes
from tamis.svm.newton.left_out import LeftOutMachines, is_least_squares, left_out_machines
from tamis.validation.splits import Fold, Rows, held_out


class Sigmoids(NamedTuple):
    """Platt's sigmoids p = 1 / (1 + exp(A f + B)), one for each output.

    With more than one output, the probabilities are normalised to sum to 1.
    """

    slopes: Array
    offsets: Array

    def probabilities(self, decisions: Any) -> Any:
        """Return the probability of the second of two classes, or of each of several classes."""
        xp = namespace(decisions)
        z = decisions * move(self.slopes, decisions)
        z += move(self.offsets, decisions)
        with np.errstate(over="ignore", invalid="ignore"):
            z = xp.exp(z)
            z += 1.0
            p = 1 / z
            if len(self.slopes) == 1:
                return p
            total = xp.sum(p, axis=-1, keepdims=True)
            return xp.where(total > 0, p / total, 1 / len(self.slopes))

    def suit(self, decisions: Array) -> bool:
        """Return whether the sigmoids are usable for these decisions.

        At least one sigmoid must rise, and none may be nearly a step function. The log-odds of
        Platt's targets are at most log(n + 1). If half of the rows have log-odds above twice this
        bound, the sigmoid was fitted to decisions on a different scale.
        """
        log_odds = np.median(np.abs(decisions * self.slopes + self.offsets), axis=0)
        return bool((self.slopes < 0).any() and (log_odds <= 2 * np.log(len(decisions) + 1)).all())


def fit_sigmoids(decisions: Array, codes: NDArray[np.intp], weights: Any = None) -> Sigmoids:
    """Fit sigmoids to decision values of held-out rows.

    The result is the same as with ``CalibratedClassifierCV(method="sigmoid")``.
    """
    labels = [1] if decisions.shape[1] == 1 else range(decisions.shape[1])
    found = [
        _SigmoidCalibration().fit(own, codes == label, weights)
        for own, label in zip(decisions.T, labels, strict=True)
    ]
    return Sigmoids(np.array([one.a_ for one in found]), np.array([one.b_ for one in found]))


class CalibratedMachines(NamedTuple):
    """Fitted SVMs, and the sigmoids that calibrate them.

    ``predicting`` contains pairs of an SVM and the rows that it predicts. ``calibrating`` contains
    pairs of an SVM and the rows whose decisions were used to fit the sigmoids.
    """

    predicting: list[tuple[Any, Rows]]
    calibrating: list[tuple[Any, Rows]]
    sigmoids: Sigmoids

    def models(self) -> list[FoldModel]:
        """Return the predicting SVMs as models whose outputs are probabilities."""
        link = self.sigmoids.probabilities
        return [FoldModel(decision_values(one, link), rows) for one, rows in self.predicting]


def calibrate_machines(
    training: FoldTraining, estimator: Any, X: Array, calibration: int | float
) -> CalibratedMachines:
    """Train SVMs, and fit sigmoids to the decisions of held-out rows.

    If these sigmoids are not usable, sigmoids are fitted to the decisions of the training rows.

    ``calibration`` is a number of folds or a held-out fraction. If ``training`` already holds out
    rows, these rows are used instead.
    """
    one_vs_rest = is_one_against_the_rest(training, estimator)
    base = OneVsRestClassifier(estimator) if one_vs_rest else estimator
    if training.held_out:
        predicting = [(training.fit(base, X, train), rest) for train, rest in training.parts]
        unseen = [(model, rest[training.codes[rest] >= 0]) for model, rest in predicting]
        return CalibratedMachines(predicting, unseen, _sigmoids(training, X, unseen))
    train, parts = calibrating_parts(training, calibration)
    unseen = [(training.fit(base, X, rows), rest) for rows, rest in parts]
    model = training.fit(base, X, train) if is_int(calibration) else unseen[0][0]
    predicting = [(model, np.arange(X.shape[0]))]
    sigmoids = _sigmoids(training, X, unseen)
    if sigmoids.suit(_decisions(model, X, train)):
        return CalibratedMachines(predicting, unseen, sigmoids)
    # With a nearly diagonal kernel, decisions are about 0 on held-out rows and +-1 on training
    # rows. A sigmoid fitted to held-out rows is then a step function on training rows, and every
    # score would be 0.
    seen = [(model, train)]
    return CalibratedMachines(predicting, seen, _sigmoids(training, X, seen))


def is_one_against_the_rest(training: FoldTraining, estimator: Any) -> bool:
    """Return whether one-vs-rest SVMs are trained instead of the estimator itself.

    They are needed if the estimator predicts more than two classes by votes of class pairs. Votes
    are not continuous, so they cannot be calibrated.
    """
    return has_votes(estimator) and len(training.classes) > 2


def calibrating_parts(training: FoldTraining, calibration: int | float) -> tuple[Rows, list[Fold]]:
    """Return the training rows of the SVM, and the folds that calibrate it.

    The sigmoids are fitted to the held-out rows of these folds.
    """
    if is_int(calibration):
        return training.rows, training.split(int(calibration))
    rows, codes = training.rows, training.codes
    groups = None if training.groups is None else training.groups[rows]
    parts = held_out(training.name, calibration, codes[rows], groups, training.seed)
    train, rest = (rows[part] for part in parts)
    return train, [(train, rest)]


def _sigmoids(training: FoldTraining, X: Array, machines: list[tuple[Any, Rows]]) -> Sigmoids:
    decisions = np.concatenate([_decisions(machine, X, rest) for machine, rest in machines])
    rows = np.concatenate([rest for _, rest in machines])
    weights = take_rows(training.fit_params, rows).get("sample_weight")
    return fit_sigmoids(decisions, training.codes[rows], weights)


def _decisions(machine: Any, X: Any, rows: Rows) -> Array:
    return decision_values(machine, as_it_is).raw(select_rows(X, rows))


def check_left_out(name: str, estimator: Any, way: Perturbation) -> None:
    """Raise an error for estimators without closed-form leave-one-out models."""
    if not is_least_squares(estimator):
        raise IncompatibleCriterion(
            f"{name} with on='left-out' needs NewtonSVR(epsilon=0) or "
            "NewtonSVC(loss='squared_error'), without landmarks and outside a pipeline, "
            f"got {estimator!r}. Use on='held-out'."
        )
    if isinstance(way, Derivative):
        raise IncompatibleCriterion(
            f"{name} has no derivative with on='left-out'. Use by='marginal', or on='training'."
        )


def left_out_models(
    training: FoldTraining, estimator: Any, X: Any, link: Outputs | None
) -> list[FoldModel]:
    """Return leave-one-out models, in row blocks that fit into the memory of an engine.

    If ``link`` is None, sigmoids are fitted to the leave-one-out decisions.
    """
    assert training.y is not None
    rows, weights = training.rows, training.fit_params.get("sample_weight")
    note("training", X)
    found = left_out_machines(clone(estimator), X, training.y, rows, weights)
    n_rows, n_centres = found.weights.shape[1:]
    size = max(1, MOST_VALUES // max(1, n_centres))
    models = []
    for start in range(0, n_rows, size):
        block = np.arange(start, min(start + size, n_rows))
        own = found._replace(weights=found.weights[:, block], offsets=found.offsets[block])
        model = Model(own, "left-out", partial(_outputs, own), link or as_it_is)
        models.append(FoldModel(model, block))
    if link is not None:
        return models
    X, weights = host(X), None if weights is None else weights[rows]
    decisions = np.concatenate([model.raw(X[block]) for model, block in models])
    link = fit_sigmoids(decisions[rows], training.codes[rows], weights).probabilities
    return [FoldModel(replace(model, link=link), block) for model, block in models]


def _outputs(machines: LeftOutMachines, X: Array) -> Array:
    K = machines.machine.values(machines.machine.grams(X))
    return np.einsum("rm,orm->ro", K, machines.weights) + machines.offsets
