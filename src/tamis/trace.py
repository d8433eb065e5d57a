"""The steps of a search, kept as moves.

A step holds a whole subset; keeping every one would cost memory of the order of the square of the
number of units. A :class:`Trace` keeps what moved and rebuilds the subsets on demand.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np

from tamis._arrays import EMPTY, Array, Mask, Subset

NO_PRICES: Array = np.empty(0)
NO_PRICES.flags.writeable = False


class Step(NamedTuple):
    """One step of a search.

    Attributes
    ----------
    subset : array of int
        The units held after the step, sorted when read from a trace.
    value : float
        The criterion's value of the subset, nan where it only ranks.
    moved : array of int
        The units that entered or left with this step.
    prices : array of float
        The price of each moved unit; behind them, where the step weighed the members that stayed,
        the price of each member of ``subset`` in ascending order. A trace keeps the latter for its
        newest step only.
    errors : array of float
        Standard errors of ``prices``, empty where they are not known.
    params : dict
        Hyper-parameters chosen at this step by ``retune``.
    seconds : float
        Time since the step before.
    state : dict
        What the search needs beyond the steps to continue from here.
    """

    subset: Subset
    value: float = float("nan")
    moved: Subset = EMPTY
    prices: Array = NO_PRICES
    errors: Array = NO_PRICES
    params: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    seconds: float = 0.0
    state: dict[str, Any] = {}  # noqa: RUF012


class Trace(Sequence[Step]):
    """Sequence of steps, each subset rebuilt from the moves before it.

    >>> trace = Trace(3)
    >>> trace.append(Step(np.array([2]), moved=np.array([2]), prices=np.array([0.7])))
    >>> trace.append(Step(np.array([2, 0]), moved=np.array([0]), prices=np.array([0.1])))
    >>> trace[-1].subset, trace.sizes
    (array([0, 2]), array([1, 2]))
    """

    def __init__(self, n_units: int, steps: Iterable[Step] = ()):
        self.n_units = n_units
        self._start: Mask = np.zeros(n_units, dtype=bool)
        self._steps: list[Step] = []  # all without their subsets
        self._sizes: list[int] = []
        for step in steps:
            self.append(step)

    def append(self, step: Step) -> None:
        """Add a step whose ``moved`` are exactly the units that changed sides."""
        if self._steps:
            self._steps[-1] = _without_standing(self._steps[-1])
        else:
            self._start[step.subset] = True
            self._start[step.moved] ^= True
        self._steps.append(step._replace(subset=EMPTY, value=float(step.value)))
        self._sizes.append(len(step.subset))

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> "list[Step]": ...
    def __getitem__(self, index: int | slice) -> "Step | list[Step]":
        if isinstance(index, slice):
            wanted = range(*index.indices(len(self)))
            found = {i: step for i, step in enumerate(self) if i in wanted}
            return [found[i] for i in wanted]
        index = range(len(self))[index]
        mask = self._start.copy()
        for step in self._steps[: index + 1]:
            mask[step.moved] ^= True
        return self._steps[index]._replace(subset=np.flatnonzero(mask))

    def __iter__(self) -> Iterator[Step]:
        mask = self._start.copy()
        for step in self._steps:
            mask[step.moved] ^= True
            yield step._replace(subset=np.flatnonzero(mask))

    def moves(self) -> Iterator[tuple[Subset, Mask, Array]]:
        """For each step: the units that moved, whether each entered, and their prices."""
        mask = self._start.copy()
        for step in self._steps:
            mask[step.moved] ^= True
            yield step.moved, mask[step.moved], step.prices[: len(step.moved)]

    @property
    def sizes(self) -> Subset:
        """Number of units held after each step."""
        return np.array(self._sizes, dtype=np.intp)

    @property
    def values(self) -> Array:
        """Value after each step."""
        return np.array([step.value for step in self._steps])

    @property
    def seconds(self) -> float:
        """Time of all steps together."""
        return sum(step.seconds for step in self._steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists: where it started, and the moves."""
        return {
            "n_units": self.n_units,
            "start": np.flatnonzero(self._start).tolist(),
            "sizes": self._sizes,
            "steps": [_step_to_dict(step) for step in self._steps],
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The trace that :meth:`to_dict` wrote."""
        trace = cls(plain["n_units"])
        trace._start[plain["start"]] = True
        trace._sizes = list(plain["sizes"])
        trace._steps = [_step_from_dict(step) for step in plain["steps"]]
        return trace

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} steps over {self.n_units} units>"


def _without_standing(step: Step) -> Step:
    """The step without the prices of the members that stayed."""
    n_moved = len(step.moved)
    return step._replace(prices=step.prices[:n_moved], errors=step.errors[:n_moved])


def _step_to_dict(step: Step) -> dict[str, Any]:
    """A step without its subset and without what is empty."""
    plain = step._asdict()
    del plain["subset"]
    for name in ("moved", "prices", "errors"):
        plain[name] = plain[name].tolist()
    if np.isnan(step.value):  # what it is by default, and what JSON cannot say
        del plain["value"]
    return {n: value for n, value in plain.items() if value or not isinstance(value, list | dict)}


def _step_from_dict(plain: dict[str, Any]) -> Step:
    plain = dict(plain)
    moved = np.array(plain.pop("moved", []), dtype=np.intp)
    prices = np.array(plain.pop("prices", []), dtype=float)
    errors = np.array(plain.pop("errors", []), dtype=float)
    return Step(EMPTY, moved=moved, prices=prices, errors=errors, **plain)


def changed(before: Subset, after: Subset) -> Subset:
    """Units that are in one of two subsets only."""
    return np.setxor1d(before, after, assume_unique=True)
