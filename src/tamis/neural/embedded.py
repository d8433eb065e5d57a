"""Selectors that rank the columns in one fit of their own, without a criterion."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Tags

from tamis._arrays import Array
from tamis._random import draw_seed
from tamis.choice import Choice, resolve_choice
from tamis.contract import check_data, check_target
from tamis.exceptions import InvalidParameter
from tamis.neural._afford import check_affordable
from tamis.neural._state import State
from tamis.record import Record
from tamis.selection import Selection
from tamis.trace import Step, Trace


class Embedded(CallbackSupportMixin, Selection):
    """Selector whose model says itself which columns it needs.

    A subclass has ``n_features_to_select`` and ``random_state`` among its parameters. It trains in
    :meth:`_stages`, which can be stopped after each of them and goes on from the state that it
    gave; :meth:`_restore` makes the fitted attributes from the last state, and :meth:`_steps` adds
    the columns one after the other.
    """

    #: As of a criterion.
    needs_target: ClassVar[bool] = True
    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    #: Each step holds the one before; columns are scored together.
    nested: ClassVar[bool] = True
    prices_alone: ClassVar[bool] = False
    _takes_metadata: ClassVar[bool] = False

    #: What leaves fewer columns, and the recipe that is done soon, where a table is too large.
    fewer: ClassVar[str]
    quick: ClassVar[str]

    n_features_to_select: int | float | str | Choice
    random_state: Any

    @abstractmethod
    def cost(self, n_samples: int, n_features: int) -> tuple[float, float]:
        """Operations and bytes, about, of a fit to a table of this size."""

    @abstractmethod
    def _stages(self, X: Array, y: NDArray[Any] | None, seed: int, state: State) -> Iterator[State]:
        """Train, and yield after each stage the state from which training can go on.

        ``state`` is empty at first, or one that was yielded before, as JSON gives it back; from the
        last one there is nothing left to do.
        """

    @abstractmethod
    def _restore(self, X: Array, y: NDArray[Any] | None, state: State) -> None:
        """Set the fitted attributes from the last state."""

    @abstractmethod
    def _steps(
        self, criterion: None, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        """The columns of the fitted model, the best first, behind the steps already done."""

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the model and keep the columns that it needs; it has no use for metadata."""
        self._refuse(params)
        return self._run(X, y, None)

    def resume(
        self, X: ArrayLike, y: ArrayLike | None = None, *, record: "Record | str", **params: Any
    ) -> Self:
        """Fit again with the seed of a record, or of its file, on the same data.

        The seed makes the result the one that the record was to have.
        """
        self._refuse(params)
        return self._run(X, y, Record.of(record))

    def _refuse(self, params: dict[str, Any]) -> None:
        names = ", ".join(sorted(name for name, value in params.items() if value is not None))
        if names:
            raise InvalidParameter(
                f"{type(self).__name__} cannot use {names}. Leave {names} out, or use a search "
                "whose criterion can, such as RecursiveElimination(Importances(...))."
            )

    @with_callbacks
    def _run(self, X: Any, y: Any, done: Record | None) -> Self:
        self._forget()
        self._check()
        X, y = check_data(self, X, y)
        check_target(self, y)
        choice, size = self._choice(), self._size(X.shape[1])
        self._afford(X, y)
        fresh = Record.begin(self, X, y, {})
        if done is not None:
            done.check_continues(fresh)
        seed = draw_seed(self.random_state) if done is None else done.seeds["random_state"]
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)
        trace, before = Trace(X.shape[1]), perf_counter()
        (state,) = deque(self._stages(X, y, seed, {}), maxlen=1)
        self._restore(X, y, state)
        for step in self._steps(None, X.shape[1], size, trace):
            now = perf_counter()
            trace.append(step._replace(seconds=now - before))
            before = now
        self._settle(
            replace(
                fresh,
                trace=trace,
                chosen=choice.pick(trace),
                n_evaluations=trace.n_units,
                seeds={"random_state": seed},
                finished=True,
            )
        )
        context.call_on_fit_task_end(estimator=self)
        self._doubt()
        return self

    def _afford(self, X: Array, y: NDArray[Any] | None) -> None:
        """Refuse a table that does not fit into memory, and say where it takes long."""
        check_affordable(
            type(self).__name__, self.cost, *X.shape, fewer=self.fewer, quick=self.quick
        )

    def _doubt(self) -> None:
        """Warn of what a selection that stands leaves open."""

    def _choice(self) -> Choice:
        return resolve_choice(self.n_features_to_select, type(self).__name__)

    def _size(self, n_units: int) -> int | None:
        """Number of columns kept, None where only the data can tell."""
        return self._choice().size(n_units, type(self).__name__)

    def _check(self) -> None:
        """Refuse parameters that cannot work, before any data are seen."""
        self._choice().check(self, self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_target
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        return tags
