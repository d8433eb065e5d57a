"""What comparing outputs costs: trainings, what engines hold, and answers to altered rows.

Numbers of operations are nanoseconds measured on tables of 100 to 600 rows and 20 to 300 columns;
two classes are taken for granted, of which the table alone tells nothing.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR

from tamis._arrays import is_int, is_real
from tamis.contract import Cost
from tamis.response.comparison import BLOCK, KEPT
from tamis.response.engine import ROWS_AT_ONCE
from tamis.response.hidden import TunedMLP, plain_network
from tamis.response.kernel import BATCH_SIZE, MOST_VALUES
from tamis.response.network import BLOCK as HIDDEN_BLOCK
from tamis.response.perturbations import (
    Derivative,
    Marginal,
    Permutation,
    Perturbation,
    Removal,
)
from tamis.response.radial import MOST_NODES, STEEPEST, own_nodes, shared_nodes
from tamis.response.training import (
    FEW_ROWS,
    FOLDS_OF_FEW,
    FOLDS_OF_MANY,
    MANY_COLUMNS,
    holds_out,
)
from tamis.response.tuned import N_VALUES, TunedSVC
from tamis.svm.machine import KERNELS
from tamis.svm.relative import COSTS, SCALES, TUBES, RelativeSVC, RelativeSVR, TunedSVR

#: Operations of a product and sum inside a matrix product.
PRODUCT = 0.06
#: Operations of an exponential, and of an altered output with its link and its part of a score.
EXPONENTIAL, OUTPUT = 12.0, 6.0
#: Operations of a hidden unit for each row, and of a call of a model or of a scorer.
HIDDEN, CALL, SCORING = 5.0, 3e5, 2e6
#: Operations of Platt's sigmoid, which scikit-learn fits.
SIGMOID = 1.5e7
#: Operations of a batch of a network that is trained by steps, beside its products.
STEP = 2e5
#: Iterations after which a network trained by L-BFGS rests, of those allowed.
RESTS = 150
#: Arrays of the size of a block of altered outputs that a statistic makes.
OF_A_BLOCK = 4
#: How far columns of standard deviation 1 reach, for the nodes of an RBF kernel.
REACH = 3.0
#: A gamma beyond which a kernel is diagonal, and costs no more.
WIDEST = 1e6


def machine_training(n_samples: float, n_features: float) -> float:
    """Operations of training a kernel machine.

    It is taken to be trained in the time of its kernel matrix, as it is where classes do not
    overlap much.
    """
    return 1.2e6 + 0.8 * n_samples**2 * n_features


def ridge_training(n_samples: int, n_features: int) -> Cost:
    """What a ridge regression takes."""
    few, cells = min(n_samples, n_features), float(n_samples) * n_features
    return Cost(3e6 + 10 * cells + 0.04 * few * cells, 28 * cells + 8 * few**2)


@dataclass(frozen=True)
class ModelCost(ABC):
    """What an estimator of a known kind costs on a table of some size."""

    estimator: Any

    @abstractmethod
    def training(self, n: int, d: int) -> Cost:
        """Of one training."""

    @abstractmethod
    def of_a_row(self, n: int, d: int) -> float:
        """Operations of the output of one row by a model trained on n."""

    @abstractmethod
    def answers(self, n: int, d: int, n_points: int) -> Cost:
        """Of the outputs of all rows as each column meets so many values, by an engine."""

    def copies(self, n: int, d: int, n_points: int) -> Cost:
        """The same by altered copies of the rows."""
        rows = min(n * n_points, max(ROWS_AT_ONCE, n))
        calls = d * (1 + n * n_points / ROWS_AT_ONCE) * CALL
        each = self.of_a_row(n, d) + 3 * d
        return Cost(calls + d * float(n) * n_points * each, 8 * rows * (1.5 * d + 10))

    def outputs(self, n: int, d: int, n_points: int) -> Cost:
        """Of what is made of the answers: the values that columns meet, and blocks of outputs."""
        made = float(n) * d * n_points
        held = OF_A_BLOCK * 8 * min(made, max(BLOCK, 16 * n_points))
        return Cost(OUTPUT * made, held + 8 * d * (n + 2.0 * n_points))


class MachineCost(ModelCost):
    """Of an SVC or SVR with a known kernel; all rows are taken for centres."""

    def training(self, n: int, d: int) -> Cost:
        return Cost(machine_training(n, d), 24.0 * n * d)

    def of_a_row(self, n: int, d: int) -> float:
        return n * (d + EXPONENTIAL)

    def answers(self, n: int, d: int, n_points: int) -> Cost:
        pairs, made = float(n) ** 2, float(n) * d
        kernel = pairs * (0.1 * d + EXPONENTIAL)
        held = min(16 * pairs, KEPT + 16.0 * MOST_VALUES)
        if self.estimator.kernel != "rbf":
            n_terms = 1 + (self.estimator.degree if self.estimator.kernel == "poly" else 1)
            terms = 3 * 8 * n_terms * min(made, BATCH_SIZE / (2 * n_terms))
            return Cost(kernel + 0.5 * n_terms * pairs * d, held + terms)
        nodes = self._nodes(d)
        each = PRODUCT * abs(nodes) * pairs + n * abs(nodes) * EXPONENTIAL
        each += PRODUCT * abs(nodes) * float(n) * n_points
        if nodes < 0:  # a kernel without it is made for every column
            own = 3 * 8 * min(pairs, MOST_VALUES)
            return Cost(kernel + d * (each + EXPONENTIAL * pairs), held + own)
        batch = 4 * 8 * min(nodes * made, BATCH_SIZE / 2)
        return Cost(kernel + d * each, held + batch)

    def _nodes(self, d: int) -> int:
        """Nodes that a column of standard deviation 1 needs; of its own kernel if negative."""
        machine, gamma = self.estimator, 1 / d
        relative = isinstance(machine, RelativeSVC | RelativeSVR)
        given = machine.scale if relative else machine.gamma
        if is_real(given):  # what is no width at all, the training refuses
            gamma = min(max(0.0, float(given)), WIDEST) / (d if relative else 1)
        width = gamma * REACH**2
        if 5 * width > STEEPEST:
            return -min(own_nodes(float(2.0 ** np.ceil(np.log2(width)))), MOST_NODES)
        return int(shared_nodes(np.array([4 * width]), np.array([width]))[0])


class RidgeCost(ModelCost):
    """Of ridge regression."""

    def training(self, n: int, d: int) -> Cost:
        return ridge_training(n, d)

    def of_a_row(self, n: int, d: int) -> float:
        return PRODUCT * d

    def answers(self, n: int, d: int, n_points: int) -> Cost:
        return Cost(CALL, 8.0 * n)


class NetworkCost(ModelCost):
    """Of a network of scikit-learn, by its layers and iterations."""

    def _hidden(self) -> list[int]:
        return [int(size) for size in np.atleast_1d(self.estimator.hidden_layer_sizes)]

    def _n_weights(self, d: int) -> float:
        sizes = [d, *self._hidden(), 1]
        return float(np.dot(sizes[:-1], sizes[1:]))

    def training(self, n: int, d: int) -> Cost:
        network, weights = self.estimator, self._n_weights(d)
        own = 3 * PRODUCT * weights + 2 * HIDDEN * sum(self._hidden())
        held = 24.0 * n * d + 8 * n * 3.0 * sum(self._hidden()) + 100 * weights
        if network.solver == "lbfgs":
            rounds = min(network.max_iter, RESTS)
            return Cost(rounds * (STEP / 2 + n * own + 40 * weights), held)
        batch = min(200 if network.batch_size == "auto" else network.batch_size, n)
        each = STEP + batch * own + 10 * weights
        return Cost(network.max_iter * np.ceil(n / batch) * each, held)

    def of_a_row(self, n: int, d: int) -> float:
        return PRODUCT * self._n_weights(d) + HIDDEN * sum(self._hidden())

    def answers(self, n: int, d: int, n_points: int) -> Cost:
        hidden = self._hidden()
        if len(hidden) > 1:
            return self.copies(n, d, n_points)
        made = float(n) * n_points * sum(hidden)
        return Cost(HIDDEN * d * made, 16 * min(made, max(HIDDEN_BLOCK, n * sum(hidden))))


class SpokenCost(ModelCost):
    """Of an estimator that says it itself, by ``cost`` and ``cost_of_row``."""

    def training(self, n: int, d: int) -> Cost:
        found: Cost = self.estimator.cost(n, d)
        return found

    def of_a_row(self, n: int, d: int) -> float:
        return float(self.estimator.cost_of_row(d))

    def answers(self, n: int, d: int, n_points: int) -> Cost:
        return self.copies(n, d, n_points)


def model_cost(estimator: Any) -> ModelCost | None:
    """What an estimator costs, alone or behind scalers; None where nobody can say.

    >>> model_cost(SVC()).training(100, 10).operations / 1e6
    1.28
    >>> model_cost(SVC(kernel="sigmoid")) is None
    True
    """
    if isinstance(estimator, Pipeline):
        *before, (_, last) = estimator.steps
        plain = all(
            step in (None, "passthrough") or isinstance(step, OneToOneFeatureMixin)
            for _, step in before
        )
        return model_cost(last) if plain else None
    if isinstance(estimator, SVC | SVR):
        named = isinstance(estimator.kernel, str) and estimator.kernel in KERNELS
        usual = named and not _votes(estimator) and is_real(estimator.degree)
        return MachineCost(estimator) if usual else None
    if isinstance(estimator, MLPClassifier | MLPRegressor):
        sizes = np.atleast_1d(estimator.hidden_layer_sizes)
        batch = estimator.batch_size
        steps = is_int(estimator.max_iter) and (batch == "auto" or (is_int(batch) and batch > 0))
        usual = steps and sizes.dtype.kind == "i"  # what is not, the training refuses
        return NetworkCost(estimator) if usual else None
    if hasattr(estimator, "cost_of_row"):
        return SpokenCost(estimator)
    # the class itself: a subclass may train in its own way
    return RidgeCost(estimator) if type(estimator) in (Ridge, RidgeClassifier) else None


def _votes(machine: Any) -> bool:
    """Whether a machine makes probabilities itself, which no engine follows."""
    return getattr(machine, "probability", False) is True


def tuned_model(estimator: Any, n: int, d: int) -> tuple[ModelCost | None, float]:
    """What an estimator costs, and the operations of the search over its parameters, if any."""
    if isinstance(estimator, TunedSVR):
        model = MachineCost(RelativeSVR())
        return model, len(COSTS) * len(TUBES) * len(SCALES) * _validated(model, min(n, 500), d)
    if isinstance(estimator, TunedSVC):
        return MachineCost(RelativeSVC()), _tuned_classifier(min(n, 1000), d)
    if isinstance(estimator, TunedMLP):
        network = model_cost(plain_network(estimator.units(d)[-1], estimator.decay))
        assert network is not None
        return network, len(estimator.units(d)) * _validated(network, n, d)
    if not isinstance(estimator, GridSearchCV):
        return model_cost(estimator), 0.0
    found, n_folds = model_cost(estimator.estimator), estimator.cv or 5
    if found is None or not is_int(n_folds):
        return None, 0.0
    return found, len(ParameterGrid(estimator.param_grid)) * _validated(found, n, d, n_folds)


def _validated(model: ModelCost, n: int, d: int, n_folds: int = 5) -> float:
    """Operations of cross-validating an estimator."""
    each = model.training(n - n // n_folds, d).operations + CALL
    return n_folds * each + n * model.of_a_row(n, d)


def _tuned_classifier(n: int, d: int) -> float:
    """Operations of a ``TunedSVC``: a grid, or four eliminations of a fifth of what is left."""
    model = MachineCost(RelativeSVC())
    if d <= MANY_COLUMNS:
        return 12 * _validated(model, n, d)
    rows = 2 * n // 3
    held_out = holds_out("TunedSVC", "auto", d, rows)
    comparison = ComparisonCost(model, Marginal(N_VALUES), held_out=held_out, calibration=5)
    return 4 * 5 * comparison.cost(rows, d).operations


@dataclass(frozen=True)
class ComparisonCost:
    """What is trained and compared in a round: how columns are perturbed, on which rows.

    ``calibration`` is the one of probabilities, None where there is nothing to calibrate;
    ``copied`` says that a score is asked of altered copies.
    """

    model: ModelCost
    way: Perturbation
    held_out: bool = False
    calibration: int | float | None = None
    copied: bool = False

    def _trained(self, n: int) -> list[int]:
        """Numbers of rows of each training."""
        if self.held_out:
            n_folds = self._n_folds(n)
            return [n - n // n_folds] * n_folds
        if self.calibration is None:
            return [n]
        if is_int(self.calibration):
            n_folds = int(self.calibration)
            return [n, *[n - n // n_folds] * n_folds]
        return [round((1 - self.calibration) * n)]

    def _n_folds(self, n: int) -> int:
        """Models among which the rows are dealt out."""
        many = FOLDS_OF_FEW if n <= FEW_ROWS else FOLDS_OF_MANY
        return many if self.held_out else 1

    def _trainings(self, n: int, d: int) -> float:
        """Operations until models answer for all rows."""
        found = sum(self.model.training(rows, d).operations for rows in self._trained(n))
        asked = n * self.model.of_a_row(n, d)
        return found + asked if self.calibration is None else found + 3 * asked + SIGMOID

    def cost(self, n: int, d: int) -> Cost:
        """Of one round with d columns."""
        trainings, held = self._trainings(n, d), self.model.training(n, d).bytes
        if isinstance(self.way, Removal):
            return Cost((1 + d) * trainings, held + 40.0 * n * d + 2e5)
        if isinstance(self.way, Derivative):
            slopes = float(n) ** 2 * (0.3 * d + 4 * EXPONENTIAL) + 0.02 * float(n) ** 3
            return Cost(trainings + slopes, held + 36.0 * (n**2 + n * d))
        n_points = self._n_points(n)
        if self.copied:
            each = SCORING + n * self.model.of_a_row(n, d)
            return Cost(trainings + d * n_points * each, held + 16.0 * n * d + 4e4)
        answers, outputs = (of(n, d, n_points) for of in (self.model.answers, self.model.outputs))
        operations = answers.operations + outputs.operations
        at_once = self.model.outputs(n // self._n_folds(n), d, n_points).bytes
        if getattr(self.way, "centres", False):  # the kernel is made anew for every column
            operations += EXPONENTIAL * d * float(n) ** 2
        return Cost(trainings + operations, max(held, 16.0 * n * d + answers.bytes + at_once))

    def _n_points(self, n: int) -> int:
        """Values that each row meets in the place of its own."""
        if isinstance(self.way, Marginal):
            return min(n, self.way.n_values or n)
        return self.way.n_repeats if isinstance(self.way, Permutation) else 1
