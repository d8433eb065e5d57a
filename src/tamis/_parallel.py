"""Parallel computation with threads, processes (joblib) or clusters (Dask), and its progress."""

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from uuid import uuid4

import cloudpickle
import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController, threadpool_limits

from tamis.exceptions import ClusterLost, ClusterUnreachable, MissingExtra

#: Arrays of at least this number of bytes are memory-mapped by processes instead of being read, as
#: in joblib.
MAPPED = 1 << 20


class Filed:
    """An object that was written to a folder, so that other processes can read it."""

    def __init__(self, folder: Path, thing: Any):
        folder.mkdir()
        self.folder = folder
        large: list[Any] = []

        def stays_inside(buffer: Any) -> bool:
            if buffer.raw().nbytes < MAPPED:
                return True
            large.append(buffer)
            return False

        with open(folder / "object", "wb") as file:
            cloudpickle.Pickler(file, protocol=5, buffer_callback=stays_inside).dump(thing)
        for number, buffer in enumerate(large):
            (folder / f"buffer-{number}").write_bytes(buffer.raw())

    @property
    def inside(self) -> Any:
        """The object. A process reads it only once."""
        return _read(self.folder)


@contextmanager
def filed(things: Sequence[Any]) -> Iterator[list[Filed]]:
    """Write objects to files, which are removed when the context ends.

    >>> with filed([np.arange(3), "text"]) as sent:
    ...     [one.inside for one in sent]
    [array([0, 1, 2]), 'text']
    """
    # some systems cannot remove files that a process still maps
    with TemporaryDirectory(prefix="tamis-", ignore_cleanup_errors=True) as folder:
        yield [Filed(Path(folder, str(number)), thing) for number, thing in enumerate(things)]


#: Objects that this process has read from the files of the latest :func:`filed` context. The key is
#: the folder.
_KNOWN: dict[Path, Any] = {}


def _read(folder: Path) -> Any:
    if folder not in _KNOWN:
        for other in [known for known in _KNOWN if known.parent != folder.parent]:
            del _KNOWN[other]
        # copy-on-write, because an estimator may modify its data
        n_buffers = len(list(folder.glob("buffer-*")))
        buffers = [np.memmap(folder / f"buffer-{k}", mode="c") for k in range(n_buffers)]
        with open(folder / "object", "rb") as file:
            _KNOWN[folder] = pickle.load(file, buffers=buffers)
    return _KNOWN[folder]


#: Seconds to wait for the scheduler of a cluster. It usually answers within a second, or within a
#: few seconds through a tunnel.
REACH = 10
#: Number of results per thread that may be ready before they are used. It is large enough that no
#: thread waits, and small enough to limit memory.
AHEAD = 4
#: A loop over at least this number of items uses several threads. This is about a millisecond of
#: work, which is ten times the time to start a thread.
SHARED = 1 << 20


def is_shared(size: float) -> bool:
    """Whether a loop over this number of items is long enough for several threads."""
    return size >= SHARED


def threads_for(size: float) -> int:
    """Return the number of threads for a loop over this number of items."""
    return own_threads() if is_shared(size) else 1


