"""Selection by gates on the inputs of a network, with control of redundancy."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask, best_first, class_codes
from tamis._checks import BOOLEAN, NONE, Constraints, check_parameters, instance_of, one_of
from tamis._memory import check_cost
from tamis._seeds import draw_seed
from tamis.contract import Embedded, Trace
from tamis.contract.steps import Event
from tamis.exceptions import (
    DegenerateData,
    IncompatibleCriterion,
    InvalidParameter,
    NotConverged,
    NothingSelected,
)
from tamis.neural._memory import gate_bytes
from tamis.neural._objectives import GateSettings
from tamis.neural._state import State, unpacked, unpacked_all
from tamis.neural.gate_runs import N_FOLDS, WEIGHTS, GatePath, GateTraining, read_weights
from tamis.neural.gates import GATES, SPARSITY, Sparsity
from tamis.neural.network import NetworkClassifier
from tamis.neural.per_class import ClassFeature, PerClass, by_class, by_rank, by_width
from tamis.neural.redundancy import KINDS, GateUnits, Redundancy, check_columns
from tamis.neural.solver import SOLVERS, GateSolver

#: The network that stands behind the gates by default. Its weights tell the gates what matters, so
#: that they are held smaller than is best for a network that predicts, and the gates stand before
#: all of its networks at once: before the best alone they are noisier.
NETWORK: dict[str, Any] = {"decay": 0.01, "combine": "mean"}

#: Parts that a word may stand for: their class.
PARTS: dict[str, Any] = {"sparsity": Sparsity, "redundancy": Redundancy, "solver": GateSolver}
#: Rows of a class below which correlations inside it are mostly chance.
FEW_ROWS = 5
#: A bounded gate below this is closed, and a linear one below this share of the width of its
#: sparsity, where it costs a twentieth of what an open one does.
CLOSED, SHARE_OF_WIDTH = 0.1, 1 / 3


class GateSelector(Embedded):
    """Gates on the inputs of a multi-layer perceptron, open where a column is needed.

    A network is trained and frozen; then a gate for every column (or for every class and column)
    is learned that keeps the loss small while open gates, and pairs of open gates on columns that
    say the same, cost something:

        loss(x * gate) + mu / F * sum_j sparsity(gate_j)
                       + lam / (F (F - 1)) * sum_{i != j} share_i share_j phi_ij

    Gates of scope "class" multiply the rows of their own class only, so that the gated network
    sees the label: it never predicts. What a selection is worth is told by a network trained on
    the plain columns, such as :class:`NetworkClassifier`.

    Parameters
    ----------
    n_features_to_select : int, float or Choice, default=0.5
        How many columns are kept, by their gates: a number, a share, ``Threshold(0.9)`` or, for
        gates of each class, ``PerClass(2)``. Where every class has its own, the widest counts;
        linear gates have no common scale, so that a number takes the first of every class, then
        the second of every class, and so on.
    network : NetworkClassifier or None, default=None
        The network behind the gates; None is ``NetworkClassifier(decay=0.01, combine="mean")``. Its
        weights tell the gates what matters, so that they are held smaller than is best for a
        network that predicts. With ``combine="mean"`` the gates stand before all of its networks at
        once; learned jointly, each network has gates of its own, and those of the lowest objective
        are kept. Without a ``random_state`` of its own it has the seed of the selector.
    gate : {"linear", "bell", "sigmoid"}, default="linear"
        The parameter b itself, from 1; exp(-b^2), from 0.99; or 1 / (1 + exp(-b)), from 0.9.
    scope : {"global", "class", "one-vs-rest"}, default="global"
        One gate for each column; one for each class and column that multiplies the rows of this
        class only, as printed; or one for each class and column that multiplies all rows, learned
        by how well they tell this class from the others (by cross-entropy, whatever the loss of the
        network is), which does not see the label.
    sparsity : {"l0", "l1", "bell"} or Sparsity, default="l0"
        What an open gate costs; ``Sparsity("l0", width=0.1)`` has more to say.
    redundancy : {"pearson", "squared", "information"} or Redundancy, default="pearson"
        phi, how far two columns say the same; ``Redundancy("pearson", level="class")`` has more to
        say.
    mu, lam : float, array of one number for each class, or "auto", default="auto"
        Weights of sparsity and redundancy. "auto" takes those under which a network trained on the
        chosen columns does best on rows that were held out, along :func:`gate_path`.
    joint : bool, default=False
        Whether the weights of the network go on learning with the gates.
    solver : {"lbfgs", "adam"} or GateSolver, default="lbfgs"
        Of the gates, and of weights that are learned with them; ``GateSolver("adam",
        max_iter=200)`` has more to say. The network is trained by a solver of its own.
    task : {"auto", "classification"}, default="auto"
        "classification" says that each of many different numbers in ``y`` is a class.
    random_state : int, generator or None, default=None
    feature_groups : mapping, sequence or None, default=None
        Columns that share a gate, and are taken or left as one unit: ``{"name": ["a", "b"]}`` or
        one label per column, as in :class:`tamis.search.Forward`. F is then the number of units,
        and phi of two units the mean over the pairs of their columns.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that are always kept; their gates are learned as all others.

    Attributes
    ----------
    gates_ : array of shape (n_features,)
        The gate of each column, in absolute value; the widest of its classes where each has its
        own. Columns without variance have closed gates. Bounded gates that nothing bids to close
        all come to 1: those beyond 0.99 are spread up to 1 by how fast the loss would rise if they
        closed.
    class_gates_ : array of shape (n_classes, n_features)
        Gates by class, but for scope "global".
    feature_importances_ : array
        ``gates_``.
    classes_ : array
    network_ : NetworkClassifier
        The network in front of which the gates were learned, on all columns.
    history_ : dict of str to array of shape (n_epochs,)
        ``loss`` (with the weight decay, where weights are learned), ``sparsity`` and
        ``redundancy``, the terms of what was minimised, under the weights that were used.
    n_iter_ : int
        Number of epochs of the gates.
    mu_, lam_ : array of shape (1,) or (n_classes,)
        The weights that were used.
    path_ : GatePath
        The grid that "auto" looked at; None where both weights were given.

    See :class:`tamis.contract.Selection` for what else it knows.

    Notes
    -----
    The printed gradients of the source lack the factor 2 of the symmetric double sum; the gradients
    here are those of the printed objective. Bounded gates all start to close when ``lam`` passes
    mu / (2 mean phi), where the grid of "auto" has its middle; linear ones close by ``mu`` alone.

    References
    ----------
    R. Chakraborty, N. R. Pal, "Feature selection using a neural framework with controlled
    redundancy", IEEE Trans. Neural Networks and Learning Systems 26, 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.neural import GateSelector, NetworkClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> network = NetworkClassifier(hidden=3, decay=0.01, combine="mean")
    >>> gates = GateSelector(n_features_to_select=2, network=network, mu=0.05, lam=0.1,
    ...                      random_state=0)
    >>> gates.fit(X, y).get_support(indices=True)
    array([2, 3])
    """

    fewer = "Then(Ranking(FisherScore(), n_features_to_select={}), GateSelector(...))"
    quick = "mrmr"
    #: BlockSource whose ``random_state``, where it is None, is that of the selector.
    seeds_parts: ClassVar[tuple[str, ...]] = ("network",)

    _constraints: ClassVar[Constraints] = {
        "network": instance_of(NetworkClassifier, "a NetworkClassifier(...)") | NONE,
        "gate": one_of(*GATES),
        "scope": one_of("global", "class", "one-vs-rest"),
        "sparsity": one_of(*SPARSITY) | instance_of(Sparsity, "Sparsity(...)"),
        "redundancy": one_of(*KINDS) | instance_of(Redundancy, "Redundancy(...)"),
        "mu": WEIGHTS,
        "lam": WEIGHTS,
        "joint": BOOLEAN,
        "solver": one_of(*SOLVERS) | instance_of(GateSolver, "GateSolver(...)"),
        "task": one_of("auto", "classification"),
    }

    def __init__(
        self,
        *,
        n_features_to_select: Any = 0.5,
        network: NetworkClassifier | None = None,
        gate: str = "linear",
        scope: str = "global",
        sparsity: str | Sparsity = "l0",
        redundancy: str | Redundancy = "pearson",
        mu: Any = "auto",
        lam: Any = "auto",
        joint: bool = False,
        solver: str | GateSolver = "lbfgs",
        task: str = "auto",
        random_state: Any = None,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.n_features_to_select = n_features_to_select
        self.network = network
        self.gate = gate
        self.scope = scope
        self.sparsity = sparsity
        self.redundancy = redundancy
        self.mu = mu
        self.lam = lam
        self.joint = joint
        self.solver = solver
        self.task = task
        self.random_state = random_state
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features

    def set_params(self, **params: Any) -> Self:
        """Set parameters; one of a part may be set where a word or None stands for the part.

        >>> GateSelector().set_params(network__hidden=3).network
        NetworkClassifier(combine='mean', decay=0.01, hidden=3)
        """
        inside = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{n: value for n, value in params.items() if n not in inside})
        for name in {name.partition("__")[0] for name in inside} & {"network", *PARTS}:
            setattr(self, name, self._part(name))
        super().set_params(**inside)
        return self

    def _stages(self, X: Array, y: NDArray[Any] | None, seed: int, state: State) -> Iterator[State]:
        classes, codes = class_codes(np.asarray(y))
        fresh, state = not state, state or {"network_seed": self._network_seed(seed)}
        settings = self._settings(seed, state["network_seed"])
        weights = read_weights(self.mu, self.lam, self.scope, settings.n_rows(len(classes)))
        counts, kind = np.bincount(codes), settings.redundancy.kind
        within = settings.redundancy.inside_classes(self.scope)
        if fresh and within and counts.min() < FEW_ROWS:
            few = ", ".join(str(label) for label in classes[counts < FEW_ROWS])
            warn(
                f"GateSelector takes the redundancy inside each class, but {few} has fewer than "
                f"{FEW_ROWS} rows, whose correlations are mostly chance. redundancy="
                f"Redundancy({kind!r}, level='global') takes it over all rows.",
                DegenerateData,
                stacklevel=5,
            )
        training = GateTraining(settings, self._chosen, X, np.asarray(y), **weights)
        for found in training.stages(state):
            if found.get("diverged", False):
                warn(
                    "GateSelector diverged: its objective was no longer finite, and the best gates "
                    "before that are used. Use a smaller learning_rate, mu or lam.",
                    NotConverged,
                    stacklevel=5,
                )
            yield found

    def _restore(self, X: Array, y: NDArray[Any] | None, state: State) -> None:
        self.classes_ = np.unique(np.asarray(y))
        settings = self._settings(0, state["network_seed"])
        self.network_ = settings.network.restore(state["network"], self.classes_)
        self._unit_gates = unpacked(state["gates"])
        gates = settings.units.spread(self._unit_gates)
        self.gates_ = gates.max(axis=0)
        if self.scope != "global":
            self.class_gates_ = gates
        self.history_ = unpacked_all(state["history"])
        self.n_iter_ = max(len(self.history_["loss"]) - 1, 1)
        self.mu_, self.lam_ = unpacked(state["mu"]), unpacked(state["lam"])
        self.path_ = GatePath.restored(state["path"]) if "path" in state else None
        # powers of two bring columns of any size to where sums and squares are finite
        exponent = np.frexp(np.abs(X).max(axis=0))[1]
        rows = [np.ldexp(X[np.asarray(y) == label], -exponent) for label in self.classes_]
        self._class_means = np.ldexp([part.mean(axis=0) for part in rows], exponent)
        self._class_spreads = np.ldexp([part.std(axis=0) for part in rows], exponent)

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """False for the best of each class, where a step may add nothing new."""
        return not isinstance(self.n_features_to_select, PerClass)

    def _ranked(self) -> Iterator[Event]:
        return self._ordered(self._unit_gates)

    def _ordered(self, gates: Array) -> Iterator[Event]:
        """Units in the order of their gates, as the choice needs them."""
        if isinstance(self.n_features_to_select, PerClass):
            return by_class(gates)
        counted = self._choice().size(gates.shape[1], "GateSelector") is not None
        if self.scope != "global" and self.gate == "linear" and counted:
            return by_rank(gates)
        return by_width(gates)

    def _chosen(self, gates: Array) -> Mask:
        """Return the columns that such gates keep; none where no gate passes a threshold."""
        support = np.zeros(gates.shape[1], dtype=bool)
        trace = Trace.of(len(support), self._around_fixed(self._ordered(gates)))
        with suppress(NothingSelected):
            support[trace[self._choice().pick(trace).step].subset] = True
        return self._units.mask(support)

    def _part(self, name: str) -> Any:
        """Return the object that a parameter holds, or that a word or None stands for."""
        given = getattr(self, name)
        if name == "network":
            return NetworkClassifier(**NETWORK) if given is None else given
        return PARTS[name](given) if isinstance(given, str) else given

    def _network_seed(self, seed: int) -> int:
        """Return the seed that the network brings, or that of the selector."""
        own = None if self.network is None else self.network.random_state
        return seed if own is None else draw_seed(own)

    def _settings(self, seed: int, network_seed: int) -> GateSettings:
        """Return the parameters as learning needs them."""
        return GateSettings(
            gate=self.gate,
            scope=self.scope,
            joint=self.joint,
            network=clone(self._part("network")).set_params(random_state=network_seed),
            seed=seed,
            units=GateUnits(self._units.unit_of),
            **{name: self._part(name) for name in PARTS},
        )

    def cost(self, n_samples: int, n_features: int, n_classes: int = 2) -> float:
        """Memory that a fit to a table of this size takes."""
        settings = self._settings(0, 0)
        n_folds = N_FOLDS if "auto" in (str(self.mu), str(self.lam)) else 0
        n_networks = settings.network.n_networks(n_samples)
        size = n_samples, n_features, n_classes
        return gate_bytes(settings, *size, n_networks, n_folds)

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        cost = partial(self.cost, n_classes=len(np.unique(np.asarray(y))))
        check_cost("GateSelector", cost, *X.shape, fewer=self.fewer, quick=self.quick)

    def features_for(self, label: Any) -> list[ClassFeature]:
        """Return the columns that tell one class, the widest gate first, with means by class.

        Parameters
        ----------
        label : one of ``classes_``

        Returns
        -------
        list of ClassFeature
            For each column its number, name, gate, and its mean and standard deviation in every
            class, in the order of ``classes_``.
        """
        check_is_fitted(self)
        if self.scope == "global":
            raise IncompatibleCriterion(
                "features_for needs gates for each class, but these are of scope 'global'. Fit "
                "GateSelector(scope='class', ...)."
            )
        known = self.classes_.tolist()
        if np.ndim(label) > 0 or label not in known:
            raise InvalidParameter(
                f"features_for knows the classes {', '.join(map(repr, known))}, not {label!r}."
            )
        gates = self.class_gates_[known.index(label)]
        names = getattr(self, "feature_names_in_", np.arange(len(gates)).astype(str))
        return [
            ClassFeature(
                int(j),
                str(names[j]),
                float(gates[j]),
                self._class_means[:, j],
                self._class_spreads[:, j],
            )
            for j in best_first(gates)
        ]

    @property
    def feature_importances_(self) -> Array:
        """The gates."""
        return self.gates_

    def _check(self) -> None:
        if self.network is not None and self.network.hidden == "auto":
            raise InvalidParameter(
                "GateSelector needs a network with a number of hidden units, not hidden='auto'. "
                "Fit NetworkClassifier(hidden='auto') to the table, and write the hidden_ it found."
            )
        for name in ("network", *PARTS):
            check_parameters(self._part(name))
        super()._check()
        if self._part("sparsity").kind == "bell" and self.gate == "linear":
            raise InvalidParameter(
                "GateSelector(sparsity='bell') pushes a gate to 0 or 1, which a linear gate does "
                "not keep to. Use gate='bell' or gate='sigmoid'."
            )

    def _size(self, n_units: int) -> int | None:
        check_columns(self._part("redundancy").kind, n_units, self.fewer)
        return super()._size(n_units)

    def _doubt(self) -> None:
        chosen = self.support_.copy()
        chosen[self.units_.columns(self.units_.fixed_units)] = False  # these nobody chose
        gates, width = self.gates_[chosen], np.min(self._part("sparsity").width)
        closed = width * SHARE_OF_WIDTH if self.gate == "linear" else CLOSED
        n_open = int(np.sum(gates >= closed))
        if n_open < len(gates):
            warn(
                f"GateSelector keeps {len(gates)} column(s), but only {n_open} of the gates are "
                "open; the order of the others is hardly more than chance. Ask for fewer columns, "
                "or lower mu or lam.",
                DegenerateData,
                stacklevel=5,
            )
