"""Data for an evaluation: a fixed table, a new random problem per realization, or a sample."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array, fingerprint, times_as_days
from tamis._checks import check_values, integer
from tamis._frame import collected
from tamis._seeds import seed_of, stream
from tamis.blocks.dispatch import read_blocks
from tamis.blocks.source import SampledRows
from tamis.blocks.table import is_in_blocks
from tamis.exceptions import InvalidParameter, InvalidTable


class Rows(NamedTuple):
    """Data of a realization, with the relevant columns if they are known."""

    X: Array
    y: NDArray[Any]
    relevant: tuple[int, ...] | None = None
    equivalent: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Fixed:
    """The same table in every realization."""

    name: str
    rows: Rows

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the table, which identifies it in a store."""
        return fingerprint(self.rows.X, self.rows.y)

    def at(self, realization: int, seed: int) -> Rows:
        """Return the table, which is the same for all realizations."""
        return self.rows


@dataclass(frozen=True)
class Fresh:
    """A synthetic problem that is generated again for every realization.

    Parameters
    ----------
    make : callable
        A function of :mod:`tamis.datasets` such as ``make_corral``, or any function of
        ``n_samples`` and ``random_state`` that returns an object with ``X``, ``y`` and optionally
        ``relevant`` and ``equivalent``.
    n_samples : int
        Number of rows of each realization.
    options : dict, default={}
        Further keyword arguments for ``make``.
    name : str, default=""
        Name of the data. The default is the name of the function.

    Examples
    --------
    >>> from tamis.datasets import make_corral
    >>> data = Fresh(make_corral, 128, {"variant": 47})
    >>> data.at(3, seed=0).X.shape, data.name
    ((128, 47), 'make_corral')
    """

    make: Callable[..., Any]
    n_samples: int
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or getattr(self.make, "__name__", "fresh"))

    @property
    def fingerprint(self) -> str:
        """Text of the call that generates the data. Text and seed together determine the data."""
        made_by = f"{self.make.__module__}.{getattr(self.make, '__qualname__', self.make)}"
        return f"{made_by}({self.n_samples}, {dict(sorted(self.options.items()))})"

    def at(self, realization: int, seed: int) -> Rows:
        """Generate the rows of a realization. They are the same at every call."""
        random_state = seed_of(seed, "draw", self.name, realization)
        made = self.make(self.n_samples, random_state=random_state, **self.options)
        return as_rows(made, self.name)


