"""The one place that names array libraries: numpy, torch, CuPy, or any that keeps the standard.

What is written against the array API runs where its arrays are; answers come back as numpy arrays.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import DeviceWarning, InvalidParameter, InvalidTable, MissingExtra

#: Libraries whose arrays are computed with where they are; any other table becomes a numpy array.
LIBRARIES = ("torch", "cupy", "array_api_strict")
#: What is said of where numpy computes.
PROCESSOR = "processor"


class Place:
    """A device that kernels are to be computed on: the library of its arrays, and its device.

    It remembers which parts of the work were done there and which on the processor, and what was
    said of those.
    """

    def __init__(self, library: Any, device: Any):
        self.library, self.device = library, device
        #: Where each part of the work was done, in words.
        self.parts: dict[str, list[str]] = {}
        self.said: set[str] = set()

    @classmethod
    def of(cls, x: Any) -> "Place":
        """That of an array of another library."""
        return cls(namespace(x), _compat().device(x))

    def put(self, values: NDArray[Any]) -> Any:
        """Numbers of the host as an array of the place."""
        return self.library.asarray(np.ascontiguousarray(values), device=self.device)

    @property
    def name(self) -> str:
        """What people call it, such as "cuda:0 (NVIDIA H200)"."""
        return _spoken(self.library.__name__, self.device)


def _spoken(library: str, device: Any) -> str:
    root = next((name for name in LIBRARIES if name in library), library.split(".")[0])
    if root == "torch" and "cuda" in str(device):
        cuda = import_module("torch").cuda
        index = import_module("torch").device(device).index
        index = cuda.current_device() if index is None else index
        return f"cuda:{index} ({cuda.get_device_name(index)})"
    if root == "cupy":
        properties = import_module("cupy").cuda.runtime.getDeviceProperties(device.id)
        return f"cuda:{device.id} ({properties['name'].decode()})"
    if root == "numpy":
        return PROCESSOR
    return f"{'cpu' if 'cpu' in str(device).lower() else device} ({root})"


#: Where kernels are to be computed, None for the processor by numpy.
_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


def namespace(*arrays: Any) -> Any:
    """The library of some arrays, as the standard has it; arrays of two libraries are refused.

    >>> namespace(np.eye(2)) is np
    True
    """
    if all(isinstance(x, np.ndarray) for x in arrays):
        return np
    try:
        return _compat().array_namespace(*arrays)
    except TypeError:
        kinds = ", ".join(sorted({type(x).__module__.split(".")[0] for x in arrays}))
        raise InvalidTable(
            f"Kernels need arrays of one library, not of {kinds}. Bring them to one, for example "
            "by torch.asarray(y, device=X.device)."
        ) from None


@cache
def _compat() -> Any:
    """array-api-compat, or the copy of it that scikit-learn brings along."""
    own = find_spec("array_api_compat") is not None
    return import_module("array_api_compat" if own else "sklearn.externals.array_api_compat")


@contextmanager
def computing_on(device: Any) -> Iterator[Place | None]:
    """Have what can be computed on a device computed there.

    A device is the name of one of torch, such as "cuda", or a place; None is that asked for before,
    if there is one.
    """
    if device is None:
        yield _PLACE.get()
        return
    if not isinstance(device, Place):
        _check_device(device)
        device = Place(import_module("torch"), device)
    token = _PLACE.set(device)
    try:
        yield device
    finally:
        _PLACE.reset(token)


def _check_device(device: Any) -> None:
    if find_spec("torch") is None:
        raise MissingExtra(
            f"device={device!r} needs torch, which is not installed. Write pip install "
            "'tamis[gpu]'."
        )
    torch = import_module("torch")
    try:
        torch.zeros(1, dtype=torch.float64, device=device).cpu()  # some only pretend to hold it
    except (RuntimeError, TypeError, AssertionError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InvalidParameter(
            f"device={device!r} cannot be used by torch {torch.__version__} here: {reason}. Write "
            "device='cuda' on a machine with such a device, or leave it out."
        ) from None


def device_asked() -> Place | None:
    """Where kernels are to be computed, None for the processor by numpy."""
    return _PLACE.get()


def placed(x: Any) -> Any:
    """The numbers where they are to be computed on: the array itself unless a device is asked.

    What is an array of another library already stays where it is.
    """
    place = device_asked()
    return x if place is None or not isinstance(x, np.ndarray) else place.put(x)


def note(part: str, x: Any = None) -> None:
    """Remember where a part of the work was done: where an array is, or on the processor."""
    place = device_asked()
    if place is None:
        return
    here = x is None or isinstance(x, np.ndarray)
    found = place.parts.setdefault(part, [])
    name = PROCESSOR if here else Place.of(x).name
    if name not in found:
        found.append(name)


def say_processor(what: str, instead: str) -> None:
    """Say once that a part of the work is done on the processor, where a device is asked for."""
    place = device_asked()
    if place is None or what in place.said:
        return
    place.said.add(what)
    warn(f"{what} on the processor, not on {place.name}. {instead}", DeviceWarning, stacklevel=2)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device has no memory left: torch and CuPy call it the same."""
    return any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)


def free_memory() -> None:
    """Give back what libraries hold of a device's memory for later."""
    place = device_asked()
    if place is None:
        return
    if "torch" in place.library.__name__ and "cuda" in str(place.device):
        import_module("torch").cuda.empty_cache()
    if "cupy" in place.library.__name__:
        import_module("cupy").get_default_memory_pool().free_all_blocks()


def spare_memory() -> int | None:
    """Bytes that are free on the device asked for; None where it is not one with its own memory."""
    place = device_asked()
    if place is None:
        return None
    if "torch" in place.library.__name__ and "cuda" in str(place.device):
        return int(import_module("torch").cuda.mem_get_info(place.device)[0])
    if "cupy" in place.library.__name__:
        with place.device:
            return int(import_module("cupy").cuda.runtime.memGetInfo()[0])
    return None


