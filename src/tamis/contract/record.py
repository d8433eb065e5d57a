"""The record of a selection: everything needed to report, compare, save and resume it."""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator, clone

from tamis._arrays import Array, Subset, fingerprint
from tamis._expression import write
from tamis._files import replace_text
from tamis._namespace import PROCESSOR
from tamis._version import __version__
from tamis.blocks.table import BlockTable
from tamis.contract.ranks import order_of
from tamis.contract.record_checks import OPTIONAL, check_record
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter, InvalidTable, RecordMismatch

FORMAT = 2

#: Parameters that say how long and with what to compute, but not what.
MEANS = frozenset({"n_jobs", "max_evaluations", "max_seconds"})
#: Parameters that are kept as the units they ask for, however they ask.
UNITS = frozenset({"feature_groups", "fixed_features"})


@cache
def installed_versions() -> Mapping[str, str]:
    """Versions that a result may depend on."""
    own = {"python": platform.python_version(), "tamis": __version__}
    return own | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}


class Interaction(NamedTuple):
    """A pair of units and what it tells of the target beyond the two alone.

    Parameters
    ----------
    first, second : int
        The units.
    information : float
        I(x_i; y | x_j) - I(x_i; y) in nats: positive where they matter together, negative where
        they say the same.
    p_value : float or None
        Share of tables with a permuted target whose strongest pair tells as much, where the
        criterion looked at such tables.
    """

    first: int
    second: int
    information: float
    p_value: float | None = None


