"""Machines calibrated by Platt's sigmoids, and machines without one row each.

The latter come from one inverse (:mod:`tamis.svm.newton.left_out`), without any training.
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
    """p = 1 / (1 + exp(A f + B)) for each output; several are normalised to sum 1."""

    slopes: Array
    offsets: Array

    def probabilities(self, decisions: Any) -> Any:
        """Probability of the second of two classes, or of each of several."""
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
        """Whether one of them rises, and none is a step for these decisions.

        Platt's targets are no surer than log(n + 1), so that a sigmoid which leaves half of the
        rows surer than twice that was made for decisions of another size.
        """
        sure = np.median(np.abs(decisions * self.slopes + self.offsets), axis=0)
        return bool((self.slopes < 0).any() and (sure <= 2 * np.log(len(decisions) + 1)).all())


def fit_sigmoids(decisions: Array, codes: NDArray[np.intp], weights: Any = None) -> Sigmoids:
    """Fit sigmoids to decision values that the machines gave for rows they had not seen.

    Platt's targets and the fit are those of ``CalibratedClassifierCV(method="sigmoid")``.
    """
    labels = [1] if decisions.shape[1] == 1 else range(decisions.shape[1])
    found = [
        _SigmoidCalibration().fit(own, codes == label, weights)
        for own, label in zip(decisions.T, labels, strict=True)
    ]
    return Sigmoids(np.array([one.a_ for one in found]), np.array([one.b_ for one in found]))


class CalibratedMachines(NamedTuple):
    """Machines with the rows that they answer for, with those that made the sigmoids, and these."""

    answering: list[tuple[Any, Rows]]
    calibrating: list[tuple[Any, Rows]]
    sigmoids: Sigmoids

    def models(self) -> list[FoldModel]:
        """Machines whose decisions become probabilities."""
        link = self.sigmoids.probabilities
        return [FoldModel(decision_values(one, link), rows) for one, rows in self.answering]


def calibrate_machines(
    training: FoldTraining, estimator: Any, X: Array, calibration: int | float
) -> CalibratedMachines:
    """Train machines with sigmoids from rows that they had not seen, if those are of use.

    ``calibration`` is a number of folds or a held-out fraction; rows that are held out anyway serve
    instead.
    """
    apart = is_one_against_the_rest(training, estimator)
    base = OneVsRestClassifier(estimator) if apart else estimator
    if training.held_out:
        answering = [(training.fit(base, X, train), rest) for train, rest in training.parts]
        unseen = [(machine, rest[training.codes[rest] >= 0]) for machine, rest in answering]
        return CalibratedMachines(answering, unseen, _sigmoids(training, X, unseen))
    train, parts = calibrating_parts(training, calibration)
    unseen = [(training.fit(base, X, rows), rest) for rows, rest in parts]
    whole = training.fit(base, X, train) if is_int(calibration) else unseen[0][0]
    answering = [(whole, np.arange(X.shape[0]))]
    sigmoids = _sigmoids(training, X, unseen)
    if sigmoids.suit(_decisions(whole, X, train)):
        return CalibratedMachines(answering, unseen, sigmoids)
    # a nearly diagonal kernel answers almost nothing on unseen rows, and +-1 on its own: a
    # sigmoid made for the former is a step for the latter, and every score would be 0
    seen = [(whole, train)]
    return CalibratedMachines(answering, seen, _sigmoids(training, X, seen))


def is_one_against_the_rest(training: FoldTraining, estimator: Any) -> bool:
    """Whether the decisions are votes, which jump; machines one against the rest do not."""
    return has_votes(estimator) and len(training.classes) > 2


def calibrating_parts(training: FoldTraining, calibration: int | float) -> tuple[Rows, list[Fold]]:
    """Rows that the machine trains on, and (train, rest) of those that make the sigmoid."""
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
    """Refuse estimators whose machines without one row each take a training each."""
    if not is_least_squares(estimator):
        raise IncompatibleCriterion(
            f"{name} with on='left-out' needs NewtonSVR(epsilon=0) or "
            "NewtonSVC(loss='squared_error') by itself and without landmarks, whose machines "
            f"without one row each take no training, not {estimator!r}. Use on='held-out'."
        )
    if isinstance(way, Derivative):
        raise IncompatibleCriterion(
            f"{name} has no derivative with on='left-out'. Use by='marginal', or on='training'."
        )


def left_out_models(
    training: FoldTraining, estimator: Any, X: Any, link: Outputs | None
) -> list[FoldModel]:
    """Make the machines, with as many rows at a time as an engine may have.

    Without a link their decisions on the rows that they did not see make their sigmoids.
    """
    assert training.y is not None
    rows, weights = training.rows, training.fit_params.get("sample_weight")
    note("training", X)
    found = left_out_machines(clone(estimator), X, training.y, rows, weights)
    n_rows, n_centres = found.weights.shape[1:]
    size = max(1, MOST_VALUES // max(1, n_centres))
    blocks = [np.arange(k, min(k + size, n_rows)) for k in range(0, n_rows, size)]
    models = []
    for block in blocks:
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