def own_threads() -> int:
    """Return the number of threads that this process may use: OMP_NUM_THREADS, or all cores.

    joblib sets the variable in its processes. Inside a thread of joblib the result is 1.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    inside = (get_active_backend()[0].nesting_level or 0) > 0
    return 1 if inside else int(cpu_count())


def in_order(
    function: Callable[[Any], Any], items: Sequence[Any], n_threads: int, *, blas: bool = False
) -> Iterator[Any]:
    """Yield ``function(item)`` for each item, in order, computed by several threads.

    The function must release the GIL. With ``blas``, BLAS is limited to one thread during the loop,
    for functions that compute matrix products.
    """
    n_threads = min(n_threads, len(items))
    if n_threads < 2:
        yield from map(function, items)
    else:
        yield from _on_threads(function, items, n_threads, AHEAD * n_threads, blas=blas)


def in_flight(
    function: Callable[[Any], Any], items: Iterable[Any], n_threads: int
) -> Iterator[Any]:
    """Yield ``function(item)`` for each item, in order, with at most one item per thread at a time.

    It is meant for large items and matrix products. BLAS is limited to one thread during the loop.
    """
    return _on_threads(function, items, n_threads, n_threads, blas=True)


def _on_threads(
    function: Callable[[Any], Any], items: Iterable[Any], n_threads: int, most: int, *, blas: bool
) -> Iterator[Any]:
    """Yield the results in order. At most ``most`` items are started ahead of the one in use."""
    limits = _libraries().limit(limits=1, user_api="blas") if blas else nullcontext()
    with limits, ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[Any]] = deque()
        for item in items:
            if len(waiting) == most:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()


@cache
def _libraries() -> ThreadpoolController:
    """Find the thread pools of this process. It takes milliseconds, so the result is cached."""
    return ThreadpoolController()


@dataclass
class _Listener:
    """A function that receives progress reports, and a flag whether a loop is reporting to it."""

    report: Callable[[int, int], None]
    busy: bool = False


_LISTENER: ContextVar[_Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(report: Callable[[int, int], None]) -> Iterator[None]:
    """Let loops in this thread call ``report(n_done, n_items)``, starting with 0 items done.

    If loops are nested, only the outermost one reports.
    """
    before = _LISTENER.set(_Listener(report))
    try:
        yield
    finally:
        _LISTENER.reset(before)


def report_progress(items: Iterable[Any], n_items: int) -> Iterator[Any]:
    """Yield the items, and report each finished one to the function of :func:`listening`."""
    listener = _LISTENER.get()
    if listener is None or listener.busy:
        yield from items
        return
    listener.busy = True
    try:
        listener.report(0, n_items)
        for n_done, item in enumerate(items, 1):
            yield item
            listener.report(n_done, n_items)
    finally:
        listener.busy = False


def progress_listener() -> Callable[[int, int], None] | None:
    """Return the function that progress is reported to.

    It is None if there is no such function, or if an outer loop is already reporting to it.
    """
    listener = _LISTENER.get()
    return None if listener is None or listener.busy else listener.report


def parallel_map(
    function: Callable[..., Any], items: Iterable[tuple[Any, ...]], n_jobs: int | None = None
) -> list[Any]:
    """Return ``[function(*item) for item in items]``, computed by ``n_jobs`` processes.

    ``n_jobs=None`` means one process unless a joblib context is active, as in scikit-learn. The
    BLAS library in each worker uses an equal share of the cores (joblib's default).
    """
    items = list(items)
    if len(items) < 2 or effective_n_jobs(n_jobs) == 1:
        return [function(*item) for item in report_progress(items, len(items))]
    work = Parallel(n_jobs=n_jobs, return_as="generator")
    return list(report_progress(work(delayed(function)(*item) for item in items), len(items)))


def in_threads(function: Callable[[slice], Any], n_items: int, size: int) -> list[Any]:
    """Apply a function to slices of the items in threads, and return the results.

    The function must release the GIL. There is one slice per available core, or a single slice if
    ``size``, the number of values to process, is small.
    """
    n_slices = min(n_items, threads_for(size))
    bounds = [n_items * k // n_slices for k in range(n_slices + 1)] if n_slices else [0]
    slices = [slice(first, last) for first, last in pairwise(bounds)]
    return list(in_order(function, slices, len(slices)))


def parallel_stream(
    function: Callable[..., Any],
    items: Iterable[tuple[Any, tuple[Any, ...]]],
    *,
    n_jobs: int | None = None,
    cluster: Any = None,
    shared: Sequence[Any] = (),
) -> Iterator[Any]:
    """Yield ``key, function(*item)`` for pairs of a key and an item, in any order.

    BLAS is limited to one thread, so that a result does not depend on the number of processes or
    computers. Items are taken from the iterable as workers become free.

    Parameters
    ----------
    cluster : str, dask.distributed.Client or None
        Address of a Dask scheduler, ``"local"`` for a local cluster, or a client.
    shared : sequence
        Large objects that occur in the items. Each process or worker receives them only once.
    """
    if cluster is not None:
        yield from _on_cluster(function, items, n_jobs, cluster, shared)
    elif effective_n_jobs(n_jobs) == 1:
        with _libraries().limit(limits=1):
            for key, item in items:
                yield key, function(*item)
    else:
        yield from _on_processes(function, items, n_jobs, shared)


def _on_processes(
    function: Callable[..., Any],
    items: Iterable[tuple[Any, tuple[Any, ...]]],
    n_jobs: int | None,
    shared: Sequence[Any],
) -> Iterator[Any]:
    # threads share memory, so objects need not be written to files
    apart = not getattr(get_active_backend()[0], "supports_sharedmem", False)
    with filed(shared if apart else ()) as sent:
        files = dict(zip(map(id, shared), sent, strict=False))
        packed = ((key, [files.get(id(part), part) for part in item]) for key, item in items)
        work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from work(delayed(_keyed)(function, key, *item) for key, item in packed)


def _keyed(function: Callable[..., Any], key: Any, *item: Any) -> tuple[Any, Any]:
    return key, on_one_thread(function, *item)


def on_one_thread(function: Callable[..., Any], *item: Any) -> Any:
    """Run a function in a worker process, which uses one thread from then on."""
    _keep_to_one_thread()
    # otherwise a cluster worker would send its inner loops back to the cluster
    with parallel_config(backend="sequential"):
        parts = (part.inside if isinstance(part, _Parcel | Filed) else part for part in item)
        return function(*parts)


@cache
def _keep_to_one_thread() -> None:
    """Limit BLAS to one thread. This is done once per process, because it takes milliseconds."""
    threadpool_limits(1)


class _Parcel:
    """An object that is sent to each worker once, with a unique name.

    Without this name, Dask would derive one from the content. Two runs would then share the object,
    and the end of the first run would remove it while the second still needs it.
    """

    def __init__(self, inside: Any):
        self.inside, self.name = inside, uuid4().hex

    def __dask_tokenize__(self) -> str:
        return self.name


def _on_cluster(
    function: Callable[..., Any],
    items: Iterable[tuple[Any, tuple[Any, ...]]],
    n_jobs: int | None,
    cluster: Any,
    shared: Sequence[Any],
) -> Iterator[Any]:
    need_dask()
    from dask.distributed import CancelledError, KilledWorker

    with cluster_client(cluster, n_jobs) as client:
        parcels = {id(big): _Parcel(big) for big in shared}
        packed = ((key, [parcels.get(id(part), part) for part in item]) for key, item in items)
        try:
            with parallel_config(backend="dask", client=client, scatter=list(parcels.values())):
                work = Parallel(return_as="generator_unordered")
            # with a single worker, joblib runs the tasks in this process, so it needs the client
            with Notice.by(client):
                yield from work(delayed(_keyed)(function, key, *item) for key, item in packed)
        except (TimeoutError, OSError, CancelledError, KilledWorker) as error:
            raise ClusterLost(
                f"The cluster {client.scheduler.address} lost workers and their data "
                f"({str(error) or type(error).__name__}). Finished tasks are kept if a store is "
                "given: start workers and run again."
            ) from error


def need_dask() -> None:
    """Raise MissingExtra if Dask is not installed."""
    if find_spec("distributed") is None:
        raise MissingExtra(
            "A cluster needs Dask, which is not installed. Run pip install 'tamis[dask]'."
        )


@contextmanager
def cluster_client(cluster: Any, n_jobs: int | None = None) -> Iterator[Any]:
    """Yield the given client, or a new client for an address or a local cluster."""
    need_dask()
    from dask.distributed import Client, LocalCluster

    if not isinstance(cluster, str):
        yield cluster
        return
    if cluster == "local":
        how = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
        workers = LocalCluster(n_workers=n_jobs, **how)
        with workers, Client(workers, set_as_default=False) as client:
            yield client
        return
    try:
        client = Client(cluster, timeout=REACH, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterUnreachable(
            f"No Dask scheduler answers at {cluster} ({error}). Start one with `dask scheduler` "
            "and give its address, such as tcp://127.0.0.1:8786."
        ) from error
    try:
        yield client
    finally:
        with suppress(OSError, TimeoutError):
            client.close()


class Notice:
    """A text that the scheduler of the current Dask cluster stores under a name.

    It stays until it is replaced or removed, even if the worker that posted it is gone.
    """

    #: The client of the process that distributes the work.
    _own: ClassVar[Any] = None

    def __init__(self, name: str):
        self.name = name

    @classmethod
    @contextmanager
    def by(cls, client: Any) -> Iterator[None]:
        """Use this client in the process that distributes the work."""
        before, cls._own = cls._own, client
        try:
            yield
        finally:
            cls._own = before

    @classmethod
    def possible(cls) -> bool:
        """Whether this process is a worker of a Dask cluster, or distributes work to one."""
        return cls._client() is not None

    @classmethod
    def _client(cls) -> Any:
        if "distributed" not in sys.modules:
            return None
        from distributed import get_client, get_worker

        try:
            get_worker()
        except ValueError:
            return cls._own
        return get_client()

    def post(self, text: str | None) -> None:
        """Replace the text."""
        self._client().set_metadata(self.name, text)

    def remove(self) -> None:
        """Remove the text."""
        self.post(None)

    def read(self) -> str | None:
        """Return the text, or None if there is none."""
        text: str | None = self._client().get_metadata(self.name, None)
        return text
