"""Selection by gates on the inputs of a network, with control of redundancy."""

from collections.abc import Collection, Iterator
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, best_first, class_codes, is_int, is_real, standardised
from tamis.choice import Threshold
from tamis.contract import Step
from tamis.exceptions import DegenerateData, IncompatibleCriterion, InvalidParameter, NotConverged
from tamis.neural._gating import Folds, Gated, learn_gates, strength
from tamis.neural._ranking import PerClass, by_class, by_place, by_width, widest
from tamis.neural._stack import LOSSES
from tamis.neural.embedded import Embedded
from tamis.neural.gates import GATES, SPARSITY
from tamis.neural.network import NetworkClassifier, check_among
from tamis.neural.path import rising, walk
from tamis.neural.profile import ClassFeature, Profile
from tamis.neural.redundancy import KINDS, Redundancy, mean_redundancy, redundancy

#: Rows of a class below which correlations inside it are mostly chance.
FEW_ROWS = 5
#: Folds by which "auto" judges.
N_FOLDS = 3


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
        gates of scope "class", ``PerClass(2)``. Where every class has its own, the widest counts;
        linear gates have no common scale, so that a number takes the first of every class, then
        the second of every class, and so on.
    gate : {"linear", "bell", "sigmoid"}, default="linear"
        The parameter b itself, from 1; exp(-b^2), from 0.99; or 1 / (1 + exp(-b)), from 0.9.
    scope : {"global", "class"}, default="global"
        One gate for each column, or for each class and column.
    class_loss : {"own", "one-vs-rest"}, default="own"
        For scope "class": whether the gates of a class multiply its own rows only, as printed, or
        all rows, judged by how well they tell that class from the others (by cross-entropy,
        whatever ``loss`` is); the latter does not see the label.
    sparsity : {"l0", "l1", "bell"}, default="l0"
        What an open gate g costs: 1 - exp(-g^2 / 2 width^2), its size, or g (1 - g).
    width : float or pair of float, default=0.35
        Of "l0"; a pair is annealed from the first to the second.
    redundancy : {"pearson", "squared", "information"}, default="pearson"
        phi: the absolute correlation of two columns, its square, or their normalised mutual
        information; 0 where a column does not vary.
    level : {"global", "class"} or None, default=None
        Whether phi is taken over all rows or inside each class; None is as ``scope``.
    mu, lam : float, array of one number for each class, or "auto", default="auto"
        Weights of sparsity and redundancy. "auto" takes those under which a network trained on the
        chosen columns does best on rows that were held out, along :func:`gate_path`.
    joint : bool, default=False
        Whether the weights of the network go on learning with the gates.
    hidden, activation, loss, decay, restarts, validation
        Of the network, see :class:`NetworkClassifier`. Its weights tell the gates what matters, so
        that they are held smaller (``decay=0.01``) than is best for a network that predicts.
    combine : {"best", "mean"}, default="mean"
        Whether the gates stand before the best network, or before all of them at once. Learned
        jointly, each network has gates of its own, and those of the lowest objective are kept.
    solver : {"lbfgs", "adam"}, default="lbfgs"
        Of the network and the gates. Before the same network both end at the same linear gates;
        bounded ones, which stay open or closed, may be decided differently.
    max_iter : int, default=1000
        Epochs of Adam, or iterations of L-BFGS, for the gates.
    learning_rate, batch_size
        Of Adam, for the network and the gates.
    tol : float, default=1e-5
        Relative change of the objective below which gates are at rest.
    random_state : int, generator or None, default=None

    Attributes
    ----------
    gates_ : array of shape (n_features,)
        The gate of each column, in absolute value; the widest of its classes for scope "class".
        Columns without variance have closed gates.
    class_gates_ : array of shape (n_classes, n_features)
        Gates by class, for scope "class".
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

    See :class:`tamis.selection.Selection` for what else it knows.

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
    >>> X, y = load_iris(return_X_y=True)
    >>> gates = GateSelector(n_features_to_select=2, hidden=3, mu=0.05, lam=0.1, random_state=0)
    >>> gates.fit(X, y).get_support(indices=True)
    array([2, 3])
    """

    def __init__(
        self,
        *,
        n_features_to_select: Any = 0.5,
        gate: str = "linear",
        scope: str = "global",
        class_loss: str = "own",
        sparsity: str = "l0",
        width: Any = 0.35,
        redundancy: str = "pearson",
        level: str | None = None,
        mu: Any = "auto",
        lam: Any = "auto",
        joint: bool = False,
        hidden: int = 10,
        activation: str = "tanh",
        loss: str = "log",
        decay: float | str = 0.01,
        restarts: int = 1,
        validation: int | float | None = 5,
        combine: str = "mean",
        solver: str = "lbfgs",
        max_iter: int = 1000,
        learning_rate: float = 0.02,
        batch_size: int | None = None,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.n_features_to_select = n_features_to_select
        self.gate = gate
        self.scope = scope
        self.class_loss = class_loss
        self.sparsity = sparsity
        self.width = width
        self.redundancy = redundancy
        self.level = level
        self.mu = mu
        self.lam = lam
        self.joint = joint
        self.hidden = hidden
        self.activation = activation
        self.loss = loss
        self.decay = decay
        self.restarts = restarts
        self.validation = validation
        self.combine = combine
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.tol = tol
        self.random_state = random_state

    def _learn(self, X: Array, y: NDArray[Any] | None, seed: int) -> Iterator[Step]:
        self.classes_, codes = class_codes(np.asarray(y))
        settings = clone(self).set_params(random_state=seed)
        for name in ("mu", "lam"):  # which only now can be held against the number of classes
            settings._weights(name, len(self.classes_))
        self._warn_of_few_rows(codes)
        by_class = np.argsort(codes, kind="stable")
        Z, codes = standardised(X)[by_class], codes[by_class]
        self.network_ = settings._network().fit(X, y)
        phi = settings._redundancies(Z, codes, len(self.classes_))
        used = np.ones((1, len(Z)), dtype=bool)
        folds = Folds(Z, codes, used, self.network_.networks(), [phi])
        gated = self._followed(settings, folds)
        best = int(np.argmin(gated.values))
        if gated.diverged[best]:
            self._warn_of_divergence()
        gates = strength(gated.gates[best], Z)
        epochs = ~np.isnan(gated.history["loss"][:, best])
        self.history_ = {name: term[epochs, best] for name, term in gated.history.items()}
        self.n_iter_ = max(int(epochs.sum()) - 1, 1)
        self.gates_ = widest(gates)
        if self.scope == "class":
            self.class_gates_ = gates
        self._profile = Profile.of(X, np.asarray(y), self.classes_)
        return self._steps(gates)

    def _followed(self, settings: Self, folds: Folds) -> Gated:
        """Gates under the weights given, or under the best of a path walked up to there."""
        mu, levels = self._levels(settings, folds)
        self.mu_, self.lam_ = mu, levels[-1]
        n_runs = len(folds.stack.inner) if self.joint else 1
        every, points = np.zeros(n_runs, dtype=np.intp), None
        for level in levels:
            mus, lams = (np.tile(w, (n_runs, 1)) for w in (mu, level))
            gated = learn_gates(
                settings, folds, every, mus, lams, start=points, first=np.arange(n_runs)
            )
            points = gated.points
        return gated

    def _levels(self, settings: Self, folds: Folds) -> tuple[Array, list[Array]]:
        """The weight of sparsity, and those of redundancy up to the one that is wanted."""
        n_classes = len(self.classes_)
        mu, lam = settings._weights("mu", n_classes), settings._weights("lam", n_classes)
        self.path_ = None
        if mu is not None and lam is not None:
            return mu, [lam]
        for name, given in (("mu", mu), ("lam", lam)):
            if given is not None and np.ptp(given) > 0:
                raise InvalidParameter(
                    f"GateSelector needs {name} as one number where the other weight is 'auto', "
                    f"not one for each class ({getattr(self, name)!r}). Give numbers for both."
                )
        # the grid of a weight that is given is that weight
        mus, lams = (None if w is None else w[:1] for w in (mu, lam))
        self.path_ = walk(settings, folds.X, folds.codes, mus, lams, N_FOLDS)
        best, n_rows = self.path_.best, 1 if self.scope == "global" else n_classes
        along = rising(self.path_.mu[[best]], lams, folds.mean_redundancy)[:, 0]
        levels = [np.full(n_rows, level) for level in along[: best % len(along) + 1]]
        return np.full(n_rows, self.path_.mu[best]), levels

    def features_for(self, label: Any) -> list[ClassFeature]:
        """Columns that tell one class, the widest gate first, with their profile by class.

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
        if self.scope != "class":
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
            ClassFeature(int(j), str(names[j]), float(gates[j]), *self._profile.of_column(j))
            for j in best_first(gates)
        ]

    @property
    def feature_importances_(self) -> Array:
        """The gates, for whoever ranks by importances."""
        return self.gates_

    def _network(self) -> NetworkClassifier:
        """The network that these parameters describe."""
        return NetworkClassifier(
            self.hidden,
            activation=self.activation,
            loss=self.loss,
            decay=self.decay,
            validation=self.validation,
            restarts=self.restarts,
            combine=self.combine,
            solver=self.solver,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            random_state=self.random_state,
        )

    @property
    def _rows_of_gates(self) -> str:
        """Which rows of the table each row of gates multiplies, see :class:`GateLoss`."""
        if self.scope == "class" and self.class_loss == "one-vs-rest":
            return "one-vs-rest"
        return self.scope

    def _redundancies(self, Z: Array, codes: NDArray[np.intp], n_classes: int) -> list[Redundancy]:
        """Dependence of the columns for all rows of gates, or for each."""
        if (self.level or self.scope) == "global":
            return redundancy(self.redundancy, Z)
        inside = redundancy(self.redundancy, Z, codes, n_classes)
        return inside if self.scope == "class" else mean_redundancy(inside)

    def _steps(self, gates: Array) -> Iterator[Step]:
        """Columns in the order of their gates, as the choice needs them."""
        if isinstance(self.n_features_to_select, PerClass):
            return by_class(gates)
        counted = not isinstance(self.n_features_to_select, Threshold)
        if self.scope == "class" and self.gate == "linear" and counted:
            return by_place(gates)
        return by_width(gates)

    def _weights(self, name: str, n_classes: int) -> Array | None:
        """``mu`` or ``lam`` for each row of gates, None where it is "auto"."""
        given, n_rows = getattr(self, name), n_classes if self.scope == "class" else 1
        if isinstance(given, str) and given == "auto":
            return None
        values = _as_numbers(given)
        if values.ndim > 1 or not np.isfinite(values).all() or (values < 0).any():
            raise InvalidParameter(
                f"GateSelector needs {name} as a number of at least 0, one such number for each "
                f"class, or 'auto', not {given!r}."
            )
        if values.ndim == 1 and len(values) != n_rows:
            raise InvalidParameter(
                f"GateSelector needs one {name} for each row of gates, which with scope="
                f"{self.scope!r} are {n_rows}, but got {len(values)}."
            )
        return np.full(n_rows, values)

    def _check(self) -> None:
        choices: dict[str, Collection[Any]] = {
            "gate": GATES,
            "scope": ("global", "class"),
            "class_loss": ("own", "one-vs-rest"),
            "sparsity": SPARSITY,
            "redundancy": KINDS,
            "level": ("global", "class", None),
            "loss": LOSSES,
            "solver": ("lbfgs", "adam"),
        }
        check_among(self, choices)
        super()._check()
        self._network().check()
        if self.sparsity == "bell" and self.gate == "linear":
            raise InvalidParameter(
                "GateSelector(sparsity='bell') pushes a gate to 0 or 1, which a linear gate does "
                "not keep to. Use gate='bell' or gate='sigmoid'."
            )
        if self.class_loss != "own" and self.scope == "global":
            raise InvalidParameter(
                f"GateSelector(class_loss={self.class_loss!r}) is for gates of each class. Use "
                "scope='class', or leave class_loss out."
            )
        if not isinstance(self.joint, bool | np.bool_):
            raise InvalidParameter(f"GateSelector needs joint=True or False, not {self.joint!r}.")
        widths = _as_numbers(self.width)
        if widths.shape not in ((), (2,)) or not np.isfinite(widths).all() or (widths <= 0).any():
            raise InvalidParameter(
                f"GateSelector needs width as a number > 0 or a pair of them, not {self.width!r}."
            )
        if not (is_int(self.max_iter) and self.max_iter >= 1):
            raise InvalidParameter(
                f"GateSelector needs max_iter as an int of at least 1, not {self.max_iter!r}."
            )
        if not (is_real(self.tol) and self.tol >= 0):
            raise InvalidParameter(f"GateSelector needs tol >= 0, not {self.tol!r}.")

    def _warn_of_few_rows(self, codes: NDArray[np.intp]) -> None:
        """Correlations inside a class of a few rows are near 1 by chance."""
        counts = np.bincount(codes)
        if (self.level or self.scope) == "class" and counts.min() < FEW_ROWS:
            few = ", ".join(str(label) for label in self.classes_[counts < FEW_ROWS])
            warn(
                f"GateSelector takes the redundancy inside each class, but {few} has fewer than "
                f"{FEW_ROWS} rows, whose correlations are mostly chance. level='global' takes it "
                "over all rows.",
                DegenerateData,
                stacklevel=6,
            )

    def _doubt(self) -> None:
        """Say which columns were kept although their gates are closed, and why."""
        closed = 0.1 if self.gate != "linear" else np.min(self.width) / 3
        n_open = int(np.sum(self.gates_[self.support_] >= closed))
        if n_open < self.n_features_:
            warn(
                f"GateSelector keeps {self.n_features_} column(s), but only {n_open} of the gates "
                "are open; the order of the others is hardly more than chance. Ask for fewer "
                "columns, or lower mu or lam.",
                DegenerateData,
                stacklevel=5,
            )

    def _warn_of_divergence(self) -> None:
        """Say that steps were so long that the objective was lost."""
        warn(
            "GateSelector diverged: its objective was no longer finite, and the best gates before "
            "that are used. Use a smaller learning_rate, mu or lam.",
            NotConverged,
            stacklevel=6,
        )


def _as_numbers(given: Any) -> Array:
    """An array of numbers; nan where it is none, as for text."""
    try:
        return np.asarray(np.nan if isinstance(given, str) else given, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)
