"""Gates that keep the distances between rows, without a target."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tamis._arrays import Array, Subset, best_first, is_int, is_real, standardised
from tamis._random import stream
from tamis.contract import TASKS, Cost, Embedded, Entries, Grouping, Scores
from tamis.exceptions import DegenerateData, InvalidParameter
from tamis.neural._cost import cost_of_distances
from tamis.neural._distances import SammonObjective, distances, lost
from tamis.neural._sharing import Sharing, grouped
from tamis.neural._state import State, packed, packed_all, unpacked, unpacked_all
from tamis.neural.redundancy import KINDS, Dependence, check_columns, dependences

#: Shares of ``beta`` by which gates are driven to 0 or 1, one after the other.
STAGES = (0.0, 1.0)
#: Weights of the number of columns are tried up to this one, where it outweighs all other terms by
#: more than any table has columns.
HEAVIEST = 1e7
#: How far starting points are from each other: enough to end apart, near enough that the number of
#: open gates is about right.
JITTER = 0.1


class UFeSCoR(Embedded):
    r"""Gates on the columns that keep the distances between rows, with controlled redundancy.

    Minimises over :math:`g_k = e^{-b_k^2}`, for a wanted number r of p columns,

    .. math:: SE + \frac{\alpha}{(p-r)^2}\Big(\sum_k g_k - r\Big)^2
        + \frac{4\beta}{p} \sum_k g_k (1 - g_k)
        + \frac{\gamma}{p(p-1)} \sum_{i \ne j} g_i g_j \rho_{ij}^2

    with Sammon's error of the distances :math:`d_{ij}^2 = \sum_k g_k^2 (x_{ik} - x_{jk})^2` against
    those of all columns, :math:`SE = \frac{1}{\sum d^*_{ij}} \sum_{i<j} (d^*_{ij} - d_{ij})^2 /
    d^*_{ij}`; equal rows have no part in it. Columns are standardised, and ``y`` is ignored. A
    column without variance has a closed gate.

    Parameters
    ----------
    n_features_to_select : int, float or Choice, default=0.5
        The number r, or share, of columns whose gates are widest; ``Threshold(0.5)`` keeps those
        that are as wide, however many, and leaves the term of r out.
    alpha : float, default=3.0
        Weight of the number of columns; raised tenfold until as many gates as wanted are open.
    beta : float, default=0.1
        Weight that drives gates to 0 or 1, after a descent without it.
    gamma : float, default=1.0
        Weight of redundancy; with 0 distances alone decide.
    redundancy : {"pearson", "squared", "information"}, default="squared"
        Dependence of two columns: the absolute correlation, its square, or their normalised mutual
        information; 0 where a column does not vary.
    restarts : int, default=10
        Starting points; kept are the gates whose widest r have the least objective alone.
    max_rows : int, default=200
        Rows whose distances are kept; of more a sample is drawn. A step costs O(rows^2 p).
    random_state : int, Generator or None, default=None
        Seed of the starting points. They are drawn by the positions of the columns, so that columns
        in another order may end in another local minimum.
    feature_groups : mapping, sequence or None, default=None
        Columns that share a gate, and are taken or left as one unit: ``{"name": ["a", "b"]}`` or
        one label per column, as in :class:`tamis.search.Forward`. p and r then count units, and the
        redundancy of two is the mean over the pairs of their columns.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that are always kept.

    Attributes
    ----------
    gates_ : array of shape (n_features,)
    alpha_ : float
        The weight that held the number.
    history_ : dict of str to array
        The terms without their weights at each iteration: sammon, size, binary, redundancy.
    rows_ : array of int
        The rows whose distances were looked at.

    See :class:`tamis.contract.Selection` for what else it knows. The value of a step of ``trace_``
    is Sammon's error, with a minus, of the columns that it holds.

    References
    ----------
    M. Banerjee, N. R. Pal, "Unsupervised feature selection with controlled redundancy (UFeSCoR)",
    IEEE Trans. Knowledge and Data Engineering 27, 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> UFeSCoR(n_features_to_select=2, random_state=0).fit(X).get_support(indices=True)
    array([0, 1])
    """

    needs_target: ClassVar[bool] = False
    targets: ClassVar[frozenset[str]] = TASKS
    fewer = "Then(Forward(ColumnSubset(), n_features_to_select={}), UFeSCoR(...))"
    quick = "column-subset"

    def __init__(
        self,
        *,
        n_features_to_select: Any = 0.5,
        alpha: float = 3.0,
        beta: float = 0.1,
        gamma: float = 1.0,
        redundancy: str = "squared",
        restarts: int = 10,
        max_rows: int = 200,
        random_state: Any = None,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.redundancy = redundancy
        self.restarts = restarts
        self.max_rows = max_rows
        self.random_state = random_state
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features

    def _check(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            weight = getattr(self, name)
            if not (is_real(weight) and weight >= 0):
                raise InvalidParameter(f"UFeSCoR needs {name} as a number >= 0, not {weight!r}.")
        if self.redundancy not in KINDS:
            raise InvalidParameter(
                f"UFeSCoR needs redundancy out of {', '.join(KINDS)}, not {self.redundancy!r}."
            )
        for name, least in (("restarts", 1), ("max_rows", 2)):
            number = getattr(self, name)
            if not (is_int(number) and number >= least):
                raise InvalidParameter(
                    f"UFeSCoR needs {name} as an int >= {least}, not {number!r}."
                )
        super()._check()

    def cost(self, n_samples: int, n_features: int) -> Cost:
        """What a fit to a table of this size takes."""
        rows = min(n_samples, self.max_rows)
        return cost_of_distances(self.redundancy, self.restarts, rows, n_samples, n_features)

    def _size(self, n_units: int) -> int | None:
        check_columns(self.redundancy, n_units, self.fewer)
        return super()._size(n_units)

    def _stages(self, X: Array, y: NDArray[Any] | None, seed: int, state: State) -> Iterator[State]:
        if "values" in state:
            return
        Z, rows = standardised(X), self._rows(len(X), seed)
        units = Grouping(Z.shape[1]) if self._units is None else self._units
        varies = Z.any(axis=0)
        varying = np.bincount(units.unit_of, varies, units.n_units) > 0
        if not varying.any():
            warn("UFeSCoR: no column varies, so all gates stay closed.", DegenerateData, 2)
            nothing = _Descent(0.0, np.empty(0), np.empty((0, len(SammonObjective.TERMS))))
            state = {"alpha": float(self.alpha), "best": nothing.state()}
        else:
            for found in self._descents(
                Z[:, varies], rows, units, units.unit_of[varies], seed, state
            ):
                state = found
                yield state
        best, gates = _Descent.restored(state["best"]), np.zeros(units.n_units)
        gates[varying] = best.gates
        yield {
            "alpha": state["alpha"],
            "rows": packed(rows),
            "gates": packed(gates),
            "history": packed(best.history),
            "values": packed(_values(gates, Z[rows], units)),
        }

    def _rows(self, n_rows: int, seed: int) -> Subset:
        """The rows whose distances are looked at."""
        if n_rows <= self.max_rows:
            return np.arange(n_rows)
        return np.sort(stream(seed, "rows").choice(n_rows, self.max_rows, replace=False))

    def _descents(
        self,
        Z: Array,
        rows: Subset,
        units: Grouping,
        unit_of: Subset,
        seed: int,
        state: State,
    ) -> Iterator[State]:
        """From several starting points, on columns that vary; the state has the best so far.

        The first descent is made again, under a weight ten times as heavy, until it holds the
        number of columns; the others are made under that weight.
        """
        asked = self._choice().size(units.n_units, "UFeSCoR")
        names, place = np.unique(unit_of, return_inverse=True)
        sharing = None if units.plain else Sharing(place)
        size = None if asked is None else min(asked, len(names))
        (phi,), sample = grouped(dependences(self.redundancy, Z), sharing), Z[rows]

        def descended(alpha: float, start: int) -> _Descent:
            draw = stream(seed, "start", start)
            return self._descended(sample, size, phi, alpha, draw, len(names), sharing)

        def stage(alpha: float, n_done: int, best: _Descent) -> State:
            return {"alpha": alpha, "descents": n_done, "best": best.state()}

        if not state:
            state = stage(float(self.alpha), 1, descended(float(self.alpha), 0))
            yield state
        while state["descents"] == 1 and self._must_weigh_more(state, size):
            state = stage(10 * state["alpha"], 1, descended(10 * state["alpha"], 0))
            yield state
        for start in range(state["descents"], self.restarts):
            best = min(_Descent.restored(state["best"]), descended(state["alpha"], start))
            state = stage(state["alpha"], start + 1, best)
            yield state

    @staticmethod
    def _must_weigh_more(state: State, size: int | None) -> bool:
        """Whether too many or too few gates are open under a weight that can still grow."""
        if size is None or not 0 < state["alpha"] < HEAVIEST:
            return False
        return not _Descent.restored(state["best"]).holds(size)

    def _restore(self, X: Array, y: NDArray[Any] | None, state: State) -> None:
        self.alpha_ = float(state["alpha"])
        self.rows_ = unpacked(state["rows"])
        self._unit_gates = unpacked(state["gates"])
        units = self._units
        self.gates_ = self._unit_gates if units is None else units.spread(self._unit_gates)
        terms = unpacked(state["history"]).T
        self.history_ = dict(zip(SammonObjective.TERMS, terms, strict=True))
        self._values = unpacked(state["values"])

    def _ranked(self) -> Iterator[Entries]:
        gates = self._unit_gates
        scores = Scores(np.arange(len(gates)), gates)
        yield Entries(_order(gates, self._units), scores, self._values)

    def _descended(
        self,
        rows: Array,
        size: int | None,
        phi: Dependence,
        alpha: float,
        draw: Any,
        n_gates: int,
        sharing: Sharing | None,
    ) -> "_Descent":
        """One descent from a starting point of its own."""
        share = 0.5 if size is None else size / n_gates
        # around the gates whose sum is right; at b = 0 the gradient would be 0
        jitter = draw.uniform(1 - JITTER, 1 + JITTER, n_gates)
        point = np.sqrt(-np.log(np.clip(share, 0.001, 0.95))) * jitter
        history: list[tuple[float, ...]] = []
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # what is not finite is seen by its value
            for stage in STAGES:
                weights = (alpha, stage * self.beta, self.gamma)
                objective = SammonObjective(rows, size, weights, phi, history, sharing)
                found = minimize(
                    objective, point, jac=True, method="L-BFGS-B", callback=objective.note
                )
                point = found.x
        if not (np.isfinite(found.fun) and np.isfinite(point).all()):
            raise InvalidParameter(
                f"UFeSCoR cannot go on: what it minimises is not finite. alpha ({alpha:.3g}), beta "
                f"({self.beta:.3g}) or gamma ({self.gamma:.3g}) is too large."
            )
        value = float(found.fun) if size is None else objective.of_the_widest(point)
        terms = np.reshape(history, (-1, len(SammonObjective.TERMS)))
        return _Descent(value, np.exp(-(point**2)), terms)


@dataclass(frozen=True)
class _Descent:
    """Where a descent ended: what its widest gates are worth, the gates, the terms on the way."""

    value: float
    gates: Array
    history: Array

    def state(self) -> State:
        """The descent in what JSON can say."""
        return packed_all({name: np.asarray(found) for name, found in vars(self).items()})

    @classmethod
    def restored(cls, state: State) -> "_Descent":
        """The descent that :meth:`state` told of."""
        value, gates, history = unpacked_all(state, ("value", "gates", "history")).values()
        return cls(float(value), gates, history)

    def holds(self, size: int) -> bool:
        """Whether as many gates are open as were asked for."""
        return abs(float(self.gates.sum()) - size) <= 0.5

    def __lt__(self, other: "_Descent") -> bool:
        return self.value < other.value


def _order(gates: Array, units: Grouping | None) -> Subset:
    """Units that are fixed, then the others, the widest gate first."""
    first = gates.copy()
    if units is not None:
        first[units.fixed_units] = np.inf
    return best_first(first)


def _values(gates: Array, rows: Array, units: Grouping) -> Array:
    """Sammon's error, with a minus, as units are added in their order."""
    before = distances(rows)
    squares, values = np.zeros_like(before), np.empty(len(gates))
    for k, unit in enumerate(_order(gates, units)):
        for j in units.columns(np.array([unit])):
            squares += (rows[:, j, None] - rows[:, j]) ** 2
        values[k] = -lost(before, np.sqrt(squares))
    return values
