"""Selections by a model that says itself which columns it needs."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags

from tamis._arrays import Array
from tamis._memory import check_cost
from tamis._seeds import draw_seed
from tamis.contract.criterion import check_target
from tamis.contract.record import Record
from tamis.contract.selector import Selection
from tamis.contract.steps import Entries, Event, Progress, Step
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter


class Given(NamedTuple):
    """What an embedded selection learns from: the table and the seed of its draws.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,) or None
    seed : int
    n_evaluations : int
        Scores asked for so far.
    parts : tuple of Record
        Records of selections inside that have come to their end.
    criterion : None
        A search has one here.
    """

    X: Array
    y: NDArray[Any] | None
    seed: int
    n_evaluations: int
    parts: tuple[Record, ...] = ()
    criterion: None = None


class Embedded(Selection):
    """Selection whose model says itself which columns it needs.

    A subclass has ``n_features_to_select`` and ``random_state`` among its parameters. It trains in
    :meth:`_stages`, after each of which it can be stopped; :meth:`_restore` makes the fitted
    attributes of the last state, which is in the record, so that what was trained is never trained
    again; :meth:`_ranked` adds the columns.
    """

    #: As of a criterion.
    needs_target: ClassVar[bool] = True
    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    #: Each step holds the one before; columns are scored together.
    nested: ClassVar[bool] = True
    #: A model is trained for the number of columns that it is to keep.
    extends: ClassVar[bool] = False

    #: What leaves fewer columns, and the recipe that is done soon, where a table is too large.
    fewer: ClassVar[str]
    quick: ClassVar[str]

    random_state: Any
    #: The units of the table that is learned from.
    _units: Grouping = Grouping(0)

    @abstractmethod
    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the bytes that a fit holds beside the table; None if they are not known."""

    @abstractmethod
    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Train, and yield after each stage the state from which training can go on.

        ``state`` is empty at first, or one that was yielded before, as JSON gives it back; from the
        last one there is nothing left to do.
        """

    @abstractmethod
    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        """Set the fitted attributes from the last state."""

    @abstractmethod
    def _ranked(self) -> Iterator[Event]:
        """Add the units of the fitted model, the best first; what is fixed is moved to the front.

        ``self._units`` says which columns belong to which unit, from ``_stages`` on.
        """

    def _steps(
        self, criterion: Given, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        X, y, seed, *_ = criterion
        state = dict(done.state)
        if not len(done):
            for stage in self._stages(X, y, seed, state):
                yield Progress(state := stage)
        self._restore(X, y, state)
        made = len(done)
        for event in self._around_fixed(self._ranked()):
            if made:  # before it was stopped
                made -= len(event.units) if isinstance(event, Entries) else 1
                continue
            yield event._replace(state=state)

    def _around_fixed(self, events: Iterator[Event]) -> Iterator[Event]:
        """The same events, with what is fixed in front of all."""
        fixed = self._units.fixed_units
        if len(fixed):
            yield Step(fixed)
        for event in events:
            if isinstance(event, Entries) and len(fixed):
                free = ~np.isin(event.units, fixed)
                values = event.values[free] if len(event.values) else event.values
                event = event._replace(units=event.units[free], values=values)
            elif isinstance(event, Step) and len(fixed):
                event = event._replace(subset=np.union1d(event.subset, fixed))
            if not isinstance(event, Entries) or len(event.units):
                yield event

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> Given:
        self._units = done.grouping
        names = ", ".join(sorted(params))
        if names:
            raise InvalidParameter(
                f"{type(self).__name__} cannot use {names}. Leave {names} out, or use a search "
                "whose criterion can, such as RecursiveElimination(Importances(...))."
            )
        self._check_memory(X, y)
        return Given(X, y, self.random_state, X.shape[1])

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        """Refuse a table that does not fit into memory."""
        name = type(self).__name__
        check_cost(name, self.cost, *X.shape, fewer=self.fewer, quick=self.quick)

    def _seeded(self, seeds: dict[str, int] | None) -> tuple[Self, dict[str, int]]:
        seed = draw_seed(self.random_state) if seeds is None else seeds["random_state"]
        return clone(self).set_params(random_state=seed), {"random_state": seed}

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        super()._settle(record, X, y)
        self._units = record.grouping
        self._restore(X, y, record.trace.state)
        if record.finished:
            self._doubt()

    def _doubt(self) -> None:
        """Warn of what a selection that stands leaves open."""

    def _check_target(self, y: NDArray[Any] | None) -> None:
        check_target(self, y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_target
        return tags