@dataclass(frozen=True, repr=False)
class Record:
    """What a fitted selection did, on which data, with which seeds and versions.

    Attributes
    ----------
    expression : str
        The selector, as the expression that makes it.
    identity : str
        The expression without what does not change the result: processes and budgets.
    walk : str
        The identity without the number of features asked for: records of the same walk can be
        extended to another size.
    data : str
        Fingerprint of the data, see :func:`tamis._arrays.fingerprint`.
    n_samples : int
    feature_names : tuple of str or None
    seeds : dict
        The number used for every ``random_state`` that was not given as one.
    trace : Trace
    chosen : int
        Position in the trace of the step that was kept.
    reason : str
        Why, in a sentence.
    n_evaluations : int
    finished : bool
        False when a callback, an interrupt or a budget stopped the search.
    versions : dict
    parts : tuple of Record
        The records of the searches that a composed selector ran.
    units : dict or None
        ``groups``, names and columns of the units that are groups, and ``fixed``, the units that
        every subset holds; None where unit j of the trace is column j and none is fixed.
    interactions : tuple of Interaction
        The strongest pairs of units, where the criterion looked at pairs.
    ran_on : dict
        Where ``training`` and ``scores`` were computed, where a device was asked for: names of
        devices, or "processor".
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
        """Where the work was done, in a sentence; empty where no device was asked for."""
        if not self.ran_on:
            return ""
        where = {part: " and ".join(map(_place, held)) for part, held in self.ran_on.items()}
        if len(set(where.values())) == 1:
            said = f"{' and '.join(where)} ran on {next(iter(where.values()))}."
        else:
            said = ", ".join(f"{part} ran on {held}" for part, held in where.items()) + "."
        return said[0].upper() + said[1:]

    @property
    def grouping(self) -> Grouping:
        """Which columns belong to which unit of the trace."""
        n_grouped = 0
        if self.units is not None:
            n_grouped = sum(len(columns) - 1 for _, columns in self.units["groups"])
        return Grouping.from_dict(self.trace.n_units + n_grouped, self.units)

    @property
    def unit_names(self) -> tuple[str, ...] | None:
        """Names of the units: of groups, and of columns where these have names."""
        if self.feature_names is None:
            return None
        return tuple(self.grouping.unit_names(self.feature_names))

    @property
    def seconds(self) -> float:
        """Time spent in all steps."""
        return self.trace.seconds

    @property
    def kept(self) -> Subset:
        """The columns of the step that was chosen."""
        if not len(self.trace):
            return np.empty(0, dtype=np.intp)
        return self.grouping.columns(self.kept_units)

    @property
    def kept_units(self) -> Subset:
        """The units of the step that was chosen."""
        return np.flatnonzero(self.trace.mask(self.chosen))

    @classmethod
    def begin(
        cls,
        selector: Any,
        X: Array | BlockTable,
        y: Any,
        params: Mapping[str, Any],
        grouping: Grouping,
    ) -> Self:
        """The record of a selector that has done nothing yet."""
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
        """Refuse to continue another search, or on other data.

        ``extends`` says that the steps to one number of features are made to another one too.
        """
        if fresh.walk != self.walk:
            but = " (n_features_to_select may differ)" if extends else ""
            raise RecordMismatch(
                f"The record belongs to {self.expression}, not to {fresh.expression}. Resume it "
                f"with the selector that made it{but}, or call fit to start anew."
            )
        same_shape = fresh.n_samples == self.n_samples
        same_shape &= fresh.grouping.n_columns == self.grouping.n_columns
        if fresh.data != self.data or not same_shape:
            raise RecordMismatch(
                f"The record was made on other data (fingerprint {self.data}, not {fresh.data}). "
                "Resume it with the same X, y and weights, or call fit to start anew."
            )

        if fresh.grouping != self.grouping:
            raise RecordMismatch(
                f"The record was made with {_spoken(self.grouping)}, but {fresh.expression} has "
                f"{_spoken(fresh.grouping)}. Resume it with the same feature_groups and "
                "fixed_features, or call fit to start anew."
            )

    def compare(self, other: "Record") -> "RecordComparison":
        """What two records keep, and how far their orders of the columns agree.

        Columns are matched by name where both records have names, else by position.
        """
        if not isinstance(other, Record):
            raise InvalidParameter(
                f"compare needs the record of another selection (search.record_), not {other!r}."
            )
        named = self.feature_names is not None and other.feature_names is not None
        if not named and self.trace.n_units != other.trace.n_units:
            raise RecordMismatch(
                f"Records of {self.trace.n_units} and of {other.trace.n_units} columns can only be "
                "compared by names, which they do not both have. Fit both on frames."
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
        """Labels of the kept units, best first, and the position of every unit."""
        order, names = order_of(self.trace, self.chosen)[0].tolist(), self.unit_names
        labels = [names[j] for j in order] if named and names else order
        return labels[: len(self.kept_units)], {label: rank for rank, label in enumerate(labels)}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries."""
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
        """The record that :meth:`to_dict` wrote; anything else is refused."""
        check_record(plain, FORMAT)
        plain = dict(plain)
        checksum = plain.pop("checksum", None)  # records of early versions have none
        if checksum is not None and checksum != _checksum(plain):
            raise InvalidTable(
                "This is a damaged record: it was changed after it was written, so its checksum "
                "does not fit. Start the search anew."
            )
        del plain["format"]
        trace = Trace.from_dict(plain.pop("trace"))
        parts = tuple(cls.from_dict(part) for part in plain.pop("parts"))
        names = plain.pop("feature_names")
        names = None if names is None else tuple(names)
        pairs = tuple(Interaction(*pair) for pair in plain.pop("interactions", ()))
        return cls(trace=trace, parts=parts, feature_names=names, interactions=pairs, **plain)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record as JSON; an existing file is replaced only by a complete one."""
        text = json.dumps(self.to_dict(), default=_plain)
        try:
            replace_text(Path(path), f"{text}\n")
        except OSError as error:
            raise InvalidTable(
                f"{path} cannot be written: {error.strerror}. Nothing of the record is left there; "
                "save it elsewhere."
            ) from error

    @classmethod
    def of(cls, given: Any) -> Self:
        """The record itself, or the one in a file."""
        if isinstance(given, str | os.PathLike):
            return cls.load(given)
        if not isinstance(given, cls):
            raise InvalidParameter(
                f"resume needs a record (search.record_) or the path of a saved one, not {given!r}."
            )
        return given

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            plain = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InvalidTable(f"{path} is no record: {error}.") from error
        except OSError as error:
            raise InvalidTable(
                f"The record {path} cannot be read: {error.strerror}. Give the file that one was "
                "saved to."
            ) from error
        try:
            return cls.from_dict(plain)
        except InvalidTable as error:
            raise InvalidTable(f"{path}: {error}") from error

    def __repr__(self) -> str:
        end = "finished" if self.finished else "stopped"
        return f"<Record of {self.expression}: {len(self.trace)} steps, {end}>"


def outside_pairs(pairs: Iterable[Interaction], units: Subset) -> list[Interaction]:
    """Pairs that a search found among some units, as those of the whole table.

    >>> outside_pairs([Interaction(0, 2, 0.5)], np.array([3, 5, 8]))
    [Interaction(first=3, second=8, information=0.5, p_value=None)]
    """
    return [
        pair._replace(first=int(units[pair.first]), second=int(units[pair.second]))
        for pair in pairs
    ]


@dataclass(frozen=True)
class RecordComparison:
    """Two records beside each other.

    Attributes
    ----------
    both, only_first, only_second : tuple of str or int
        Columns kept by both and by one alone, in the order of the one that names them.
    rank_agreement : float
        Kendall's tau between the two orders of all shared columns: 1 for the same, -1 for the
        reverse.
    """

    both: tuple[Any, ...]
    only_first: tuple[Any, ...]
    only_second: tuple[Any, ...]
    rank_agreement: float


def _place(name: str) -> str:
    return f"the {name}" if name == PROCESSOR else name


def _without_means(selector: BaseEstimator) -> BaseEstimator:
    """The selector with what does not change the result, wherever it stands, set to None."""
    means = [
        name
        for name, held in selector.get_params().items()
        if name.split("__")[-1] in MEANS | UNITS and held is not None
    ]
    return clone(selector).set_params(**dict.fromkeys(means)) if means else selector


def _spoken(grouping: Grouping) -> str:
    """Groups and fixed units for a sentence."""
    groups = ", ".join(name for name, _ in grouping.groups[:3])
    more = ", ..." if len(grouping.groups) > 3 else ""
    said = f"the groups {groups}{more}" if groups else "no groups"
    return f"{said} and {len(grouping.fixed)} fixed unit(s)"


def _checksum(plain: Mapping[str, Any]) -> str:
    """Digest of the text of a record."""
    text = json.dumps(plain, sort_keys=True, default=_plain)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    """Numpy arrays and scalars as lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
