"""Base class of selections that run other selections."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from tamis._arrays import Array
from tamis.contract.choice import Choice, Context
from tamis.contract.record import Record
from tamis.contract.run import Run
from tamis.contract.selector import Selection
from tamis.contract.steps import Event
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping

#: Metadata passed to ``fit``, or to ``fit_transform`` in a pipeline, are routed to the ``fit`` of
#: each part.
FITTING = MethodMapping().add(caller="fit", callee="fit").add(caller="fit_transform", callee="fit")


class PartRuns:
    """Source of the steps of a composition: the runs of its parts.

    The last part decides which units are selected.

    Parameters
    ----------
    X, y : array
        The validated data.
    params : dict
        Per-row metadata.
    done : Record
        The record to continue from.
    """

    #: A composition has no criterion.
    criterion = None

    def __init__(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> None:
        self.X, self.y, self.params, self.grouping = X, y, params, done.grouping
        self._done, self._runs = done.parts, list[Run]()

    def begin(
        self, part: Selection, X: Any, y: Any, params: dict[str, Any], grouping: Grouping
    ) -> Run:
        """Start the run of the next part, and continue from its record if there is one."""
        index = len(self._runs)
        done = self._done[index] if index < len(self._done) else None
        self._runs.append(Run(part, X, y, params, done, grouping))
        return self._runs[-1]

    @property
    def parts(self) -> tuple[Record, ...]:
        """The records of all parts, including recorded parts that have not been resumed yet."""
        return (*[run.record for run in self._runs], *self._done[len(self._runs) :])

    @property
    def n_evaluations(self) -> int:
        """Total number of scores that the parts have computed."""
        return sum(part.n_evaluations for part in self.parts)


class Composed(MetaEstimatorMixin, Selection):
    """Selection that runs several parts. Its steps are the steps of the last part."""

    #: Names of the parameters that hold the parts, in the order in which the parts run.
    part_names: ClassVar[tuple[str, ...]]

    @property
    def _parts(self) -> list[Any]:
        return [getattr(self, name) for name in self.part_names]

    @property
    def extends(self) -> bool:  # type: ignore[override]
        """Whether the last part can extend a record to a different size."""
        return bool(self._parts[-1].extends)

    def _choice(self) -> Choice:
        choice: Choice = self._parts[-1]._choice()
        return choice

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> PartRuns:
        return PartRuns(X, y, params, done)

    def _guided(
        self, source: PartRuns, size: int | None, done: Trace, context: Context
    ) -> Iterator[Event]:
        return self._steps(source, done.n_units, size, done)  # the choice guides the last part

    def _seeded(self, seeds: dict[str, int] | None) -> tuple[Self, dict[str, int]]:
        return self, {}  # each part has its own seeds and record

    def _unsized(self) -> Self:
        self.set_params(**{self.part_names[-1]: self._parts[-1]._unsized()})
        return self

    @property
    def _takes_metadata(self) -> bool:
        return any(part._takes_metadata for part in self._parts)

    def _shares(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the metadata for each part.

        With metadata routing, each part gets the metadata that are routed to it. Otherwise the
        parts that accept metadata get all of them.
        """
        if get_config()["enable_metadata_routing"] and params:
            routed = process_routing(self, "fit", **params)
            return [dict(routed[name].fit) for name in self.part_names]
        if not self._takes_metadata:
            return [params for _ in self._parts]  # the first part raises the error
        return [params if part._takes_metadata else {} for part in self._parts]

    def get_metadata_routing(self) -> MetadataRouter:
        """Route metadata of ``fit`` to the parts."""
        parts = dict(zip(self.part_names, self._parts, strict=True))
        return MetadataRouter(owner=self).add(method_mapping=FITTING, **parts)


def combine_tags(tags: Tags, parts: Sequence[Any]) -> Tags:
    """Set the tags of a composition of the given parts.

    The composition accepts an input only if all parts accept it. It has every requirement that at
    least one part has.
    """
    inner = [part.__sklearn_tags__() for part in parts]
    tags.target_tags.required = any(part.target_tags.required for part in inner)
    tags.target_tags.multi_output = all(part.target_tags.multi_output for part in inner)
    tags.input_tags.allow_nan = all(part.input_tags.allow_nan for part in inner)
    tags.input_tags.sparse = all(part.input_tags.sparse for part in inner)
    return tags
