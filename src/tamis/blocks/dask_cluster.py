"""Row blocks on the workers of a Dask cluster: sums are made where the blocks are.

Nothing is scheduled by hand. What is kept of some chunks is a task, which Dask makes anew where a
worker is lost; a statistic is one task for each worker, on what it holds, so that a pass costs as
many messages as there are workers, whatever the number of blocks.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from time import monotonic
from typing import Any, Self

from numpy.typing import NDArray

from tamis._format import first_line
from tamis._parallel import need_dask, on_one_thread
from tamis.blocks.local import LocalBlocks, reduced
from tamis.blocks.source import BlockSource, Reducible, RowBlock, RowStatistic
from tamis.exceptions import ClusterLost

#: States that one process adds up; more are merged by eights on the workers first, lest all of them
#: come to one machine.
MOST_GATHERED, MERGED = 32, 8
#: Tasks whose results a thread of a worker keeps, whatever the number of chunks: each is named in
#: every pass, and is what has to be made anew where a worker is lost.
HELD = 16
#: Seconds for which a cluster that has lost all workers is waited for: a nanny starts one anew in a
#: few; a queue may take hours, and the record outlives that.
PATIENCE = 60.0
#: Seconds between two looks at whether there are workers.
LOOK = 1.0
#: Seconds between two looks for workers that have come since and hold nothing: a look takes some
#: milliseconds, as long as a tenth of a pass.
NEWCOMERS = 5.0


class OnCluster(BlockSource):
    """A source whose statistics the workers of a Dask cluster compute."""

    def __init__(self, source: LocalBlocks, client: Any):
        self.source, self.client = source, client
        self.names, self.n_columns = source.names, source.n_columns

    def first_rows(self, n_rows: int) -> NDArray[Any]:
        return self.source.first_rows(n_rows)

    def identity(self) -> str:
        return self.source.identity()

    def __str__(self) -> str:
        return str(self.source)


class ClusterBlocks(OnCluster):
    """A source whose chunks the workers of a Dask cluster read, each some of them.

    Parameters
    ----------
    source : LocalBlocks
        Whose chunks every worker can read: files on a file system, or in a store, that all share.
    client : dask.distributed.Client

    Examples
    --------
    >>> from dask.distributed import Client                                 # doctest: +SKIP
    >>> source = ClusterBlocks(Parquet("s3://bucket/visits"), Client("tcp://10.0.0.1:8786"))
    ...                                                                     # doctest: +SKIP
    >>> Forward(MRMR(), n_features_to_select=10).fit(source, target="stroke")  # doctest: +SKIP
    """

    def __init__(self, source: LocalBlocks, client: Any):
        need_dask()
        super().__init__(source, client)
        self.target = source.target

    def targeted(self, target: str) -> Self:
        """The same source with another column for the target."""
        return type(self)(self.source.targeted(target), self.client)

    def narrowed(self, columns: NDArray[Any]) -> BlockSource:
        """The same rows with some of the columns, which alone are read where files allow it."""
        narrowed = self.source.narrowed(columns)
        if isinstance(narrowed, LocalBlocks):
            return ClusterBlocks(narrowed, self.client)
        return super().narrowed(columns)

    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        with cluster_errors(self.client):
            futures = [
                _submitted(self.client, holder, _read, self.source, chunks, statistic, target_only)
                for holder, chunks in self._dealt()
            ]
            return statistic.finish(_merged(self.client, statistic, futures))

    def kept(self, make: Callable[[RowBlock], NDArray[Any]], n_bytes: float) -> Reducible:
        with cluster_errors(self.client):
            futures = [
                _submitted(self.client, holder, _made, self.source, some, make)
                for holder, chunks in self._dealt()
                for some in split(chunks, HELD)
            ]
            return KeptThere(self.client, futures)

    def _dealt(self) -> Iterator[tuple[str | None, range]]:
        """Chunks that follow each other for each thread of each worker."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        holders: list[str | None] = [
            address for address in sorted(known) for _ in range(known[address]["nthreads"])
        ]
        holders = holders or [None]
        yield from zip(holders, split(range(self.source.n_chunks), len(holders)), strict=False)