def is_elsewhere(x: Any) -> bool:
    """Whether it is an array of another library than numpy that is computed with where it is."""
    return type(x).__module__.split(".")[0] in LIBRARIES and hasattr(x, "dtype")


def same_place(one: Any, other: Any) -> bool:
    """Whether two arrays are of one library and on one device.

    >>> same_place(np.eye(2), np.ones(3))
    True
    """
    device = _compat().device
    return type(one) is type(other) and bool(device(one) == device(other))


def host(x: Any) -> NDArray[Any]:
    """A numpy array of the same numbers, wherever they are.

    >>> host(np.float64(2.0))
    array(2.)
    """
    if hasattr(x, "detach"):  # torch
        x = x.detach().cpu().resolve_conj().resolve_neg()
        x = x.float() if "bfloat16" in str(x.dtype) else x  # which numpy has not
    elif hasattr(x, "get") and hasattr(x, "device"):  # CuPy, which never copies by itself
        x = x.get()
    return np.asarray(x)


def move(values: Any, like: Any, *, exact: bool = False) -> Any:
    """Host numbers as an array of the library and device of another, and of its type.

    With ``exact`` they keep a type of their own, as indices must.
    """
    values = np.asarray(values)
    if isinstance(like, np.ndarray):
        return values if exact else values.astype(like.dtype, copy=False)
    xp = namespace(like)
    own = xp.int64 if exact else like.dtype
    return xp.asarray(np.ascontiguousarray(values), dtype=own, device=_compat().device(like))


def on_host(x: Any) -> bool:
    """Whether the numbers are in the memory of the processor."""
    return "cpu" in str(getattr(x, "device", "cpu")).lower()


def taken(x: Any, columns: NDArray[np.intp], axis: int = 1) -> Any:
    """Some columns of an array; the array itself where they are all of them, in their order."""
    if len(columns) == x.shape[axis] and np.array_equal(columns, np.arange(len(columns))):
        return x
    return namespace(x).take(x, move(columns, x, exact=True), axis=axis)


def rows_taken(x: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of an array; the array itself where they are all of them, in their order."""
    return taken(x, rows, axis=0)


def diagonal(x: Any) -> Any:
    """The diagonal of a square matrix."""
    return namespace(x).linalg.diagonal(x)


def with_diagonal(matrix: Any, more: Any) -> Any:
    """A matrix with numbers added to its diagonal; the matrix itself is used where that can be.

    >>> with_diagonal(np.ones((2, 2)), np.array([1.0, 2.0]))
    array([[2., 1.],
           [1., 3.]])
    """
    if isinstance(matrix, np.ndarray):
        matrix[np.diag_indices_from(matrix)] += more
    elif hasattr(matrix, "detach"):
        matrix.diagonal().add_(more)
    else:  # the standard has no view of a diagonal
        xp = namespace(matrix)
        index = move(np.arange(matrix.shape[0]), matrix, exact=True)
        same = xp.reshape(index, (-1, 1)) == xp.reshape(index, (1, -1))
        matrix = xp.where(same, matrix + xp.reshape(more, (-1, 1)), matrix)
    return matrix


def double(x: Any) -> Any:
    """The numbers in double precision."""
    if isinstance(x, np.ndarray):
        return np.asarray(x, dtype=np.float64)
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def cholesky_solve(matrix: Any, right: Any) -> Any:
    """The solution of a symmetric positive definite system, for several right sides at once.

    The matrix may be overwritten. ``numpy.linalg.LinAlgError`` where it is not positive definite.
    """
    return cholesky_solver(matrix)(right)


def cholesky_solver(matrix: Any) -> Callable[[Any], Any]:
    """Who solves the systems of a symmetric positive definite matrix, which may be overwritten."""
    factor = lower_factor(matrix)
    if isinstance(matrix, np.ndarray):
        from scipy.linalg import cho_solve

        return lambda right: cho_solve((factor, True), right, check_finite=False)
    if hasattr(matrix, "detach"):
        torch = import_module("torch")
        return lambda right: torch.cholesky_solve(right, factor)
    return lambda right: lower_solve(factor, lower_solve(factor, right), transposed=True)


def lower_factor(matrix: Any) -> Any:
    """The lower Cholesky factor of a symmetric matrix, which may be overwritten.

    What is above the diagonal is of no meaning. ``numpy.linalg.LinAlgError`` where the matrix is
    not positive definite.
    """
    if isinstance(matrix, np.ndarray):
        from scipy.linalg import cho_factor

        # the transpose of what is stored by rows is stored by columns, as LAPACK asks for
        return cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)[0]
    if hasattr(matrix, "detach"):
        factor, failed = import_module("torch").linalg.cholesky_ex(matrix)
        if int(failed):
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return factor
    return namespace(matrix).linalg.cholesky(matrix)


def lower_solve(factor: Any, right: Any, *, transposed: bool = False) -> Any:
    """The solution of a system of a lower factor, or of its transpose."""
    if isinstance(factor, np.ndarray):
        from scipy.linalg import solve_triangular

        return solve_triangular(
            factor, right, trans=int(transposed), lower=True, check_finite=False
        )
    own = factor.mT if transposed else factor
    if hasattr(factor, "detach"):
        solve = import_module("torch").linalg.solve_triangular
        return solve(own, right, upper=transposed)
    if type(factor).__module__.split(".")[0] == "cupy":
        solve = import_module("cupyx.scipy.linalg").solve_triangular
        return solve(own, right, lower=not transposed)
    return namespace(factor).linalg.solve(own, right)  # the standard has no other
