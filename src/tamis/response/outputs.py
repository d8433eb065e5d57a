"""What of a model's outputs is compared: probabilities or decisions, a density, a score.

An output belongs to a training and an estimator: it trains the models of a round, and measures how
far their outputs move.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, check_target_range
from tamis._namespace import note, say_processor
from tamis._parallel import parallel_map
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.response.calibration import (
    CalibratedMachines,
    calibrate_machines,
    is_one_against_the_rest,
)
from tamis.response.comparison import AnyComparison, EngineComparison, outputs_of
from tamis.response.derivative import ScaleSlopes, probability_slopes, slopes_of
from tamis.response.device import INSTEAD
from tamis.response.distances import (
    GaussDivergence,
    LaplaceDivergence,
    Statistic,
    total_variation,
)
from tamis.response.engines.base import FoldModel, Model, Outputs
from tamis.response.engines.registry import check_usable, last_step
from tamis.response.fold_models import FoldTraining
from tamis.response.left_out import left_out_models
from tamis.response.perturbations import (
    Derivative,
    Draw,
    Permutation,
    Perturbation,
    Points,
    Removal,
    Replacement,
)
from tamis.response.predictions import (
    as_it_is,
    decided_classes,
    decisions_of,
    predictions_of,
    probabilities_of,
)
from tamis.response.units import Units

NOISES: dict[str, Any] = {"laplace": LaplaceDivergence, "gaussian": GaussDivergence}
#: Distance of other models, which see other columns, from those that a round began with.
Distance = Callable[[list[FoldModel], Array], float]
#: Shuffles before a rank can be clear: fewer have no standard error worth the name.
FEWEST_SHUFFLES = 3
#: Blocks that the columns are dealt out in, for each process: enough to even out unequal ones.
BLOCKS_PER_JOB = 4


class Output(ABC):
    """What is compared, of one estimator trained on one table."""

    #: Link of machines without one row each, None if their decisions are calibrated.
    left_out_link: Outputs | None = staticmethod(as_it_is)

    def __init__(self, training: FoldTraining, estimator: Any):
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
    def view(self, fitted: Any) -> Model:
        """View a trained estimator by what is compared."""

    @abstractmethod
    def constants(self) -> list[FoldModel]:
        """Models that look at no column."""

    @abstractmethod
    def statistic(self, before: Array) -> Statistic:
        """Statistic of how far outputs move from these."""

    def models(self, X: Any) -> list[FoldModel]:
        """Train models on these columns; together they predict for all rows, each once."""
        training = self.training
        if training.left_out:
            return left_out_models(training, self.estimator, X, self.left_out_link)
        return [
            FoldModel(self.view(training.fit(self.estimator, X, train)), rest)
            for train, rest in training.parts
        ]

    def comparison(self, models: list[FoldModel], X: Any) -> AnyComparison:
        """Follow the draws of a perturbation."""
        training = self.training
        return EngineComparison(
            models, X, self.statistic, training.n_jobs, training.place, training.precision
        )

    def distance(self, models: list[FoldModel], X: Array) -> Distance:
        """Measure how far other models are from these."""
        statistic = self.statistic(outputs_of(models, X))
        return lambda others, Z: statistic.score(outputs_of(others, Z))

    def slopes(self, X: Array, units: Units, way: Derivative) -> Array:
        """Derivatives of what is compared by the scale of each unit, for outputs that have any."""
        raise NotImplementedError


def constant_model(values: Array, n_rows: int) -> list[FoldModel]:
    """Make a model with the same outputs for every row."""
    model = Model(None, "constant", lambda X: np.tile(values, (len(X), 1)), as_it_is)
    return [FoldModel(model, np.arange(n_rows))]


class ProbabilityOutput(Output):
    """Posterior probabilities, calibrated if a classifier has none, or predicted classes."""

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
                f"{name} needs predict_proba or decision_function, and "
                f"{last} has neither. Use output='decision'."
            )
        if self.calibration is None:
            raise InvalidParameter(
                f"{name}: {last} gives no probabilities and needs "
                "calibration, a number of folds or a held-out fraction, not None. Or use "
                "output='decision', which needs none."
            )
        if self.training.fit_params and is_one_against_the_rest(self.training, self.estimator):
            names = ", ".join(self.training.fit_params)
            raise InvalidParameter(
                f"{name} cannot use {names} with an SVM of more than two classes."
                f" Leave {names} out, or use output='decision'."
            )

    @staticmethod
    def check(name: str, perturbation: Perturbation) -> None:
        """Probabilities have a derivative."""

    def view(self, fitted: Any) -> Model:
        view = probabilities_of if self.kind == "probability" else decisions_of
        return view(fitted, self.training.classes)

    def models(self, X: Any) -> list[FoldModel]:
        if self.calibrates and not self.training.left_out:
            return self.machines(X).models()
        return super().models(X)

    def machines(self, X: Any) -> CalibratedMachines:
        """Train machines whose decisions become probabilities."""
        return calibrate_machines(self.training, self.estimator, X, self.calibration)

    def constants(self) -> list[FoldModel]:
        c, training = len(self.training.classes), self.training
        shares = np.bincount(training.codes[training.rows], minlength=c) / len(training.rows)
        if self.kind == "decision":
            shares = np.eye(c)[shares.argmax()]
        return constant_model(shares[1:] if c == 2 else shares, len(training.X))

    def statistic(self, before: Array) -> Statistic:
        return total_variation(before)

    def slopes(self, X: Array, units: Units, way: Derivative) -> Array:
        """Mean absolute derivatives of the posterior by the scale of each unit (FSPP4)."""
        if not self.calibrates:
            raise IncompatibleCriterion(
                f"by='derivative' needs an SVC, which {self.training.name} calibrates itself, not "
                f"{type(self.estimator).__name__}. Use by='marginal'."
            )
        machines = self.machines(X)

        def slopes(parts: list[tuple[Any, Any]]) -> list[ScaleSlopes]:
            return [slopes_of(machine, X[rows], units, way.follow) for machine, rows in parts]

        follow: ScaleSlopes | None = None
        if way.calibration:
            rows = np.concatenate([rows for _, rows in machines.calibrating])
            known = ScaleSlopes.joined(slopes(machines.calibrating))
            follow = known.sigmoids(machines.sigmoids, self.training.codes[rows])
        parts = slopes(machines.answering)
        total = sum(probability_slopes(part, machines.sigmoids, follow) for part in parts)
        return np.asarray(total / len(X))


def needs_calibration(kind: str, estimator: Any) -> bool:
    """Whether probabilities are asked of a classifier that has none."""
    return kind == "probability" and not hasattr(estimator, "predict_proba")


class DensityOutput(Output):
    """The density around the predictions of a regressor."""

    def __init__(self, training: FoldTraining, estimator: Any, noise: str, symmetric: bool):
        super().__init__(training, estimator)
        self.noise, self.symmetric = noise, symmetric
        self.y = np.asarray(training.y, dtype=np.float64)
        check_target_range(training.name, np.asarray(training.y))

    def view(self, fitted: Any) -> Model:
        return predictions_of(fitted)

    def constants(self) -> list[FoldModel]:
        middle = np.median(self.y) if self.noise == "laplace" else np.mean(self.y)
        return constant_model(np.array([middle]), len(self.y))

    def statistic(self, before: Array) -> Statistic:
        found: Statistic = NOISES[self.noise](before, self.y, self.symmetric)
        return found


def losses(output: Output, way: Perturbation, units: Units) -> Array:
    """Measure how far outputs move when units are perturbed: one training for all of them.

    Losses have the shape (repeats, units), nan where a repeat was spared.
    """
    training = output.training
    if isinstance(way, Replacement):
        X = training.columns(output.estimator, units.columns)
        comparison = output.comparison(output.models(X), X)
        return replacement_losses(comparison, way, units, X, training.seed, training.n_jobs)
    say_processor("Models without a column, and derivatives, are compared", INSTEAD)
    note("scores")
    X = training.X[:, units.columns]
    if not isinstance(way, Removal):
        return output.slopes(X, units, way)[None]
    distance, found = output.distance(output.models(X), X), []
    for index in range(len(units.sizes)):
        rest = training.X[:, units.without(index)]
        models = output.models(rest) if rest.shape[1] else output.constants()
        found.append(distance(models, rest))
    return np.array([found])


def replacement_losses(
    comparison: AnyComparison, way: Replacement, units: Units, X: Any, seed: int, n_jobs: int | None
) -> Array:
    """Scores of all draws of a replacement, of shape (repeats, units)."""
    sizes = units.by_size()
    found = np.full((way.n_draws, len(units.sizes)), np.nan)
    draws = zip(*(way.draws(X, columns, seed) for _, columns in sizes), strict=True)
    for repeat, of_size in enumerate(draws):
        wanted = np.ones(len(units.sizes), dtype=bool)
        if isinstance(way, Permutation) and way.stop_when_sure and repeat >= FEWEST_SHUFFLES:
            wanted = unclear(found[:repeat])
            if not wanted.any():
                break
        for (which, columns), draw in zip(sizes, of_size, strict=True):
            found[repeat, which] = _scores(comparison, columns, draw, wanted[which], n_jobs)
        found[repeat, ~wanted] = np.nan
    return found


def _scores(
    comparison: AnyComparison, units: Subset, draw: Draw, wanted: Any, n_jobs: int | None
) -> Array:
    """Scores of one draw; processes share the units if copies of the rows are made."""
    n_processes = effective_n_jobs(n_jobs) if comparison.makes_copies else 1
    if n_processes == 1:
        return comparison.scores(units, draw, wanted)
    items = []
    for block in np.array_split(np.arange(len(units)), BLOCKS_PER_JOB * n_processes):
        if len(block):
            own = draw
            if isinstance(draw, Points):
                own = Points(draw.values[block], draw.weights[block])
            items.append((units[block], own, wanted[block]))
    return np.concatenate(parallel_map(comparison.scores, items, n_jobs))


def unclear(scores: Array) -> NDArray[np.bool_]:
    """Units whose rank is open: two scores within two standard errors of both.

    >>> unclear(np.array([[0.0, 1.0, 1.1], [0.1, 1.2, 1.0], [0.0, 1.1, 1.2]]))
    array([False,  True,  True])
    """
    means, errors = mean_and_error(scores)
    order = np.argsort(means)
    gaps = np.diff(means[order]) <= 2 * np.hypot(errors[order][1:], errors[order][:-1])
    found = np.zeros(len(means), dtype=bool)
    found[order[1:]] |= gaps
    found[order[:-1]] |= gaps
    return found


def mean_and_error(scores: Array) -> tuple[Array, Array]:
    """Means over two repeats or more and their standard errors; nan where a repeat was spared."""
    counts = np.isfinite(scores).sum(axis=0)
    errors = np.nanstd(scores, axis=0, ddof=1) / np.sqrt(counts)
    return np.asarray(np.nanmean(scores, axis=0)), np.asarray(errors)
