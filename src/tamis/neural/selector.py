"""Feature selection by gates on the inputs of a neural network, with controlled redundancy."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask, best_first, class_codes
from tamis._checks import BOOLEAN, NONE, Constraints, check_parameters, instance_of, one_of
from tamis._memory import check_cost
from tamis._seeds import Seed, draw_seed
from tamis.contract import Embedded, Trace
from tamis.contract.choice import SizeLike
from tamis.contract.steps import Event
from tamis.contract.units import Fixed, Groups
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

#: Parameters of the default network. The weight decay is stronger than is best for prediction, so
#: that the weights reflect relevance. Gates on all networks are less noisy than gates on the best
#: network alone.
NETWORK: dict[str, Any] = {"decay": 0.01, "combine": "mean"}

#: Parameters that may be given by name, such as sparsity="l0", and the class of each.
PARTS: dict[str, Any] = {"sparsity": Sparsity, "redundancy": Redundancy, "solver": GateSolver}
#: In a class with fewer rows than this, correlations between columns are mostly chance.
FEW_ROWS = 5
#: A bounded gate below CLOSED is closed. A linear gate is closed below SHARE_OF_WIDTH times the
#: width of the sparsity penalty. At this value, the penalty of a gate is a twentieth of the penalty
#: of an open gate.
CLOSED, SHARE_OF_WIDTH = 0.1, 1 / 3


@dataclass(eq=False, repr=False, kw_only=True)
class GateSelector(Embedded):
    """Feature selection by learned gates on the inputs of a multi-layer perceptron.

    First a network is trained and frozen. Then a gate is learned for each column (or for each class
    and column). The objective is the loss of the gated network, plus penalties on open gates and on
    pairs of open gates whose columns are redundant:

        loss(x * gate) + mu / F * sum_j sparsity(gate_j)
                       + lam / (F (F - 1)) * sum_{i != j} share_i share_j phi_ij

    F is the number of columns, phi_ij is the redundancy of columns i and j, and share is the square
    of a linear gate or the value of any other gate.

    Gates of scope "class" multiply only the rows of their own class. So the gated network uses the
    label and cannot be used for prediction. To estimate the accuracy of a selection, train another
    model on the selected columns, for example a :class:`NetworkClassifier`.

    Parameters
    ----------
    n_features_to_select : int, float or Choice, default=0.5
        Columns to select by their gates: a number, a share, ``Threshold(0.9)`` or, for gates by
        class, ``PerClass(2)``. With gates by class, a column is ranked by its widest gate. Linear
        gates are an exception, because their scales differ between classes. With linear gates, a
        number selects the best column of each class first, then the second best of each class, and
        so on.
    network : NetworkClassifier or None, default=None
        The gated network. None means ``NetworkClassifier(decay=0.01, combine="mean")``. This weight
        decay is larger than is best for prediction, so that the weights reflect relevance. With
        ``combine="mean"``, the same gates apply to all networks of the classifier. With
        ``joint=True``, each network has its own gates, and the gates with the lowest objective are
        used. If the ``random_state`` of the network is None, the seed of the selector is used.
    gate : {"linear", "bell", "sigmoid"}, default="linear"
        Gate as a function of its parameter b. "linear" is b and starts at 1, "bell" is exp(-b^2)
        and starts at 0.99, and "sigmoid" is 1 / (1 + exp(-b)) and starts at 0.9.
    scope : {"global", "class", "one-vs-rest"}, default="global"
        "global" learns one gate for each column. "class" and "one-vs-rest" learn one gate for each
        class and column. With "class", as published, a gate multiplies only the rows of its class.
        With "one-vs-rest", a gate multiplies all rows, and the loss is the binary cross-entropy of
        its class. So these gates do not use the label of a row.
    sparsity : {"l0", "l1", "bell"} or Sparsity, default="l0"
        Penalty on open gates. Pass an object such as ``Sparsity("l0", width=0.1)`` to set more
        options.
    redundancy : {"pearson", "squared", "information"} or Redundancy, default="pearson"
        Measure of the redundancy phi of two columns. Pass an object such as
        ``Redundancy("pearson", level="class")`` to set more options.
    mu, lam : float, array of one number for each class, or "auto", default="auto"
        Weights of sparsity and redundancy. "auto" uses the grid point of :func:`gate_path` with
        the highest held-out accuracy.
    joint : bool, default=False
        Whether the weights of the network are trained further, together with the gates.
    solver : {"lbfgs", "adam"} or GateSolver, default="lbfgs"
        Optimiser of the gates and of jointly trained weights. Pass an object such as
        ``GateSolver("adam", max_iter=200)`` to set more options. The network has its own ``solver``
        parameter.
    task : {"auto", "classification"}, default="auto"
        "classification" treats a numeric ``y`` with many different values as class labels.
    random_state : int, generator or None, default=None
        Seed of the network, the folds and the mini-batches.
    feature_groups : mapping, sequence or None, default=None
        Columns that share a gate and are selected as one unit: ``{"name": ["a", "b"]}`` or one
        label per column, as in :class:`tamis.search.Forward`. F is then the number of units, and
        phi of two units is the mean over the pairs of their columns.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that are always selected. Their gates are learned too.

    Attributes
    ----------
    gates_ : array of shape (n_features,)
        Absolute value of the gate of each column. With gates by class, this is the largest value
        over the classes. Gates of constant columns are 0. Bounded gates above 0.99 are fully open.
        They are ranked by how much the loss would rise if they closed, and spread over the range
        from 0.99 to 1.
    class_gates_ : array of shape (n_classes, n_features)
        Absolute values of the gates of each class. Not set for scope "global".
    feature_importances_ : array of shape (n_features,)
        The same as ``gates_``.
    classes_ : array
        Class labels.
    network_ : NetworkClassifier
        The gated network, trained on all columns.
    history_ : dict of str to array of shape (n_epochs,)
        Terms of the objective with the final weights: ``loss`` (including the weight decay of
        jointly trained weights), ``sparsity`` and ``redundancy``.
    n_iter_ : int
        Number of epochs of the gates.
    mu_, lam_ : array of shape (1,) or (n_classes,)
        The weights that were used.
    path_ : GatePath or None
        Results of the grid that "auto" tried, or None if both weights were given.

    See :class:`tamis.contract.Selection` for other attributes.

    Notes
    -----
    The gradients published in the reference lack the factor 2 of the symmetric double sum. This
    implementation uses the exact gradients of the published objective. With the sparsity penalty
    "bell", bounded gates start to close when ``lam`` exceeds mu / (2 mean phi), the middle of the
    "auto" grid. Linear gates can close because of ``mu`` alone.

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
    #: Parameters that use the selector's ``random_state`` if their own ``random_state`` is None.
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

    n_features_to_select: SizeLike = 0.5
    network: NetworkClassifier | None = None
    gate: str = "linear"
    scope: str = "global"
    sparsity: str | Sparsity = "l0"
    redundancy: str | Redundancy = "pearson"
    mu: float | ArrayLike | str = "auto"
    lam: float | ArrayLike | str = "auto"
    joint: bool = False
    solver: str | GateSolver = "lbfgs"
    task: str = "auto"
    random_state: Seed = None
    feature_groups: Groups = None
    fixed_features: Fixed = None

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including nested ones such as ``network__hidden``.

        This works even if the outer parameter (here ``network``) is None or given by name.

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
                f"GateSelector computes the redundancy inside each class, but {few} has fewer than "
                f"{FEW_ROWS} rows, whose correlations are mostly chance. Use redundancy="
                f"Redundancy({kind!r}, level='global') to compute it over all rows.",
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
        # scale by powers of two, so that sums and squares stay finite
        exponent = np.frexp(np.abs(X).max(axis=0))[1]
        rows = [np.ldexp(X[np.asarray(y) == label], -exponent) for label in self.classes_]
        self._class_means = np.ldexp([part.mean(axis=0) for part in rows], exponent)
        self._class_spreads = np.ldexp([part.std(axis=0) for part in rows], exponent)

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """Whether the path is nested. False for ``PerClass``, because a step may add no column."""
        return not isinstance(self.n_features_to_select, PerClass)

    def _ranked(self) -> Iterator[Event]:
        return self._ordered(self._unit_gates)

    def _ordered(self, gates: Array) -> Iterator[Event]:
        """Rank the units by their gates, in the order that the choice needs."""
        if isinstance(self.n_features_to_select, PerClass):
            return by_class(gates)
        counted = self._choice().size(gates.shape[1], "GateSelector") is not None
        if self.scope != "global" and self.gate == "linear" and counted:
            return by_rank(gates)
        return by_width(gates)

    def _chosen(self, gates: Array) -> Mask:
        """Return a mask of the columns that the choice selects. It may be all False."""
        support = np.zeros(gates.shape[1], dtype=bool)
        trace = Trace.of(len(support), self._around_fixed(self._ordered(gates)))
        with suppress(NothingSelected):
            support[trace[self._choice().pick(trace).step].subset] = True
        return self._units.mask(support)

    def _part(self, name: str) -> Any:
        """Return a parameter as an object. None and names are replaced by the object they mean."""
        given = getattr(self, name)
        if name == "network":
            return NetworkClassifier(**NETWORK) if given is None else given
        return PARTS[name](given) if isinstance(given, str) else given

    def _network_seed(self, seed: int) -> int:
        """Return a seed from the network's ``random_state``. If it is None, return ``seed``."""
        own = None if self.network is None else self.network.random_state
        return seed if own is None else draw_seed(own)

    def _settings(self, seed: int, network_seed: int) -> GateSettings:
        """Return the parameters in the form that training needs."""
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
        """Estimate the memory in bytes that a fit to a table of this size needs."""
        settings = self._settings(0, 0)
        n_folds = N_FOLDS if "auto" in (str(self.mu), str(self.lam)) else 0
        n_networks = settings.network.n_networks(n_samples)
        size = n_samples, n_features, n_classes
        return gate_bytes(settings, *size, n_networks, n_folds)

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        cost = partial(self.cost, n_classes=len(np.unique(np.asarray(y))))
        check_cost("GateSelector", cost, *X.shape, fewer=self.fewer, quick=self.quick)

    def features_for(self, label: Any) -> list[ClassFeature]:
        """Return the columns in decreasing order of their gates for one class.

        Parameters
        ----------
        label : one of ``classes_``
            Class label.

        Returns
        -------
        list of ClassFeature
            Index, name and gate of each column, with the mean and standard deviation of the column
            in each class, in the order of ``classes_``.
        """
        check_is_fitted(self)
        if self.scope == "global":
            raise IncompatibleCriterion(
                "features_for needs gates for each class, but scope is 'global'. Fit "
                "GateSelector(scope='class', ...)."
            )
        known = self.classes_.tolist()
        if np.ndim(label) > 0 or label not in known:
            raise InvalidParameter(
                f"features_for needs one of the classes {', '.join(map(repr, known))}, got "
                f"{label!r}."
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
        """The same as ``gates_``."""
        return self.gates_

    def _check(self) -> None:
        if self.network is not None and self.network.hidden == "auto":
            raise InvalidParameter(
                "GateSelector needs a network with a number of hidden units, not hidden='auto'. "
                "Fit NetworkClassifier(hidden='auto') to the table, and use its hidden_."
            )
        for name in ("network", *PARTS):
            check_parameters(self._part(name))
        super()._check()
        if self._part("sparsity").kind == "bell" and self.gate == "linear":
            raise InvalidParameter(
                "GateSelector(sparsity='bell') needs a gate between 0 and 1, but gate is 'linear'. "
                "Use gate='bell' or gate='sigmoid'."
            )

    def _size(self, n_units: int) -> int | None:
        check_columns(self._part("redundancy").kind, n_units, self.fewer)
        return super()._size(n_units)

    def _doubt(self) -> None:
        chosen = self.support_.copy()
        chosen[self.units_.columns(self.units_.fixed_units)] = False
        gates, width = self.gates_[chosen], np.min(self._part("sparsity").width)
        closed = width * SHARE_OF_WIDTH if self.gate == "linear" else CLOSED
        n_open = int(np.sum(gates >= closed))
        if n_open < len(gates):
            warn(
                f"GateSelector selects {len(gates)} column(s), but only {n_open} of the gates are "
                "open; the order of the others is mostly chance. Ask for fewer columns, or lower "
                "mu or lam.",
                DegenerateData,
                stacklevel=5,
            )