class Drawn:
    """A random sample of the rows of a larger table, drawn again for every realization.

    The plan splits the sample into training and test rows. For example, with ``Drawn("visits/",
    120_000, target="stroke")`` and ``Realizations(10, train=20_000)``, methods are trained on
    20 000 rows and tested on 100 000 others. Each process reads the table once per realization.

    Parameters
    ----------
    source : str, Path, BlockSource or Dask collection
        The table: a Parquet file or folder, a source of :mod:`tamis.blocks`, or a Dask collection.
    n_samples : int
        Number of rows to sample. If the table has fewer, all are used.
    target : str or None, default=None
        Name of the target column.
    y : path or Dask collection, default=None
        The target, if it is not a column of the table.
    name : str, default=""
        Name of the data. The default is the name of the source.

    Examples
    --------
    >>> from tamis.blocks import MemoryMap
    >>> table = MemoryMap(np.arange(3000.0).reshape(1000, 3), np.arange(1000) % 2)
    >>> data = Drawn(table, 100)
    >>> data.at(0, seed=0).X.shape, bool((data.at(0, 0).X == data.at(1, 0).X).all())
    ((100, 3), False)
    """

    def __init__(
        self,
        source: Any,
        n_samples: int,
        *,
        target: str | None = None,
        y: ArrayLike | None = None,
        name: str = "",
    ):
        check_values("Drawn", {"n_samples": integer(2)}, n_samples=n_samples)
        self.n_samples = int(n_samples)
        self._table = read_blocks("evaluate", source, y, target)
        self.name = name or str(self._table.source)
        self._last: tuple[Any, Rows] | None = None

    def called(self, name: str) -> "Drawn":
        """Return the same table under a different name. The samples depend on the name."""
        other = copy(self)
        other.name, other._last = name, None
        return other

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the table, and sample size. With the seed, they determine the samples."""
        return f"{self._table.fingerprint()} ({self.n_samples} rows)"

    def at(self, realization: int, seed: int) -> Rows:
        """Draw the rows of a realization. They are the same at every call."""
        if self._last is None or self._last[0] != (realization, seed):
            n_rows = self._table.shape[0]
            rng = stream(seed, "draw", self.name, realization)
            rows = rng.choice(n_rows, size=min(self.n_samples, n_rows), replace=False)
            drawn = self._table.source.reduce(SampledRows(np.sort(rows)))
            self._last = (realization, seed), as_rows(drawn, self.name)
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}  # each process draws its own sample


#: Any data source: it has a name, a fingerprint, and the rows of each realization.
Source = Fixed | Fresh | Drawn


def as_rows(data: Any, name: str) -> Rows:
    """Return checked float64 data, from an object with X and y or from a pair (X, y)."""
    pair = (data.X, data.y) if hasattr(data, "X") else data
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise InvalidParameter(
            f"evaluate needs {name} as a pair (X, y), a Problem or a Table, not "
            f"{type(data).__name__}. Write data=(X, y) or data={{'{name}': (X, y)}}."
        )
    X, y = pair
    try:
        X = np.asfortranarray(collected(X), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(f"evaluate needs numbers in X of {name}: {error}.") from error
    y = np.asarray(times_as_days(y))
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y):
        raise InvalidTable(
            f"evaluate needs X and y with the same number of rows, but {name} has X of shape "
            f"{X.shape} and y of shape {y.shape}."
        )
    if len(X) < 2 or not X.shape[1]:
        raise InvalidTable(
            f"evaluate needs at least two rows, for training and testing, and one column, but "
            f"{name} has X of shape {X.shape}."
        )
    try:
        np.unique(y)
    except TypeError as error:  # labels of different types cannot be sorted
        raise InvalidTable(
            f"evaluate needs labels of one type, but y of {name} mixes several ({error}). Convert "
            "it, for example with y.astype(str)."
        ) from error
    relevant, equivalent = getattr(data, "relevant", None), getattr(data, "equivalent", None)
    if relevant is None:  # tables such as MADELON come with their relevant columns
        relevant = getattr(data, "extras", {}).get("relevant_idx")
    return Rows(
        X,
        y,
        None if relevant is None else tuple(int(j) for j in relevant),
        None if equivalent is None else tuple(tuple(int(j) for j in g) for g in equivalent),
    )


def as_sources(data: Any) -> dict[str, Source]:
    """Return data sources by name, from a single data set, a dictionary or a list."""
    if isinstance(data, Mapping):
        named = dict(data)
    else:
        several = data if isinstance(data, list) else [data]
        named = {_name(item, i, len(several)): item for i, item in enumerate(several)}
    if not named:
        raise InvalidParameter("evaluate needs data: a pair (X, y), a table, or several by name.")
    return {str(name): _source(str(name), item) for name, item in named.items()}


def _source(name: str, item: Any) -> Source:
    if isinstance(item, Fresh | Fixed):
        return replace(item, name=name)
    if isinstance(item, Drawn):
        return item.called(name)
    if is_in_blocks(item):
        raise InvalidParameter(
            f"evaluate needs a number of rows to sample from a table in row blocks. Write data="
            f"Drawn({name!r}, 120_000, target=...) and a plan such as Realizations(10, "
            "train=20_000)."
        )
    return Fixed(name, as_rows(item, name))


def _name(item: Any, position: int, n_items: int) -> str:
    given = str(item) if is_in_blocks(item) else getattr(item, "name", None)
    return given if isinstance(given, str) else "data" if n_items == 1 else f"data {position}"
