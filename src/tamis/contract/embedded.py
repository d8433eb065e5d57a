"""Base class of embedded selectors, whose model ranks the columns itself."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags

from tamis._arrays import Array
from tamis._memory import FEWER, QUICK, check_cost
from tamis._seeds import Seed, draw_seed
from tamis.contract.criterion import check_target, rows_advice
from tamis.contract.record import Record
from tamis.contract.selector import Selection
from tamis.contract.steps import Entries, Event, Progress, Step
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter


class Given(NamedTuple):
    """Source of the steps of an embedded selector: the table and the seed.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,) or None
    seed : int
        Seed from which the model derives its random numbers.
    n_evaluations : int
        Number of scores computed so far.
    parts : tuple of Record
        Always empty, because an embedded selector has no inner selections.
    criterion : None
        Always None, because only a search has a criterion.
    """

    X: Array
    y: NDArray[Any] | None
    seed: int
    n_evaluations: int
    parts: tuple[Record, ...] = ()
    criterion: None = None


class Embedded(Selection):
    """Selection whose model ranks the columns itself.

    A subclass has the parameters ``n_features_to_select`` and ``random_state``. :meth:`_stages`
    trains the model in stages, and can be stopped after each of them. :meth:`_restore` sets the
    fitted attributes from the recorded state, without training again. :meth:`_ranked` yields the
    units from best to worst.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from tamis.contract import Embedded, Entries, Scores
    >>> class RidgeRanking(Embedded):
    ...     fewer, quick = "Then(Ranking(FisherScore()), RidgeRanking())", "fisher-score"
    ...     def __init__(self, n_features_to_select=1, random_state=0):
    ...         self.n_features_to_select, self.random_state = n_features_to_select, random_state
    ...     def cost(self, n_samples, n_features):
    ...         return None
    ...     def _stages(self, X, y, seed, state):
    ...         yield {"weights": abs(RidgeClassifier().fit(X, y).coef_).sum(axis=0).tolist()}
    ...     def _restore(self, X, y, state):
    ...         self.weights_ = np.array(state["weights"])
    ...     def _ranked(self):
    ...         scores = Scores(np.arange(len(self.weights_)), self.weights_)
    ...         yield Entries(np.argsort(-self.weights_), scores)
    >>> RidgeRanking().fit(*load_iris(return_X_y=True)).order_
    array([3, 1, 2, 0])
    """

    #: Whether ``fit`` needs ``y``. The next attribute lists the kinds of target that it accepts.
    needs_target: ClassVar[bool] = True
    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    nested: ClassVar[bool] = True
    #: False, because the model is trained for a fixed number of columns.
    extends: ClassVar[bool] = False

    #: Alternatives that an error about too little memory suggests: an expression that first reduces
    #: the number of columns (``fewer``), and the name of a fast recipe (``quick``).
    fewer: ClassVar[str] = FEWER
    quick: ClassVar[str] = QUICK

    random_state: Seed
    #: The units of the table, and their names if ``X`` was encoded from another table.
    _units: Grouping = Grouping(0)
    _unit_labels: list[Any] | None = None

    @abstractmethod
    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that a fit needs in addition to the table.

        It is None if unknown.
        """

    @abstractmethod
    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Train the model. After each stage, yield a state from which training can continue.

        For a new fit, ``state`` is empty. For a resumed fit, it is an earlier state, as read from
        JSON. After the last state, the model is fully trained.
        """

    @abstractmethod
    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        """Set the fitted attributes from the last state."""

    @abstractmethod
    def _ranked(self) -> Iterator[Event]:
        """Yield events that add the units in the order of the fitted model, best first.

        The caller moves fixed units to the front. ``self._units`` holds the units of the table.
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
            if made:  # already recorded
                made -= len(event.units) if isinstance(event, Entries) else 1
                continue
            yield event._replace(state=state)

    def _around_fixed(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events with the fixed units added first."""
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
        own = sorted(params.keys() & self.get_params(deep=False).keys())
        if own:
            raise InvalidParameter(
                f"{own[0]} is a parameter of {type(self).__name__}, not of fit. Write "
                f"{type(self).__name__}({own[0]}=...)."
            )
        if names:
            raise InvalidParameter(
                f"{type(self).__name__} cannot use {names}. "
                + rows_advice(
                    names,
                    "a search whose criterion can, such as RecursiveElimination(Importances(...))",
                )
            )
        self._check_memory(X, y)
        return Given(X, y, draw_seed(self.random_state), X.shape[1])

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        """Refuse a table that would need more memory for the fit than is available."""
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
        """Warn about problems of a finished selection. The default does nothing."""

    def _check_target(self, y: NDArray[Any] | None) -> None:
        check_target(self, y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_target
        return tags
