"""Machines of least squares, one without each row, whose outputs are those of that row.

All of them come from one inverse (:mod:`tamis.svm.newton.left_out`), without any training.
"""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from tamis._arrays import Array
from tamis._namespace import host, note
from tamis.exceptions import IncompatibleCriterion
from tamis.response.calibration import fit_sigmoids
from tamis.response.engines.base import FoldModel, Model, Outputs
from tamis.response.engines.kernel import MOST_VALUES
from tamis.response.fold_models import FoldTraining
from tamis.response.perturbations import Derivative, Perturbation
from tamis.svm.newton.left_out import LeftOutMachines, is_least_squares, left_out_machines


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
    machines = [
        found._replace(weights=found.weights[:, block], offsets=found.offsets[block])
        for block in blocks
    ]
    if link is None:
        X = host(X)
        pairs = zip(machines, blocks, strict=True)
        decisions = np.concatenate([_outputs(own, X[block]) for own, block in pairs])
        weights = None if weights is None else weights[rows]
        link = fit_sigmoids(decisions[rows], training.codes[rows], weights).probabilities
    return [
        FoldModel(Model(own, "left-out", partial(_outputs, own), link), block)
        for own, block in zip(machines, blocks, strict=True)
    ]


def _outputs(machines: LeftOutMachines, X: Array) -> Array:
    K = machines.machine.values(machines.machine.grams(X))
    return np.einsum("rm,orm->ro", K, machines.weights) + machines.offsets
