"""Selections that are composed of others, whose steps they make their own."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from tamis._arrays import Array
from tamis.contract.choice import Choice
from tamis.contract.record import Record
from tamis.contract.run import Run
from tamis.contract.selector import Selection
from tamis.contract.units import Grouping

#: Metadata of ``fit`` go to the ``fit`` of the parts; a pipeline calls ``fit_transform``.
FITTING = MethodMapping().add(caller="fit", callee="fit").add(caller="fit_transform", callee="fit")


class PartRuns:
    """The source of the steps of a composition: the runs of its parts, the last of which decides.

    Parameters
    ----------
    X, y : array
        Checked.
    params : dict
        Metadata of rows.
    done : Record
        To go on from.
    """

    #: A composition has no criterion of its own.
    criterion = None

    def __init__(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> None:
        self.X, self.y, self.params, self.grouping = X, y, params, done.grouping
        self._done, self._runs = done.parts, list[Run]()

    def begin(
        self, part: Selection, X: Any, y: Any, params: dict[str, Any], grouping: Grouping
    ) -> Run:
        """The run of the next part, from where its record left it."""
        index = len(self._runs)
        done = self._done[index] if index < len(self._done) else None
        self._runs.append(Run(part, X, y, params, done, grouping))
        return self._runs[-1]

    @property
    def parts(self) -> tuple[Record, ...]:
        """The records of the parts begun, now or in the run that is resumed."""
        return (*[run.record for run in self._runs], *self._done[len(self._runs) :])

    @property
    def n_evaluations(self) -> int:
        """Scores asked for by all parts."""
        return sum(part.n_evaluations for part in self.parts)


class Composed(MetaEstimatorMixin, Selection):
    """Selection whose steps are those of the last of its parts."""

    #: The parameters that hold the parts, in the order in which they run.
    part_names: ClassVar[tuple[str, ...]]

    @property
    def _parts(self) -> list[Any]:
        return [getattr(self, name) for name in self.part_names]

    @property
    def extends(self) -> bool:  # type: ignore[override]
        """As the last part does."""
        return bool(self._parts[-1].extends)

    def _choice(self) -> Choice:
        choice: Choice = self._parts[-1]._choice()
        return choice

    def _seeded(self, seeds: dict[str, int] | None) -> tuple[Self, dict[str, int]]:
        return self, {}  # each part has seeds, and a record, of its own

    def _unsized(self) -> Self:
        self.set_params(**{self.part_names[-1]: self._parts[-1]._unsized()})
        return self

    @property
    def _takes_metadata(self) -> bool:
        return any(part._takes_metadata for part in self._parts)

    def _shares(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Metadata for each part: by requests if routing is enabled, else where they are of use."""
        if get_config()["enable_metadata_routing"] and params:
            routed = process_routing(self, "fit", **params)
            return [dict(routed[name].fit) for name in self.part_names]
        if not self._takes_metadata:
            return [params for _ in self._parts]  # the first part says why not
        return [params if part._takes_metadata else {} for part in self._parts]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to the parts."""
        parts = dict(zip(self.part_names, self._parts, strict=True))
        return MetadataRouter(owner=self).add(method_mapping=FITTING, **parts)


def combine_tags(tags: Tags, parts: Sequence[Any]) -> Tags:
    """Write into tags what all parts take, and what one of them needs."""
    inner = [part.__sklearn_tags__() for part in parts]
    tags.target_tags.required = any(part.target_tags.required for part in inner)
    tags.target_tags.multi_output = all(part.target_tags.multi_output for part in inner)
    tags.input_tags.allow_nan = all(part.input_tags.allow_nan for part in inner)
    tags.input_tags.sparse = all(part.input_tags.sparse for part in inner)
    return tags
