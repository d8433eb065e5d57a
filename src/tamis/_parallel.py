"""The one place that knows joblib, and through it Dask."""

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
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

#: Bytes from which an array is mapped into the memory of each process rather than read into it, as
#: joblib does with what it sends.
MAPPED = 1 << 20


class Filed:
    """Something that was written to a folder, for whoever reads it."""

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
        """What was written; a process reads it once."""
        return _read(self.folder)


@contextmanager
def filed(things: Sequence[Any]) -> Iterator[list[Filed]]:
    """Write objects to files, which are gone when the context ends.

    >>> with filed([np.arange(3), "text"]) as sent:
    ...     [one.inside for one in sent]
    [array([0, 1, 2]), 'text']
    """
    # files that a process still maps stay until it is done with them, where systems allow it
    with TemporaryDirectory(prefix="tamis-", ignore_cleanup_errors=True) as folder:
        yield [Filed(Path(folder, str(number)), thing) for number, thing in enumerate(things)]


#: What this process has read of the latest context: of one that ended nothing is held any more.
_KNOWN: dict[Path, Any] = {}


def _read(folder: Path) -> Any:
    if folder not in _KNOWN:
        for other in [known for known in _KNOWN if known.parent != folder.parent]:
            del _KNOWN[other]
        # written to in the process alone, should an estimator work in place
        n_buffers = len(list(folder.glob("buffer-*")))
        buffers = [np.memmap(folder / f"buffer-{k}", mode="c") for k in range(n_buffers)]
        with open(folder / "object", "rb") as file:
            _KNOWN[folder] = pickle.load(file, buffers=buffers)
    return _KNOWN[folder]


#: Seconds to wait for the scheduler of a cluster: one that is there answers within one, through a
#: tunnel within a few.
REACH = 10
#: Answers of each thread that may be ready before they are asked for: enough that none waits, few
#: enough that answers of a long table are not held all together.
AHEAD = 4


#: Numbers from which a loop over them is shared among threads: a millisecond's work, to which the
#: start of a thread adds a tenth.
SHARED = 1 << 20


def is_shared(size: float) -> bool:
    """Whether a loop over so many numbers is worth more than one thread."""
    return size >= SHARED


def threads_for(size: float) -> int:
    """Threads for a loop over so many numbers."""
    return own_threads() if is_shared(size) else 1


