"""Row blocks of memory-mapped arrays, and of arrays that a function yields in every pass."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._checks import NONE, check_values, integer
from tamis.blocks.local import BLOCK_NUMBERS, LocalBlocks, check_names, check_rows, make_block
from tamis.blocks.source import RowBlock
from tamis.exceptions import InvalidTable


class MemoryMap(LocalBlocks):
    """Row blocks of a memory-mapped ``.npy`` file.

    Parameters
    ----------
    X : path or array of shape (n_samples, n_features)
        A file written by :func:`numpy.save`, or an array.
    y : path or array of shape (n_samples,)
        The target.
    names : list of str or None, default=None
        Names of the columns.
    block_rows : int or None, default=None
        Number of rows of a block. None means as many as fit into 32 megabytes of float64.

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> X, y = np.array([[0.0, 1], [1, 0], [1, 3], [0, 0]]), np.array([0, 1, 1, 0])
    >>> Ranking(Correlation(), n_features_to_select=1).fit(MemoryMap(X, y, block_rows=2)).columns
    [0]
    """

    def __init__(
        self,
        X: ArrayLike | PathLike[str],
        y: ArrayLike | PathLike[str],
        *,
        names: Sequence[str] | None = None,
        block_rows: int | None = None,
    ):
        self._where = fspath(X) if isinstance(X, str | PathLike) else "the array"
        self._given = X, y
        self._X, self._y = _open(X), _open(y)
        check_rows(self._X, self._y, self._where)
        self.n_columns = self._X.shape[1]
        self.names = check_names(self._where, names, self.n_columns)
        check_values("MemoryMap", {"block_rows": integer(1) | NONE}, block_rows=block_rows)
        self._rows = block_rows or max(1, BLOCK_NUMBERS // max(1, self.n_columns))
        self.n_chunks = -(-len(self._X) // self._rows)

    def chunk(self, index: int, *, target_only: bool = False) -> Iterator[RowBlock]:
        rows = slice(index * self._rows, (index + 1) * self._rows)
        where = f"block {index} of {self._where}"
        y = np.asarray(self._y[rows])
        yield make_block(self._X[rows], y, rows.start, where, target_only=target_only)

    def __reduce__(self) -> Any:
        """Pickle paths instead of their arrays, so that another process maps the files again."""
        return partial(MemoryMap, names=self.names, block_rows=self._rows), self._given

    def identity(self) -> str:
        ends = np.concatenate([self._X[:64], self._X[-64:]])
        return sha256(f"{self._X.shape} {ends.tolist()}".encode()).hexdigest()

    def __str__(self) -> str:
        return self._where


def _open(source: Any) -> NDArray[Any]:
    if not isinstance(source, str | PathLike):
        return np.asarray(source)
    try:
        array: NDArray[Any] = np.load(source, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidTable(
            f"{fspath(source)} cannot be mapped as a .npy file: {error}. Write it with np.save."
        ) from error
    return array


class BlockIterator(LocalBlocks):
    """Row blocks that a function yields in every pass.

    Parameters
    ----------
    factory : callable
        Function without arguments that returns an iterable of ``(X, y)`` pairs, each with the rows
        of a block and their target. It is called once for each pass, and must return the same rows
        each time.
    names : list of str or None, default=None
        Names of the columns.

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> def blocks():
    ...     for seed in range(3):
    ...         X = np.random.default_rng(seed).normal(size=(100, 4))
    ...         yield X, X[:, 2] > 0
    >>> Ranking(Correlation(), n_features_to_select=1).fit(BlockIterator(blocks)).columns
    [2]
    """

    n_chunks = 1

    def __init__(
        self,
        factory: Callable[[], Iterable[tuple[Any, Any]]],
        *,
        names: Sequence[str] | None = None,
    ):
        self.factory = factory
        self.n_columns = self._first().shape[1]
        self.names = check_names("BlockIterator", names, self.n_columns)

    def _first(self) -> NDArray[Any]:
        for pair in self.factory() if callable(self.factory) else ():
            if isinstance(pair, tuple | list) and len(pair) == 2 and np.ndim(pair[0]) == 2:
                return np.asarray(pair[0])
            break
        raise InvalidTable(
            "BlockIterator needs a function that yields pairs (X, y), X with rows and columns, but "
            "the first item is not such a pair."
        )

    def chunk(self, index: int, *, target_only: bool = False) -> Iterator[RowBlock]:
        start = 0
        for number, (X, y) in enumerate(self.factory()):
            where = f"block {number} of the iterator"
            block = np.asarray(X), np.asarray(y), start, where
            yield make_block(*block, target_only=target_only, n_columns=self.n_columns)
            start += len(block[0])

    def identity(self) -> str:
        return sha256(self._first()[:64].tobytes()).hexdigest()