class KeptThere(Reducible):
    """Lists of blocks, or of what was made of them, on the workers that made them.

    Parameters
    ----------
    client : dask.distributed.Client
    futures : sequence of Future
        One for each list.
    """

    def __init__(self, client: Any, futures: Sequence[Any]):
        self.client, self.futures = client, list(futures)
        self._looked = monotonic()

    def reduce(self, statistic: RowStatistic) -> Any:
        """The statistic of all of them, by one task for each worker on what it holds now."""
        with cluster_errors(self.client):
            states = [
                _submitted(self.client, holder, _held, statistic, *futures)
                for holder, futures in self._by_holder()
            ]
            return statistic.finish(_merged(self.client, statistic, states))

    def _by_holder(self) -> list[tuple[str | None, list[Any]]]:
        """What each worker is asked for: what it holds, and some of it for one that holds none."""
        _await(self.client, self.futures)  # what was lost is made anew before anybody is asked
        where = self.client.who_has(self.futures)
        most = self._most(where)
        found: dict[str | None, list[Any]] = {address: [] for address in most}

        def asked(worker: str | None) -> tuple[float, str]:
            """How much is asked of a worker, in shares of what it is to do."""
            return len(found.get(worker, ())) / most.get(worker, 1), str(worker)

        # those that several hold come last, for whoever has less to do
        for future in sorted(self.futures, key=lambda one: len(where.get(one.key) or ())):
            holder = min(where.get(future.key) or (None,), key=asked)
            if most and asked(holder)[0] >= 1:  # it is sent, and held there from then on
                holder = min(most, key=asked)
            found.setdefault(holder, []).append(future)
        return [(holder, futures) for holder, futures in found.items() if futures]

    def _most(self, where: Any) -> dict[Any, int]:
        """Lists for each worker where one has come that holds none; empty where all stay."""
        if monotonic() - self._looked < NEWCOMERS:
            return {}
        self._looked = monotonic()
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        if set(known) <= {holder for holders in where.values() for holder in holders}:
            return {}
        n_threads = sum(worker["nthreads"] for worker in known.values())
        share = -(-len(self.futures) // max(1, n_threads))
        return {address: share * worker["nthreads"] for address, worker in known.items()}


def split(items: range, n_parts: int) -> list[range]:
    """Parts of a range that follow each other, as equal as can be, none of them empty.

    >>> split(range(3, 8), 2), split(range(2), 16)
    ([range(3, 5), range(5, 8)], [range(0, 1), range(1, 2)])
    """
    n_parts = min(n_parts, len(items))
    bounds = [len(items) * k // n_parts for k in range(n_parts + 1)] if n_parts else []
    return [items[first:last] for first, last in pairwise(bounds)]


def _submitted(client: Any, holder: str | None, function: Any, *args: Any) -> Any:
    """A task for a worker, which another may take over."""
    where = {} if holder is None else {"workers": [holder], "allow_other_workers": True}
    return client.submit(on_one_thread, function, *args, pure=False, **where)


def _merged(client: Any, statistic: RowStatistic, futures: list[Any]) -> Any:
    """The state of all rows."""
    while len(futures) > MOST_GATHERED:
        groups = [futures[k : k + MERGED] for k in range(0, len(futures), MERGED)]
        futures = [client.submit(_together, statistic, *group, pure=False) for group in groups]
    _await(client, futures)
    return _together(statistic, *client.gather(futures))


def _await(client: Any, futures: Sequence[Any]) -> None:
    """Wait until all are done; tasks of a cluster that stays without workers never would be."""
    from dask.distributed import wait

    alive = monotonic()
    with client.as_current():
        while True:
            try:
                wait(futures, timeout=LOOK)  # type: ignore[no-untyped-call]
                return
            except TimeoutError:
                if client.scheduler_info(n_workers=-1)["workers"]:
                    alive = monotonic()
                elif monotonic() - alive > PATIENCE:
                    raise _lost(client, "has no workers left") from None


def _together(statistic: RowStatistic, *states: Any) -> Any:
    merged = statistic.empty()
    for state in states:
        merged = statistic.merge(merged, state)
    return merged


def _read(source: LocalBlocks, chunks: range, statistic: RowStatistic, target_only: bool) -> Any:
    """The state of the rows of some chunks."""
    return reduced(statistic, (b for k in chunks for b in source.chunk(k, target_only=target_only)))


def _made(source: LocalBlocks, chunks: range, make: Callable[[RowBlock], Any]) -> list[Any]:
    """What is kept of the blocks of some chunks."""
    return [make(block) for k in chunks for block in source.chunk(k)]


def _held(statistic: RowStatistic, *lists: list[Any]) -> Any:
    """The state of what a worker holds."""
    return reduced(statistic, (item for items in lists for item in items))


@contextmanager
def cluster_errors(client: Any) -> Iterator[None]:
    """Say in a sentence that a cluster is gone."""
    from dask.distributed import CancelledError, KilledWorker
    from distributed.client import ClosedClientError

    try:
        yield
    except (TimeoutError, OSError, CancelledError, KilledWorker, ClosedClientError) as error:
        raise _lost(client, f"lost workers or its scheduler ({first_line(error)})") from error


def _lost(client: Any, said: str) -> ClusterLost:
    # a client that is closed may not know it
    address = getattr(client.scheduler, "address", None) or "of Dask"
    return ClusterLost(
        f"The cluster {address} {said}. The steps made are in the record, search.record_: "
        "start workers and go on with resume(..., record=...)."
    )
