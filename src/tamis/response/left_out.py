"""Machines of least squares of which each row meets the one that did not see it.

All of them come from one inverse (:mod:`tamis.svm.newton.left_out`), without any training.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from tamis._arrays import Array
from tamis._namespace import host, note
from tamis.exceptions import IncompatibleCriterion
from tamis.response.calibration import fit_sigmoids
from tamis.response.engine import Model, Outputs
from tamis.response.kernel import MOST_VALUES
from tamis.response.perturbations import Derivative, Perturbation
from tamis.response.training import FoldModel, SensitivityTraining
from tamis.svm.newton.left_out import LeftOutMachines, is_least_squares, left_out_machines


def check_left_out(name: str, estimator: Any, way: Perturbation) -> None:
    """Refuse what has no machines without one row each but by as many trainings."""
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
    training: SensitivityTraining, estimator: Any, X: Any, link: Outputs
) -> list[FoldModel]:
    """The machines, with as many rows at a time as an engine may have."""
    return _models(_machines(training, estimator, X), link)


def left_out_probabilities(
    training: SensitivityTraining, estimator: Any, X: Any
) -> list[FoldModel]:
    """Machines whose decisions on the rows that they did not see made their sigmoids."""
    found, X = _machines(training, estimator, X), host(X)
    decisions = np.concatenate([_answers(part, X[rows]) for part, rows in _blocks(found)])
    rows, weights = training.rows, training.fit_params.get("sample_weight")
    weights = None if weights is None else weights[rows]
    sigmoids = fit_sigmoids(decisions[rows], training.codes[rows], weights)
    return _models(found, sigmoids.probabilities)


def _machines(training: SensitivityTraining, estimator: Any, X: Any) -> LeftOutMachines:
    assert training.y is not None
    weights = training.fit_params.get("sample_weight")
    note("training", X)
    return left_out_machines(clone(estimator), X, training.y, training.rows, weights)


def _models(machines: LeftOutMachines, link: Outputs) -> list[FoldModel]:
    return [
        FoldModel(Model(part, "left-out", partial(_answers, part), link), rows)
        for part, rows in _blocks(machines)
    ]


def _blocks(machines: LeftOutMachines) -> Iterator[tuple[LeftOutMachines, Any]]:
    n_rows, n_centres = machines.weights.shape[1:]
    size = max(1, MOST_VALUES // max(1, n_centres))
    for first in range(0, n_rows, size):
        rows = np.arange(first, min(first + size, n_rows))
        own = machines.weights[:, rows], machines.offsets[rows]
        yield LeftOutMachines(machines.machine, *own), rows


def _answers(machines: LeftOutMachines, X: Array) -> Array:
    K = machines.machine.values(machines.machine.grams(X))
    return np.einsum("rm,orm->ro", K, machines.weights) + machines.offsets
