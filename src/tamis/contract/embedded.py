"""Selections by a model that says itself which columns it needs."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags

from tamis._arrays import Array
from tamis._random import draw_seed
from tamis.contract.criterion import check_target
from tamis.contract.record import Record
from tamis.contract.selector import Selection
from tamis.contract.steps import Event, Progress, Trace
from tamis.exceptions import InvalidParameter


class Given(NamedTuple):
    """What an embedded selection learns from: the table and the seed of its draws."""

    X: Array
    y: NDArray[Any] | None
    seed: int
    n_evaluations: int
    parts: tuple[Record, ...] = ()
    criterion: None = None


class Embedded(Selection):
    """Selection whose model says itself which columns it needs.

    A subclass has ``n_features_to_select`` and ``random_state`` among its parameters and says
    :meth:`_stages`, :meth:`_restore` and :meth:`_ranked`. What was learned is plain numbers in the
    record, so that a selection that was stopped goes on from its last stage, and a finished one is
    itself again without training.
    """

    #: As of a criterion.
    needs_target: ClassVar[bool] = True
    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    #: Each step holds the one before; columns are scored together.
    nested: ClassVar[bool] = True

    random_state: Any

    @abstractmethod
    def _stages(self, given: Given, state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Train from a state, empty at first, and yield the state after each stage.

        States are what JSON can hold; the last one has all that :meth:`_restore` needs.
        """

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Set the fitted attributes that a finished training has."""

    @abstractmethod
    def _ranked(self, given: Given, state: dict[str, Any]) -> Iterator[Event]:
        """Add the columns, the best first."""

    def _steps(
        self, criterion: Given, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        state = done.state
        if not state.get("trained"):
            for stage in self._stages(criterion, dict(state)):
                yield Progress(state := stage)
            yield Progress(state := {**state, "trained": True})
        skipped = len(done)
        for event in self._ranked(criterion, state):
            if skipped:  # made before it was stopped
                skipped -= 1
                continue
            yield event._replace(state=state)

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> Given:
        names = ", ".join(sorted(params))
        if names:
            raise InvalidParameter(
                f"{type(self).__name__} cannot use {names}. Leave {names} out, or use a search "
                "whose criterion can, such as RecursiveElimination(Importances(...))."
            )
        return Given(X, y, self.random_state, X.shape[1])

    def _seeded(self, seeds: dict[str, int] | None) -> tuple[Self, dict[str, int]]:
        seed = draw_seed(self.random_state) if seeds is None else seeds["random_state"]
        return clone(self).set_params(random_state=seed), {"random_state": seed}

    def _settle(self, record: Record) -> None:
        super()._settle(record)
        self._restore(record.trace.state)
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