def own_threads() -> int:
    """Threads that loops of this process may use: OMP_NUM_THREADS, else every core.

    joblib sets the variable in its processes; its threads share the cores among themselves.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    inside = (get_active_backend()[0].nesting_level or 0) > 0
    return 1 if inside else int(cpu_count())


def in_order(
    function: Callable[[Any], Any], items: Sequence[Any], n_threads: int, *, blas: bool = False
) -> Iterator[Any]:
    """``function`` of each item in their order, on so many threads.

    For functions that let go of the interpreter's lock. With ``blas`` they are matrix products,
    whose library is held to one thread meanwhile: its own threads gain nothing beside these.
    """
    n_threads = min(n_threads, len(items))
    if n_threads < 2:
        yield from map(function, items)
    else:
        yield from _on_threads(function, items, n_threads, AHEAD * n_threads, blas=blas)


def in_flight(
    function: Callable[[Any], Any], items: Iterable[Any], n_threads: int
) -> Iterator[Any]:
    """``function`` of each item in their order, no more items taken than there are threads.

    For large items, and matrix products, whose library is held to one thread meanwhile.
    """
    return _on_threads(function, items, n_threads, n_threads, blas=True)


def _on_threads(
    function: Callable[[Any], Any], items: Iterable[Any], n_threads: int, most: int, *, blas: bool
) -> Iterator[Any]:
    """Results in the order of the items, of which ``most`` are begun or wait to be asked for."""
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
    """Looked for once: going through all libraries of a process takes milliseconds."""
    return ThreadpoolController()


class _Listener:
    """Who is told how far a loop is, and whether one is telling now."""

    def __init__(self, tell: Callable[[int, int], None]):
        self.tell, self.busy = tell, False


_LISTENER: ContextVar[_Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(tell: Callable[[int, int], None]) -> Iterator[None]:
    """Have loops in this thread tell how far they are: ``tell(n_done, n_items)``, from 0 on.

    Of loops inside one another the outermost speaks.
    """
    before = _LISTENER.set(_Listener(tell))
    try:
        yield
    finally:
        _LISTENER.reset(before)


def told(items: Iterable[Any], n_items: int) -> Iterator[Any]:
    """The items, of which whoever is :func:`listening` is told as they get done."""
    listener = _LISTENER.get()
    if listener is None or listener.busy:
        yield from items
        return
    listener.busy = True
    try:
        listener.tell(0, n_items)
        for n_done, item in enumerate(items, 1):
            yield item
            listener.tell(n_done, n_items)
    finally:
        listener.busy = False


def heard() -> Callable[[int, int], None] | None:
    """How a walk tells how far it is; None where nobody listens, or a loop around it tells."""
    listener = _LISTENER.get()
    return None if listener is None or listener.busy else listener.tell


def parallel_map(
    function: Callable[..., Any], items: Iterable[tuple[Any, ...]], n_jobs: int | None = None
) -> list[Any]:
    """``[function(*item) for item in items]``, on ``n_jobs`` processes or the active backend.

    ``None`` means one process unless a joblib context says otherwise, as in scikit-learn. Workers
    hold BLAS to their share of the cores (joblib's default).
    """
    items = list(items)
    if len(items) < 2 or effective_n_jobs(n_jobs) == 1:
        return [function(*item) for item in told(items, len(items))]
    work = Parallel(n_jobs=n_jobs, return_as="generator")
    return list(told(work(delayed(function)(*item) for item in items), len(items)))


def in_threads(function: Callable[[slice], Any], n_items: int, size: int) -> list[Any]:
    """What a function that leaves the interpreter makes of slices of so many items.

    One slice for each core that is free to use, unless there is too little work to share: so many
    numbers in all.
    """
    n_slices = min(n_items, threads_for(size))
    bounds = [n_items * k // n_slices for k in range(n_slices + 1)] if n_slices else [0]
    slices = [slice(first, last) for first, last in pairwise(bounds)]
    return list(in_order(function, slices, len(slices)))


def parallel_stream(
    function: Callable[..., Any],
    items: Iterable[tuple[Any, ...]],
    *,
    n_jobs: int | None = None,
    cluster: Any = None,
    shared: Sequence[Any] = (),
) -> Iterator[Any]:
    """Yield ``function(*item)`` as the items get done, in any order.

    BLAS is held to one thread wherever an item runs, so that a result does not depend on the
    number of processes or machines. Items are taken from the iterable as workers become free.

    Parameters
    ----------
    cluster : str, dask.distributed.Client or None
        Address of a Dask scheduler, ``"local"`` for a cluster of this machine, or a client.
    shared : sequence
        Big objects that occur in the items: they are sent to each process or worker once.
    """
    if cluster is not None:
        yield from _on_cluster(function, items, n_jobs, cluster, shared)
    elif effective_n_jobs(n_jobs) == 1:
        with threadpool_limits(1):
            for item in items:
                yield function(*item)
    else:
        yield from _on_processes(function, items, n_jobs, shared)


def _on_processes(
    function: Callable[..., Any],
    items: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    shared: Sequence[Any],
) -> Iterator[Any]:
    # threads have all of it at hand
    apart = not getattr(get_active_backend()[0], "supports_sharedmem", False)
    with filed(shared if apart else ()) as sent:
        files = dict(zip(map(id, shared), sent, strict=False))
        packed = ([files.get(id(part), part) for part in item] for item in items)
        work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from work(delayed(on_one_thread)(function, *item) for item in packed)


def on_one_thread(function: Callable[..., Any], *item: Any) -> Any:
    """Run in a worker process, which keeps to one thread from then on."""
    _keep_to_one_thread()
    # a worker of a cluster would otherwise hand inner loops back to the cluster
    with parallel_config(backend="sequential"):
        return function(
            *(part.inside if isinstance(part, _Parcel | Filed) else part for part in item)
        )


@cache
def _keep_to_one_thread() -> None:
    """Once per process: looking through its libraries takes milliseconds."""
    threadpool_limits(1)


class _Parcel:
    """Something to be sent to each worker once, known by a name of its own.

    Dask names what it sends by content; a second run would share, and the end of the first take
    away, what both use.
    """

    def __init__(self, inside: Any):
        self.inside, self.name = inside, uuid4().hex

    def __dask_tokenize__(self) -> str:
        return self.name


def _on_cluster(
    function: Callable[..., Any],
    items: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    cluster: Any,
    shared: Sequence[Any],
) -> Iterator[Any]:
    need_dask()
    from dask.distributed import CancelledError, KilledWorker

    with cluster_client(cluster, n_jobs) as client:
        parcels = {id(big): _Parcel(big) for big in shared}
        packed = ([parcels.get(id(part), part) for part in item] for item in items)
        try:
            with parallel_config(backend="dask", client=client, scatter=list(parcels.values())):
                work = Parallel(return_as="generator_unordered")
            # where one worker is left joblib does its work here, with the same scheduler at hand
            with Notice.by(client):
                yield from work(delayed(on_one_thread)(function, *item) for item in packed)
        except (TimeoutError, OSError, CancelledError, KilledWorker) as error:
            raise ClusterLost(
                f"The cluster {client.scheduler.address} lost workers and what they were sent "
                f"({str(error) or type(error).__name__}). Finished tasks are kept where a store "
                "is given: start workers and run again."
            ) from error


def need_dask() -> None:
    """Refuse to go on where Dask is not installed."""
    if find_spec("distributed") is None:
        raise MissingExtra(
            "A cluster needs Dask, which is not installed. Write pip install 'tamis[dask]'."
        )


@contextmanager
def cluster_client(cluster: Any, n_jobs: int | None = None) -> Iterator[Any]:
    """The client given, or one for an address or a cluster of this machine."""
    need_dask()
    from dask.distributed import Client, LocalCluster

    if not isinstance(cluster, str):
        yield cluster
        return
    if cluster == "local":
        how = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
        machines = LocalCluster(n_workers=n_jobs, **how)
        with machines, Client(machines, set_as_default=False) as client:
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
    """A text under a name with the scheduler of the cluster that this code runs on.

    The newest stays there until it is removed, also when the worker that posted it is gone.
    """

    #: The client of the process that hands out the work.
    _own: ClassVar[Any] = None

    def __init__(self, name: str):
        self.name = name

    @classmethod
    @contextmanager
    def by(cls, client: Any) -> Iterator[None]:
        """Use this client in the process that hands out the work."""
        before, cls._own = cls._own, client
        try:
            yield
        finally:
            cls._own = before

    @classmethod
    def possible(cls) -> bool:
        """Whether this process is a worker of a Dask cluster, or hands out work to one."""
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
        """Return the text, None if there is none."""
        text: str | None = self._client().get_metadata(self.name, None)
        return text
