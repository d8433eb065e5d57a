"""The record of a selection: everything needed to report, compare, save and resume it."""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator, clone

from tamis._arrays import Array, Subset, fingerprint
from tamis._expression import write
from tamis._files import replace_text
from tamis._format import shorten_list
from tamis._namespace import PROCESSOR
from tamis._version import __version__
from tamis.blocks.table import BlockTable
from tamis.contract.costs import format_price
from tamis.contract.ranks import order_of
from tamis.contract.record_checks import OPTIONAL, check_record
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter, InvalidTable, RecordMismatch

FORMAT = 2

#: Parameters that set resources and budgets. They do not change the result of a finished search.
MEANS = frozenset({"n_jobs", "max_evaluations", "max_seconds"})
#: Parameters that are not part of the identity, because the record stores the units they define.
UNITS = frozenset({"feature_groups", "fixed_features", "feature_costs"})


@cache
def installed_versions() -> Mapping[str, str]:
    """Return the versions of the packages that a result may depend on."""
    return {
        "python": platform.python_version(),
        "tamis": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


class Interaction(NamedTuple):
    """A pair of units, and the information that the pair has beyond its two single units.

    Attributes
    ----------
    first, second : int
        The units.
    information : float
        I(x_i; y | x_j) - I(x_i; y) in nats: positive for an interaction, negative for redundancy.
    p_value : float or None
        Share of the permutations of the target in which the strongest pair has at least this much
        information. None if the target was not permuted.
    """

    first: int
    second: int
    information: float
    p_value: float | None = None


@dataclass(frozen=True, repr=False)
class Record:
    """Record of a fitted selection: its steps, data, seeds and versions.

    Attributes
    ----------
    expression : str
        The expression that builds the selector.
    identity : str
        The expression without parameters that do not change the result (processes, budgets).
    walk : str
        The identity without the number of features. If two searches have the same ``walk``, one can
        extend the record of the other to a different size.
    data : str
        Fingerprint of the data, see :func:`tamis._arrays.fingerprint`.
    n_samples : int
        Number of rows.
    feature_names : tuple of str or None
        Names of the columns, or None if the table had none.
    seeds : dict
        The seed drawn for each ``random_state`` that was not an int, with the parameter name as
        key.
    trace : Trace
        The search path.
    chosen : int
        Position of the selected step in the trace.
    reason : str
        A sentence that explains the choice.
    n_evaluations : int
        Number of scores that the criterion computed.
    finished : bool
        False if a callback, an interrupt or a budget stopped the search.
    versions : dict
        Versions of Python, tamis and its dependencies.
    parts : tuple of Record
        The records of the searches that a composed selector ran.
    units : dict or None
        The names and columns of the groups (``groups``), the units that every subset contains
        (``fixed``), and the prices of the units (``prices``). None if there are no groups, no fixed
        units and no prices. Unit j is then column j.
    interactions : tuple of Interaction
        The strongest pairs of units. Empty unless the criterion scores pairs.
    ran_on : dict
        The names of the devices on which ``training`` and ``scores`` were computed; "processor" is
        the CPU. Empty if no device was requested.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import FisherScore
    >>> from tamis.search import Ranking
    >>> X, y = load_iris(return_X_y=True)
    >>> record = Ranking(FisherScore(), n_features_to_select=2).fit(X, y).record_
    >>> record.expression, record.kept.tolist(), record.finished
    ('Ranking(FisherScore(), n_features_to_select=2)', [2, 3], True)
    """

    expression: str
    identity: str
    walk: str
    data: str
    n_samples: int
    feature_names: tuple[str, ...] | None
    seeds: Mapping[str, int]
    trace: Trace
    chosen: int = 0
    reason: str = ""
    n_evaluations: int = 0
    finished: bool = False
    versions: Mapping[str, str] = field(default_factory=installed_versions)
    parts: "tuple[Record, ...]" = ()
    units: Mapping[str, Any] | None = None
    interactions: tuple[Interaction, ...] = ()
    ran_on: Mapping[str, Any] = field(default_factory=dict)

    @property
    def places(self) -> str:
        """A sentence about the devices that did the work. Empty if no device was requested."""
        if not self.ran_on:
            return ""
        devices = {
            part: " and ".join("the CPU" if name == PROCESSOR else name for name in names)
            for part, names in self.ran_on.items()
        }
        if len(set(devices.values())) == 1:
            text = f"{' and '.join(devices)} ran on {next(iter(devices.values()))}."
        else:
            text = ", ".join(f"{part} ran on {names}" for part, names in devices.items()) + "."
        return text[0].upper() + text[1:]

    @property
    def grouping(self) -> Grouping:
        """The columns of each unit of the trace."""
        n_grouped = 0
        if self.units is not None:
            n_grouped = sum(len(columns) - 1 for _, columns in self.units["groups"])
        return Grouping.from_dict(self.trace.n_units + n_grouped, self.units)

    @property
    def unit_names(self) -> tuple[str, ...] | None:
        """Names of all units: groups, and columns in no group. None if columns have no names."""
        if self.feature_names is None:
            return None
        return tuple(self.grouping.unit_names(self.feature_names))

    @property
    def seconds(self) -> float:
        """Total duration of all steps."""
        return self.trace.seconds

    @property
    def kept(self) -> Subset:
        """Indices of the selected columns."""
        if not len(self.trace):
            return np.empty(0, dtype=np.intp)
        return self.grouping.columns(self.kept_units)

    @property
    def kept_units(self) -> Subset:
        """Indices of the selected units."""
        return np.flatnonzero(self.trace.mask(self.chosen))

    @classmethod
    def begin(
        cls,
        selector: Any,
        X: Array | BlockTable,
        y: NDArray[Any] | None,
        params: Mapping[str, Any],
        grouping: Grouping,
    ) -> Self:
        """Return the initial record of a selector, before its first step."""
        names = getattr(selector, "feature_names_in_", None)
        expression, bare = write(selector, strict=False), _without_means(selector)
        identity = expression if bare is selector else write(bare, strict=False)
        walk = write(clone(bare)._unsized(), strict=False)
        trace = Trace(grouping.n_units)
        trace.start[grouping.fixed_units] = True
        return cls(
            expression=expression,
            identity=identity,
            walk=walk,
            data=X.fingerprint() if isinstance(X, BlockTable) else fingerprint(X, y, **params),
            n_samples=X.shape[0],
            feature_names=None if names is None else tuple(map(str, names)),
            seeds={},
            trace=trace,
            units=grouping.to_dict(),
        )

    def check_continues(self, fresh: "Record", *, extends: bool = True) -> None:
        """Refuse to continue from this record with a different search or on different data.

        ``fresh`` is the initial record of the new fit. If ``extends`` is true, the number of
        features may differ.
        """
        if fresh.walk != self.walk:
            but = " (n_features_to_select may differ)" if extends else ""
            raise RecordMismatch(
                f"The record belongs to {self.expression}, not to {fresh.expression}. Resume it "
                f"with the selector that made it{but}, or call fit to start again."
            )
        same_shape = fresh.n_samples == self.n_samples
        same_shape &= fresh.grouping.n_columns == self.grouping.n_columns
        if fresh.data != self.data or not same_shape:
            raise RecordMismatch(
                f"The record was made on other data (fingerprint {self.data}, not {fresh.data}). "
                "Resume it with the same X, y and weights, or call fit to start again."
            )

        if fresh.grouping != self.grouping:
            raise RecordMismatch(
                f"The record was made with {_describe_units(self.grouping)}, but "
                f"{fresh.expression} has {_describe_units(fresh.grouping)}. Resume it with "
                "the same feature_groups, fixed_features and feature_costs, or call fit to start "
                "again."
            )

    def compare(self, other: "Record") -> "RecordComparison":
        """Compare the selected columns and the column orders of two records.

        Columns are matched by name if both records have names, else by position.

        Parameters
        ----------
        other : Record
            The record of another selection.
        """
        if not isinstance(other, Record):
            raise InvalidParameter(
                f"compare needs the record of another selection (search.record_), not {other!r}."
            )
        named = self.feature_names is not None and other.feature_names is not None
        if not named and self.trace.n_units != other.trace.n_units:
            raise RecordMismatch(
                f"Records of {self.trace.n_units} and of {other.trace.n_units} columns can only be "
                "compared by names, which they do not both have. Fit both to frames."
            )
        (ours, our_ranks), (theirs, their_ranks) = (r._ranked(named) for r in (self, other))
        shared = [label for label in our_ranks if label in their_ranks]
        agreement = float("nan")
        if len(shared) > 1:
            pairs = [[ranks[label] for label in shared] for ranks in (our_ranks, their_ranks)]
            agreement = float(kendalltau(*pairs).statistic)
        return RecordComparison(
            both=tuple(label for label in ours if label in set(theirs)),
            only_first=tuple(label for label in ours if label not in set(theirs)),
            only_second=tuple(label for label in theirs if label not in set(ours)),
            rank_agreement=agreement,
        )

    def _ranked(self, named: bool) -> tuple[list[Any], dict[Any, int]]:
        """Return the labels of the selected units, best first, and the rank of each unit."""
        order, names = order_of(self.trace, self.chosen)[0].tolist(), self.unit_names
        labels = [names[j] for j in order] if named and names else order
        return labels[: len(self.kept_units)], {label: rank for rank, label in enumerate(labels)}

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dictionary that can be written as JSON."""
        apart = {"trace", "parts", *(name for name in OPTIONAL if not getattr(self, name))}
        plain = {
            "format": FORMAT,
            **{k: v for k, v in vars(self).items() if k not in apart},
            "trace": self.trace.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
        }
        return {**plain, "checksum": _checksum(plain)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the record from the output of :meth:`to_dict`. Refuse any other input."""
        check_record(plain, FORMAT)
        plain = dict(plain)
        checksum = plain.pop("checksum", None)  # records of early versions have no checksum
        if checksum is not None and checksum != _checksum(plain):
            raise InvalidTable(
                "This is a damaged record: its checksum does not match, so it was changed after "
                "it was written. Start the search again."
            )
        del plain["format"]
        trace = Trace.from_dict(plain.pop("trace"))
        parts = tuple(cls.from_dict(part) for part in plain.pop("parts"))
        names = plain.pop("feature_names")
        names = None if names is None else tuple(names)
        pairs = tuple(Interaction(*pair) for pair in plain.pop("interactions", ()))
        return cls(trace=trace, parts=parts, feature_names=names, interactions=pairs, **plain)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record to a JSON file. An existing file is replaced atomically.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        text = json.dumps(self.to_dict(), default=_plain, separators=(",", ":"))
        try:
            replace_text(Path(path), f"{text}\n")
        except OSError as error:
            raise InvalidTable(
                f"{path} cannot be written: {error.strerror}. The file was not changed; save the "
                "record to another path."
            ) from error

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the given record, or load it if a path is given."""
        if isinstance(given, str | os.PathLike):
            return cls.load(given)
        if not isinstance(given, cls):
            raise InvalidParameter(
                f"resume needs a record (search.record_) or the path of a saved one, not {given!r}."
            )
        return given

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a record from a file.

        Parameters
        ----------
        path : str or path
            A file that :meth:`save` wrote.
        """
        try:
            plain = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InvalidTable(f"{path} is not a record: {error}.") from error
        except OSError as error:
            raise InvalidTable(
                f"The record {path} cannot be read: {error.strerror}. Give a file that "
                "Record.save wrote."
            ) from error
        try:
            return cls.from_dict(plain)
        except InvalidTable as error:
            raise InvalidTable(f"{path}: {error}") from error

    def __repr__(self) -> str:
        end = "finished" if self.finished else "stopped"
        return f"<Record of {self.expression}: {len(self.trace)} steps, {end}>"


def outside_pairs(pairs: Iterable[Interaction], units: Subset) -> list[Interaction]:
    """Convert the unit indices of interactions in a narrower table to those of the whole table.

    Unit i of the narrower table is unit ``units[i]`` of the whole table.

    >>> outside_pairs([Interaction(0, 2, 0.5)], np.array([3, 5, 8]))
    [Interaction(first=3, second=8, information=0.5, p_value=None)]
    """
    return [
        pair._replace(first=int(units[pair.first]), second=int(units[pair.second]))
        for pair in pairs
    ]


@dataclass(frozen=True)
class RecordComparison:
    """Comparison of two records.

    Attributes
    ----------
    both, only_first, only_second : tuple of str or int
        Columns selected in both records, only in the first, and only in the second, best first.
    rank_agreement : float
        Kendall's tau between the orders of all shared columns: 1 = identical, -1 = reversed.
    """

    both: tuple[Any, ...]
    only_first: tuple[Any, ...]
    only_second: tuple[Any, ...]
    rank_agreement: float


def _without_means(selector: BaseEstimator) -> BaseEstimator:
    """Return the selector with :data:`MEANS` and :data:`UNITS` parameters set to None."""
    means = [
        name
        for name, held in selector.get_params().items()
        if name.split("__")[-1] in MEANS | UNITS and held is not None
    ]
    return clone(selector).set_params(**dict.fromkeys(means)) if means else selector


def _describe_units(grouping: Grouping) -> str:
    """Describe the groups and the number of fixed units, for a message."""
    groups = shorten_list([name for name, _ in grouping.groups], most=3)
    text = f"the groups {groups}" if groups else "no groups"
    text += f" and {len(grouping.fixed)} fixed unit(s)"
    return text if grouping.prices is None else f"{text} for {format_price(grouping.prices.full)}"


def _checksum(plain: Mapping[str, Any]) -> str:
    """Return a digest of a record."""
    text = json.dumps(plain, sort_keys=True, default=_plain)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    """Convert numpy arrays and scalars to lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
