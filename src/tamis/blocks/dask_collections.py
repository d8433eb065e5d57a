"""Row blocks of Dask Arrays and DataFrames."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from tamis._format import did_you_mean, format_names
from tamis._parallel import need_dask
from tamis.blocks.dask_cluster import KeptThere, OnCluster, cluster_errors
from tamis.blocks.local import LocalBlocks, make_block
from tamis.blocks.source import BlockSource, Reducible, RowBlock, RowStatistic
from tamis.exceptions import InvalidTarget


def collection_blocks(X: Any, y: Any, target: str | None) -> BlockSource:
    """Return the blocks of a Dask collection. They stay on its cluster if there is one.

    Parameters
    ----------
    X : dask Array or DataFrame
        The table.
    y : dask Array or Series, or None
        The target, with the same blocks as ``X``.
    target : str or None
        Name of the target column of a DataFrame.
    """
    need_dask()
    blocks = DelayedBlocks(*_delayed(X, y, target))
    from dask.distributed import get_client

    try:
        client = get_client()
    except ValueError:
        return blocks
    return HeldBlocks(blocks, client)


class DelayedBlocks(LocalBlocks):
    """Row blocks that Dask computes one after the other when they are needed.

    Parameters
    ----------
    tables, targets : list of Delayed
        The tables and the targets of the blocks. A target may be the name of a column.
    names : list of str or None
        Names of the columns.
    n_columns : int
        Number of columns.
    """

    def __init__(
        self, tables: Sequence[Any], targets: Sequence[Any], names: list[str] | None, n_columns: int
    ):
        import dask

        self.tables, self.targets = list(tables), list(targets)
        self.names, self.n_columns = names, n_columns
        self.n_chunks = len(self.tables)
        lengths = dask.compute(*[dask.delayed(len)(table) for table in self.tables])  # type: ignore[no-untyped-call]
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def block(self, index: int) -> Any:
        """Return a delayed block."""
        import dask

        start, named = int(self.starts[index]), self.names
        make = dask.delayed(_block, pure=False)
        return make(self.tables[index], self.targets[index], named, start, index)

    def chunk(self, index: int, *, target_only: bool = False) -> Iterator[RowBlock]:
        yield self.block(index).compute()

    def identity(self) -> str:
        first = self.first_rows(64)
        return sha256(f"{self.starts.tolist()} {first.tolist()}".encode()).hexdigest()

    def __str__(self) -> str:
        return "the Dask collection"


class HeldBlocks(OnCluster):
    """Row blocks that stay in the memory of the workers of a cluster.

    Parameters
    ----------
    source : DelayedBlocks
        Blocks to compute once and keep.
    client : dask.distributed.Client
        Client of the cluster.
    """

    def __init__(self, source: DelayedBlocks, client: Any):
        from dask import delayed

        super().__init__(source, client)
        blocks = [[source.block(index)] for index in range(source.n_chunks)]
        self._held = KeptThere(client, client.compute([delayed(block) for block in blocks]))

    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        return self._held.reduce(statistic)

    def kept(self, make: Callable[[RowBlock], Any], n_bytes: float) -> Reducible:
        with cluster_errors(self.client):
            futures = [
                self.client.submit(_each, make, blocks, pure=False) for blocks in self._held.futures
            ]
            return KeptThere(self.client, futures)


def _each(make: Callable[[RowBlock], Any], blocks: list[RowBlock]) -> list[Any]:
    return [make(block) for block in blocks]


def _block(table: Any, target: Any, names: list[str] | None, start: int, index: int) -> RowBlock:
    """Return a row block from the rows of a partition of a Dask collection."""
    where = f"block {index} of the collection"
    y = np.asarray(table[target] if isinstance(target, str) else target)
    return make_block(np.asarray(table if names is None else table[names]), y, start, where)


def _delayed(
    X: Any, y: Any, target: str | None
) -> tuple[list[Any], list[Any], list[str] | None, int]:
    """Return the delayed blocks of the table and the target, the column names and their number."""
    if hasattr(X, "columns"):
        return _of_frame(X, y, target)
    if target is not None or y is None or getattr(X, "ndim", 0) != 2:
        raise InvalidTarget(
            "A Dask Array needs its target as a second Dask Array. Write fit(X, y), not "
            f"target={target!r}."
        )
    rows = X.rechunk({1: -1})
    values = y.rechunk(rows.chunks[:1]) if y.shape == X.shape[:1] else y
    tables, targets = rows.to_delayed().ravel().tolist(), values.to_delayed().ravel().tolist()
    _check_blocks(tables, targets)
    return tables, targets, None, X.shape[1]


def _of_frame(
    X: Any, y: Any, target: str | None
) -> tuple[list[Any], list[Any], list[str] | None, int]:
    names = [str(name) for name in X.columns]
    if (y is None) == (target is None) or (target is not None and target not in names):
        near = "" if target is None else did_you_mean(target, names)
        raise InvalidTarget(
            "A Dask DataFrame needs target= with the name of one of its columns, or a Series y "
            f"next to it; got target={target!r}.{near} The columns are {format_names(names)}."
        )
    tables = X.to_delayed()
    if target is not None:
        left = [name for name in names if name != target]
        return tables, [target] * len(tables), left, len(left)
    targets = y.to_delayed()
    targets = targets.ravel().tolist() if hasattr(targets, "ravel") else targets
    _check_blocks(tables, targets)
    return tables, targets, names, len(names)


def _check_blocks(tables: Sequence[Any], targets: Sequence[Any]) -> None:
    if len(tables) != len(targets):
        raise InvalidTarget(
            f"X has {len(tables)} blocks of rows, but y has {len(targets)}. Split both into the "
            "same blocks, for example with X.repartition and y.repartition."
        )
