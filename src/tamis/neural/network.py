"""Classifier with one hidden layer, whose folds and restarts are trained in one batch."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array, ColumnScale, Mask, class_codes, is_int, scaled_columns
from tamis._checks import NONE, Constraints, check_parameters, integer, number, one_of
from tamis._seeds import Seed, draw_seed, stream
from tamis.exceptions import InvalidTarget, NotConverged, TamisWarning
from tamis.neural._objectives import ACTIVATIONS, LOSSES, NetworkLoss, Stack
from tamis.neural._state import State, packed, packed_all, unpacked, unpacked_all
from tamis.neural.solver import SOLVERS, GateSolver, Runs
from tamis.response.tuners import units_tried

#: Number of cross-validation folds for choosing the number of hidden units.
FOLDS = 5
#: Largest standardised value in a new row. Rows with larger values are scaled down, so that
#: products with weights stay finite. This hardly changes predictions, because activation functions
#: are saturated at much smaller values.
FARTHEST = 1e100
#: Maximum number of values in the arrays of a group of networks (128 MB), which are trained
#: together. A pass over these values takes a few tenths of a second, so that the user can interrupt
#: the training without delay.
MOST_NUMBERS = 1 << 24
#: Each optimiser stops when the relative change of the loss is below this number.
TOLERANCE = {"lbfgs": 1e-6, "adam": 1e-5}


@dataclass(eq=False, repr=False)
class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """Multi-layer perceptron with one hidden layer, early stopping and restarts.

    ``restarts`` networks are trained for each validation fold, all in one batch. Each network keeps
    the weights of the epoch with the highest validation accuracy; ties go to the lowest validation
    loss. Predictions use the best network, or the mean of all networks.

    Parameters
    ----------
    hidden : int or "auto", default=10
        Number of hidden units. "auto" compares numbers from 1 to three times the number of columns:
        all of these numbers if there are at most eight, otherwise eight of them in increasing
        steps. It uses the number with the highest mean accuracy over five folds. Ties go to the
        lowest number. Training with "auto" takes about eight times as long as with a given number.
    activation : {"tanh", "sigmoid", "relu"}, default="tanh"
        Activation function of the hidden units.
    loss : {"log", "squared"}, default="log"
        "log" is the cross-entropy. "squared" is the squared error of the probabilities.
    decay : float or "auto", default="auto"
        Weight decay. ``decay / 2`` times the sum of squared weights is added to the mean loss.
        "auto" is 0.001, or 0.01 if there are more columns than rows.
    solver : {"lbfgs", "adam"}, default="lbfgs"
        Optimiser.
    max_iter : int, default=200
        Maximum number of epochs, or of iterations of L-BFGS.
    learning_rate : float, default=0.02
        Learning rate of Adam.
    batch_size : int or None, default=None
        Number of rows per step of Adam. None uses all rows.
    validation : int, float or None, default=5
        Rows that are held out for early stopping. An integer is a number of folds. Each network is
        then trained without one of the folds. A float is the share of rows that are held out from
        all networks. None means no early stopping.
    restarts : int, default=1
        Number of networks per fold, with different initial weights.
    combine : {"best", "mean"}, default="best"
        "best" predicts with the best network. "mean" averages the probabilities of all networks.
    random_state : int, generator or None, default=None
        Seed of the folds and the initial weights.

    Attributes
    ----------
    classes_ : array
        Class labels.
    hidden_ : int
        Number of hidden units that was used.
    validation_score_ : float
        Held-out accuracy of the best network. It is optimistic, because the network was selected on
        the same held-out rows. It is nan if ``validation`` is None.
    n_networks_ : int
        Number of trained networks.
    n_iter_ : int
        Number of epochs of the longest training.
    history_ : dict of str to array of shape (n_epochs, n_networks)
        Held-out accuracy and loss after each epoch, with the keys ``validation_accuracy`` and
        ``validation_loss``. If a network ended early, its last entries are nan.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> NetworkClassifier(hidden=5, random_state=0).fit(X, y).score(X, y) > 0.95
    True

    References
    ----------
    Yang (2011), Feature selection and model selection for supervised learning algorithms, sec. 3.4
    (hidden units by five folds).
    """

    _constraints: ClassVar[Constraints] = {
        "hidden": integer(1) | one_of("auto"),
        "activation": one_of(*ACTIVATIONS),
        "loss": one_of(*LOSSES),
        "decay": number(least=0) | one_of("auto"),
        "solver": one_of(*SOLVERS),
        "max_iter": integer(1),
        "learning_rate": number(above=0),
        "batch_size": integer(1) | NONE,
        "validation": integer(2) | number(above=0, below=1) | NONE,
        "restarts": integer(1),
        "combine": one_of("best", "mean"),
    }

    hidden: Any = 10
    _: KW_ONLY
    activation: str = "tanh"
    loss: str = "log"
    decay: float | str = "auto"
    solver: str = "lbfgs"
    max_iter: int = 200
    learning_rate: float = 0.02
    batch_size: int | None = None
    validation: int | float | None = 5
    restarts: int = 1
    combine: str = "best"
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train the networks on the standardised columns of ``X``."""
        check_parameters(self)
        with np.errstate(over="ignore", invalid="ignore"):  # sums of finite numbers may overflow
            table, target = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(target)
        self.classes_, codes = class_codes(target)
        if len(self.classes_) < 2:
            raise InvalidTarget(
                f"NetworkClassifier needs at least two classes, but every sample has the class "
                f"{str(self.classes_[0])!r}. Check the target column, or the split it came from."
            )
        settings = clone(self).set_params(random_state=draw_seed(self.random_state))
        held_out = held_out_rows(codes, self.validation, self.restarts, settings.random_state)
        Z, self._scaling = scaled_columns(table)
        if settings.hidden == "auto":
            settings.hidden = _choose_hidden(settings, Z, codes)
        self.hidden_ = settings.hidden
        n_weights = settings.hidden * (Z.shape[1] + 1 + len(self.classes_)) + len(self.classes_)
        if settings.decay == 0 and settings.validation is None and n_weights >= len(Z):
            warn(
                f"NetworkClassifier has {n_weights} weights for {len(Z)} rows, and neither weight "
                "decay nor held-out rows, so it can fit any target. Use fewer hidden units, "
                "decay='auto' or validation=5.",
                TamisWarning,
                stacklevel=2,
            )
        trained = train(settings, Z, codes, held_out)
        self._stack, self._best = trained.stack, trained.best
        self.validation_score_ = float(trained.accuracy[self._best])
        self.history_, self.n_iter_ = trained.history, trained.n_iter
        self.n_networks_ = len(held_out)
        return self

    def cost(self, n_samples: int, n_features: int) -> float:
        """Estimate the memory in bytes that training needs, for two classes and this table size."""
        check_parameters(self)
        n_networks, hidden = self.n_networks(n_samples), self.hidden
        if hidden == "auto":
            n_networks, hidden = max(n_networks, FOLDS), max(units_tried(n_features))
        each = 8 * n_samples * (3 * hidden + 10) + 160 * (n_features + 3) * hidden
        return n_networks * each + 40.0 * n_samples * n_features

    def n_networks(self, n_samples: int) -> int:
        """Return the number of networks for a table with this number of rows."""
        folds = min(self.validation or 1, n_samples) if is_int(self.validation) else 1
        return int(folds) * self.restarts

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class."""
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):  # values may be extremely large
            table = validate_data(self, X, dtype=np.float64, reset=False)
            Z = _within_reach(self._scaling(table))
        p: Array = self.networks().probabilities(Z, self.activation)[0].mean(axis=0)
        return p

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(axis=1)]

    def networks(self) -> Stack:
        """Return the networks used for prediction. Their inputs are the standardised columns."""
        return self._stack if self.combine == "mean" else self._stack.pick(np.array([self._best]))

    def decay_of(self, n_samples: int, n_features: int) -> float:
        """Return the weight decay for a table of this size."""
        if self.decay == "auto":
            return 1e-2 if n_features > n_samples else 1e-3
        return float(self.decay)

    def state(self) -> State:
        """Return the fitted attributes, except for the classes, as JSON types."""
        return {
            "hidden": self.hidden_,
            "scaling": packed_all(self._scaling._asdict()),
            "weights": packed(self._stack.packed()),
            "best": self._best,
            "validation_score": packed(np.array(self.validation_score_)),
            "history": packed_all(self.history_),
            "n_iter": self.n_iter_,
        }

    def restore(self, state: State, classes: NDArray[Any]) -> Self:
        """Set the fitted attributes from a state that :meth:`state` returned."""
        self.classes_ = classes
        exponent, *others = unpacked_all(state["scaling"], ColumnScale._fields).values()
        self._scaling = ColumnScale(exponent.astype(np.intc), *others)
        self.n_features_in_ = len(self._scaling.mean)
        weights = unpacked(state["weights"])
        self.hidden_ = int(state.get("hidden", self.hidden))
        self._stack = Stack.unpacked(weights, self.n_features_in_, self.hidden_, len(classes))
        self._best, self.n_iter_ = int(state["best"]), int(state["n_iter"])
        self.validation_score_ = float(unpacked(state["validation_score"]))
        self.history_, self.n_networks_ = unpacked_all(state["history"]), len(weights)
        return self


def _choose_hidden(settings: NetworkClassifier, Z: Array, codes: NDArray[np.intp]) -> int:
    """Return the number of hidden units with the highest cross-validated accuracy."""
    held_out = held_out_rows(codes, FOLDS, 1, draw_seed(settings.random_state))
    best, greatest = 1, -np.inf
    for hidden in units_tried(Z.shape[1]):
        tried = clone(settings).set_params(hidden=hidden)
        accuracy = float(train(tried, Z, codes, held_out).accuracy.mean())
        if accuracy > greatest + 1e-12:
            best, greatest = hidden, accuracy
    return best


def _within_reach(Z: Array) -> Array:
    """Scale down rows that are too large for the networks, without changing their direction."""
    Z = np.nan_to_num(Z, nan=0.0)  # an infinite value in a constant column has become nan
    far = np.abs(Z).max(axis=1, keepdims=True)
    return Z * (FARTHEST / np.maximum(far, FARTHEST))


class Trained(NamedTuple):
    """Trained networks, with their accuracy and loss on held-out rows.

    ``history`` has the form of ``NetworkClassifier.history_``. It is empty if no rows are held out.
    """

    stack: Stack
    accuracy: Array
    loss: Array
    n_iter: int
    history: dict[str, Array]

    @property
    def best(self) -> int:
        """Index of the network with the highest accuracy. Ties go to the lowest loss."""
        return int(np.lexsort((self.loss, -self.accuracy))[0])


def train(
    settings: Any,
    X: Array,
    codes: NDArray[np.intp],
    held_out: Mask,
    *,
    masks: Array | None = None,
    early_stopping: bool = True,
) -> Trained:
    """Train one network for each row of ``held_out``.

    Parameters
    ----------
    settings : NetworkClassifier
        Parameters of the networks. ``random_state`` must be an integer.
    X : array of shape (n_samples, n_features)
        Standardised columns.
    codes : array of shape (n_samples,)
        Class numbers.
    held_out : array of bool, of shape (n_networks, n_samples)
        Mask of the held-out rows of each network.
    masks : array of shape (n_networks, n_features), optional
        1 for the columns that a network uses as inputs, 0 for the others.
    early_stopping : bool, default=True
        Keep the weights of the best epoch on the held-out rows instead of the last epoch.
    """
    shape, found, diverged = (settings.hidden, int(codes.max()) + 1), [], False
    for group in groups(len(held_out), X.shape[1], *shape, len(X)):
        learns = ~held_out[group]
        weights = learns / learns.sum(axis=1, keepdims=True)
        objective = NetworkLoss(
            settings, X, codes, weights, masks if masks is None else masks[group]
        )
        stack = Stack.drawn(settings.random_state, len(learns), *objective.shape, first=group.start)
        if objective.masks is not None:
            stack = stack._replace(inner=stack.inner * objective.masks[:, :, None])
        watch = _Watch(objective, held_out[group], stack.packed(), early_stopping)
        found.append(_train(settings, watch, stack.packed()))
        diverged |= watch.diverged
    if diverged:
        warn(
            "The training of a network diverged; the best weights before that are used. Use a "
            "smaller learning_rate.",
            NotConverged,
            stacklevel=2,
        )
    stacks, accuracies, losses, n_iters, histories = zip(*found, strict=True)
    return Trained(
        Stack(*(np.concatenate(weights) for weights in zip(*stacks, strict=True))),
        np.concatenate(accuracies),
        np.concatenate(losses),
        max(n_iters),
        {name: _side_by_side([part[name] for part in histories]) for name in histories[0]},
    )


def groups(
    n_networks: int, n_inputs: int, hidden: int, n_classes: int, n_samples: int
) -> Iterator[slice]:
    """Yield slices of networks that fit into memory together. A slice has at least one network."""
    numbers = n_samples * (hidden + n_classes) + (n_inputs + n_classes + 1) * hidden + n_classes
    size = min(max(MOST_NUMBERS // numbers, 1), n_networks)
    return (slice(k, min(k + size, n_networks)) for k in range(0, n_networks, size))


def _train(settings: Any, watch: "_Watch", start: Array) -> Trained:
    """Train the networks of one group."""
    objective, shape = watch.objective, watch.objective.shape
    solver = GateSolver(
        settings.solver,
        max_iter=settings.max_iter,
        tol=TOLERANCE[settings.solver],
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
    )
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite points are discarded
        points, values = solver.minimise(
            objective, start, len(objective.X), settings.random_state, watch=watch.see
        )
    if not watch.held_out.any():
        unknown = np.full(len(points), np.nan)
        return Trained(Stack.unpacked(points, *shape), unknown, values, watch.n_iter, {})
    stack = Stack.unpacked(watch.points, *shape)
    return Trained(stack, watch.accuracy, watch.loss, watch.n_iter, watch.history)


class _Watch:
    """Callback that keeps the best weights of each network, scored on held-out rows.

    Without early stopping, the last weights are kept.
    """

    def __init__(self, objective: NetworkLoss, held_out: Mask, start: Array, early_stopping: bool):
        self.objective, self.held_out = objective, held_out
        self.points, self._early_stopping = start, early_stopping
        self._shares = held_out / np.maximum(held_out.sum(axis=1, keepdims=True), 1)
        self.accuracy = np.full(len(held_out), -np.inf)
        self.loss = np.full(len(held_out), np.inf)
        self.diverged = False
        self._seen: list[tuple[Runs, Array]] = []

    def see(self, evaluated: Runs, runs: Runs, points: Array) -> None:
        """Score the networks ``runs`` on their held-out rows.

        ``evaluated`` are the positions of these networks in the last call of the loss, and
        ``points`` are their weights.
        """
        p, shares = self.objective.outputs[evaluated], self._shares[runs]
        codes = self.objective.codes
        accuracy = np.einsum("kn,kn->k", shares, p.argmax(axis=2) == codes)
        truth = np.maximum(p[:, np.arange(len(codes)), codes], 1e-300)
        loss = -np.einsum("kn,kn->k", shares, np.log(truth))
        same = accuracy == self.accuracy[runs]
        better = (accuracy > self.accuracy[runs]) | (same & (loss < self.loss[runs]))
        better = np.isfinite(p).all(axis=(1, 2)) & (better | (not self._early_stopping))
        self.diverged |= not np.isfinite(p).all()
        which = runs[better]
        self.accuracy[which], self.loss[which] = accuracy[better], loss[better]
        self.points[which] = points[better]
        self._seen.append((runs, np.array([accuracy, loss])))

    @property
    def n_iter(self) -> int:
        """Number of iterations of the longest training."""
        return int(max(np.bincount(np.concatenate([runs for runs, _ in self._seen]))) - 1)

    @property
    def history(self) -> dict[str, Array]:
        """Held-out accuracy and loss of every network after each iteration."""
        names = ("validation_accuracy", "validation_loss")
        return histories(names, self._seen, len(self.loss))


def _side_by_side(tables: list[Array]) -> Array:
    """Join tables of different lengths horizontally. Shorter tables are padded with nan."""
    longest = max(len(table) for table in tables)
    missing = [np.full((longest - len(table), table.shape[1]), np.nan) for table in tables]
    return np.hstack([np.vstack(pair) for pair in zip(tables, missing, strict=True)])


def histories(
    names: tuple[str, ...], seen: list[tuple[Runs, Array]], n_runs: int
) -> dict[str, Array]:
    """Return one table of shape (n_epochs, n_runs) for each name.

    Each item of ``seen`` belongs to an epoch. It contains the indices of the runs that were still
    active, and their values, with one row for each name. The other entries of the tables are nan.
    """
    counts = np.zeros(n_runs, dtype=np.intp)
    tables = np.full((len(names), len(seen), n_runs), np.nan)
    for runs, values in seen:
        tables[:, counts[runs], runs] = values
        counts[runs] += 1
    return dict(zip(names, tables[:, : counts.max(initial=0)], strict=True))


def deal(codes: NDArray[np.intp], n_folds: int, seed: int) -> NDArray[np.intp]:
    """Return the fold of each row, stratified by class.

    A class may have fewer rows than there are folds. Each class starts at the fold after the last
    fold of the previous class, so that the sizes of the folds differ by at most one row.
    """
    folds, n_done = np.empty(len(codes), dtype=np.intp), 0
    for c in range(codes.max() + 1):
        rows = stream(seed, "folds", c).permutation(np.flatnonzero(codes == c))
        folds[rows] = (n_done + np.arange(len(rows))) % n_folds
        n_done += len(rows)
    return folds


def held_out_rows(
    codes: NDArray[np.intp], validation: int | float | None, restarts: int, seed: int
) -> Mask:
    """Return a mask of held-out rows, of shape (networks, rows)."""
    if validation is None:
        return np.zeros((restarts, len(codes)), dtype=bool)
    if validation >= 1:
        n_folds = min(int(validation), len(codes))
        folds = deal(codes, n_folds, seed)
        return np.repeat(folds == np.arange(n_folds)[:, None], restarts, axis=0)
    # hold out a share of the rows, stratified by class: at least one row, but not all rows
    draws = stream(seed, "part").uniform(size=len(codes))
    share = np.clip(validation, 1 / len(codes), 1 - 1 / len(codes))
    passed = np.floor(np.arange(len(codes) + 1) * share + 1e-9)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[np.lexsort((draws, codes))] = np.diff(passed) > 0
    return np.tile(chosen, (restarts, 1))
