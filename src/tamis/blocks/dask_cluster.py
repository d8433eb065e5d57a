"""Row blocks on the workers of a Dask cluster. Each worker computes statistics of its own blocks.

Dask does all scheduling. The kept results of several chunks are one task. If its worker is lost,
Dask computes the task again. A statistic is computed by a single task per worker, so a pass needs
one message per worker, however many blocks there are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import pairwise
from time import monotonic
from typing import Any, Self

from numpy.typing import NDArray

from tamis._format import first_line
from tamis._parallel import need_dask, on_one_thread
from tamis.blocks.local import LocalBlocks, reduced
from tamis.blocks.source import BlockSource, Reducible, RowBlock, RowStatistic
from tamis.exceptions import ClusterLost

#: Maximum number of states that a single process merges. If there are more, workers first merge
#: groups of eight, so that not all states are sent to the same process.
MOST_GATHERED, MERGED = 32, 8
#: Number of tasks with kept results per worker thread. It does not grow with the number of chunks,
#: because every pass lists all tasks. If a worker is lost, its tasks are computed again.
HELD = 16
#: Seconds to wait for a cluster that has lost all workers. A Dask nanny restarts a worker in a few
#: seconds. A batch queue may take hours; then the search can be resumed from its record.
PATIENCE = 60.0
#: Seconds between two checks whether there are any workers.
LOOK = 1.0
#: Minimum number of seconds between two checks for new workers that have no results yet. A check
#: takes a few milliseconds, a tenth of a pass.
NEWCOMERS = 5.0


class OnCluster(BlockSource):
    """Source whose statistics are computed by the workers of a Dask cluster."""

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
    """Source whose chunks are read by the workers of a Dask cluster.

    Parameters
    ----------
    source : LocalBlocks
        Source that every worker can read: files on a shared file system or in an object store.
    client : dask.distributed.Client
        Client of the cluster.

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
        """Return the same source with a different target column."""
        return type(self)(self.source.targeted(target), self.client)

    def narrowed(self, columns: NDArray[Any]) -> BlockSource:
        """Return a source with the same rows and only the given columns.

        Other columns are not read if the file format allows it.
        """
        narrowed = self.source.narrowed(columns)
        if isinstance(narrowed, LocalBlocks):
            return ClusterBlocks(narrowed, self.client)
        return super().narrowed(columns)

    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        with cluster_errors(self.client):
            futures = [
                _submit(self.client, worker, _read, self.source, chunks, statistic, target_only)
                for worker, chunks in self._assign()
            ]
            return statistic.finish(_merge_states(self.client, statistic, futures))

    def kept(self, make: Callable[[RowBlock], NDArray[Any]], n_bytes: float) -> Reducible:
        with cluster_errors(self.client):
            futures = [
                _submit(self.client, worker, _make, self.source, some, make)
                for worker, chunks in self._assign()
                for some in split(chunks, HELD)
            ]
            return KeptThere(self.client, futures)

    def _assign(self) -> Iterator[tuple[str | None, range]]:
        """Yield a worker and a range of consecutive chunks, for each thread of each worker."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        workers: list[str | None] = [
            address for address in sorted(known) for _ in range(known[address]["nthreads"])
        ]
        workers = workers or [None]
        yield from zip(workers, split(range(self.source.n_chunks), len(workers)), strict=False)


class KeptThere(Reducible):
    """Lists of blocks, or of results for blocks, that stay on the workers that computed them.

    Parameters
    ----------
    client : dask.distributed.Client
        Client of the cluster.
    futures : sequence of Future
        A future for each list.
    """

    def __init__(self, client: Any, futures: Sequence[Any]):
        self.client, self.futures = client, list(futures)
        self._looked = monotonic()

    def reduce(self, statistic: RowStatistic) -> Any:
        """Compute a statistic of all lists, with a single task per worker for its own lists."""
        with cluster_errors(self.client):
            states = [
                _submit(self.client, worker, _reduce_lists, statistic, *futures)
                for worker, futures in self._by_worker()
            ]
            return statistic.finish(_merge_states(self.client, statistic, states))

    def _by_worker(self) -> list[tuple[str | None, list[Any]]]:
        """Return the lists of each worker. A new worker takes over lists of other workers."""
        _await(self.client, self.futures)  # lost results are computed again first
        where = self.client.who_has(self.futures)
        most = self._shares(where)
        found: dict[str | None, list[Any]] = {address: [] for address in most}

        def load(worker: str | None) -> tuple[float, str]:
            """Return the number of lists of a worker divided by its fair share, and its name."""
            return len(found.get(worker, ())) / most.get(worker, 1), str(worker)

        # lists that several workers hold come last, and go to the holder with the least load
        for future in sorted(self.futures, key=lambda one: len(where.get(one.key) or ())):
            worker = min(where.get(future.key) or (None,), key=load)
            if most and load(worker)[0] >= 1:  # the list is sent to another worker and stays there
                worker = min(most, key=load)
            found.setdefault(worker, []).append(future)
        return [(worker, futures) for worker, futures in found.items() if futures]

    def _shares(self, where: Any) -> dict[Any, int]:
        """Return the number of lists that each worker should have, by address.

        It is empty if there is no new worker.
        """
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
    """Split a range into consecutive parts of nearly equal length, none of them empty.

    >>> split(range(3, 8), 2), split(range(2), 16)
    ([range(3, 5), range(5, 8)], [range(0, 1), range(1, 2)])
    """
    n_parts = min(n_parts, len(items))
    bounds = [len(items) * k // n_parts for k in range(n_parts + 1)] if n_parts else []
    return [items[first:last] for first, last in pairwise(bounds)]


def _submit(client: Any, worker: str | None, function: Any, *args: Any) -> Any:
    """Submit a task to a worker. Other workers may take it over."""
    where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
    return client.submit(on_one_thread, function, *args, pure=False, **where)


def _merge_states(client: Any, statistic: RowStatistic, futures: list[Any]) -> Any:
    """Merge the states of all workers, and return the state of all rows."""
    while len(futures) > MOST_GATHERED:
        groups = [futures[k : k + MERGED] for k in range(0, len(futures), MERGED)]
        futures = [client.submit(_merge, statistic, *group, pure=False) for group in groups]
    _await(client, futures)
    return _merge(statistic, *client.gather(futures))


def _await(client: Any, futures: Sequence[Any]) -> None:
    """Wait until all tasks are done. Raise an error if the cluster stays without workers."""
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


def _merge(statistic: RowStatistic, *states: Any) -> Any:
    return reduce(statistic.merge, states, statistic.empty())


def _read(source: LocalBlocks, chunks: range, statistic: RowStatistic, target_only: bool) -> Any:
    """Return the state of a statistic after the given chunks."""
    return reduced(statistic, (b for k in chunks for b in source.chunk(k, target_only=target_only)))


def _make(source: LocalBlocks, chunks: range, make: Callable[[RowBlock], Any]) -> list[Any]:
    return [make(block) for k in chunks for block in source.chunk(k)]


def _reduce_lists(statistic: RowStatistic, *lists: list[Any]) -> Any:
    return reduced(statistic, (item for items in lists for item in items))


@contextmanager
def cluster_errors(client: Any) -> Iterator[None]:
    """Turn errors of a lost cluster into :class:`~tamis.exceptions.ClusterLost`."""
    from dask.distributed import CancelledError, KilledWorker
    from distributed.client import ClosedClientError

    try:
        yield
    except (TimeoutError, OSError, CancelledError, KilledWorker, ClosedClientError) as error:
        raise _lost(client, f"lost workers or its scheduler ({first_line(error)})") from error


def _lost(client: Any, reason: str) -> ClusterLost:
    # a closed client may have no address
    address = getattr(client.scheduler, "address", None) or "of Dask"
    return ClusterLost(
        f"The cluster {address} {reason}. Completed steps are in the record, search.record_: "
        "start workers and continue with resume(..., record=...)."
    )
