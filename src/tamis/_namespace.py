"""Access to array libraries: numpy, torch, CuPy, and any other that follows the array API.

Code written against the array API runs on the device of its arrays. Results become numpy arrays.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import DeviceWarning, InvalidParameter, InvalidTable, MissingExtra

#: Libraries whose arrays are processed on their own device. Any other table becomes a numpy array.
LIBRARIES = ("torch", "cupy", "array_api_strict")
#: Name of the CPU in records and messages. numpy computes on it.
PROCESSOR = "processor"


@dataclass(eq=False)
class Place:
    """A device on which kernels are computed, and the library of its arrays."""

    library: Any
    device: Any
    #: Names of the devices on which each part of the work ran.
    parts: dict[str, list[str]] = field(default_factory=dict)
    #: Warnings that were already issued.
    warned: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, x: Any) -> "Place":
        """Return the device of an array of another library."""
        return cls(namespace(x), _compat().device(x))

    def put(self, values: NDArray[Any]) -> Any:
        """Copy a numpy array to the device."""
        return self.library.asarray(np.ascontiguousarray(values), device=self.device)

    @property
    def name(self) -> str:
        """The name of the device, such as "cuda:0 (NVIDIA H200)"."""
        return _device_name(self.library.__name__, self.device)


def _device_name(library: str, device: Any) -> str:
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


#: The device on which kernels are computed, or None for numpy on the CPU.
_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


def namespace(*arrays: Any) -> Any:
    """Return the array API namespace of the arrays. Refuse arrays of different libraries.

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
            f"Kernels need arrays from one library, got {kinds}. Convert them, for example with "
            "torch.asarray(y, device=X.device)."
        ) from None


@cache
def _compat() -> Any:
    """Return array-api-compat, or the copy of it in scikit-learn."""
    own = find_spec("array_api_compat") is not None
    return import_module("array_api_compat" if own else "sklearn.externals.array_api_compat")


@contextmanager
def computing_on(device: Any) -> Iterator[Place | None]:
    """Run the code inside the context on a device, if the code supports devices.

    ``device`` is a torch device such as "cuda", or a :class:`Place`. None keeps the current device.
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
            f"device={device!r} needs torch, which is not installed. Run pip install 'tamis[gpu]'."
        )
    torch = import_module("torch")
    try:
        torch.zeros(1, dtype=torch.float64, device=device).cpu()  # some devices fail at first use
    except (RuntimeError, TypeError, AssertionError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InvalidParameter(
            f"device={device!r} cannot be used by torch {torch.__version__} here: {reason}. Use "
            "device='cuda' on a computer with such a device, or leave it out."
        ) from None


def device_asked() -> Place | None:
    """Return the device on which kernels are computed, or None for numpy on the CPU."""
    return _PLACE.get()


def placed(x: Any) -> Any:
    """Copy a numpy array to the requested device, if there is one.

    Arrays of other libraries stay on their device.
    """
    place = device_asked()
    return x if place is None or not isinstance(x, np.ndarray) else place.put(x)


def note(part: str, x: Any = None) -> None:
    """Record the device on which a part of the work ran.

    It is the device of the array ``x``, or the CPU if ``x`` is None or a numpy array.
    """
    place = device_asked()
    if place is None:
        return
    here = x is None or isinstance(x, np.ndarray)
    found = place.parts.setdefault(part, [])
    name = PROCESSOR if here else Place.of(x).name
    if name not in found:
        found.append(name)


def say_processor(what: str, instead: str) -> None:
    """Warn once that a part of the work runs on the CPU although a device was requested."""
    place = device_asked()
    if place is None or what in place.warned:
        return
    place.warned.add(what)
    warn(f"{what} on the CPU, not on {place.name}. {instead}", DeviceWarning, stacklevel=2)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or CuPy means that a device has no memory left."""
    return any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)


def free_memory() -> None:
    """Release the device memory that libraries have cached."""
    place = device_asked()
    if place is None:
        return
    if "torch" in place.library.__name__ and "cuda" in str(place.device):
        import_module("torch").cuda.empty_cache()
    if "cupy" in place.library.__name__:
        import_module("cupy").get_default_memory_pool().free_all_blocks()


def spare_memory() -> int | None:
    """Return the free memory of the current device in bytes, or None if it is unknown.

    It is known only for NVIDIA GPUs and CuPy devices.
    """
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
    """Whether an object is an array of a supported library other than numpy."""
    return type(x).__module__.split(".")[0] in LIBRARIES and hasattr(x, "dtype")


def same_place(one: Any, other: Any) -> bool:
    """Whether two arrays have the same library and device.

    >>> same_place(np.eye(2), np.ones(3))
    True
    """
    device = _compat().device
    return type(one) is type(other) and bool(device(one) == device(other))


def host(x: Any) -> NDArray[Any]:
    """Return a numpy array with the same numbers.

    >>> host(np.float64(2.0))
    array(2.)
    """
    if hasattr(x, "detach"):  # torch
        x = x.detach().cpu().resolve_conj().resolve_neg()
        x = x.float() if "bfloat16" in str(x.dtype) else x  # not supported by numpy
    elif hasattr(x, "get") and hasattr(x, "device"):  # CuPy, which does not copy implicitly
        x = x.get()
    return np.asarray(x)


def move(values: Any, like: Any, *, exact: bool = False) -> Any:
    """Convert numbers to the library, device and type of another array.

    With ``exact`` the result keeps an integer type, as needed for indices.
    """
    values = np.asarray(values)
    if isinstance(like, np.ndarray):
        return values if exact else values.astype(like.dtype, copy=False)
    xp = namespace(like)
    own = xp.int64 if exact else like.dtype
    return xp.asarray(np.ascontiguousarray(values), dtype=own, device=_compat().device(like))


def on_host(x: Any) -> bool:
    """Whether an array is in the memory of the CPU."""
    return "cpu" in str(getattr(x, "device", "cpu")).lower()


def taken(x: Any, columns: NDArray[np.intp], axis: int = 1) -> Any:
    """Return the given columns of an array.

    If they are all columns in order, the array itself is returned.
    """
    if len(columns) == x.shape[axis] and np.array_equal(columns, np.arange(len(columns))):
        return x
    return namespace(x).take(x, move(columns, x, exact=True), axis=axis)


def rows_taken(x: Any, rows: NDArray[np.intp]) -> Any:
    """Return the given rows of an array.

    If they are all rows in order, the array itself is returned.
    """
    return taken(x, rows, axis=0)


def diagonal(x: Any) -> Any:
    """Return the diagonal of a square matrix."""
    return namespace(x).linalg.diagonal(x)


def with_diagonal(matrix: Any, more: Any) -> Any:
    """Add numbers to the diagonal of a matrix, in place if possible.

    >>> with_diagonal(np.ones((2, 2)), np.array([1.0, 2.0]))
    array([[2., 1.],
           [1., 3.]])
    """
    if isinstance(matrix, np.ndarray):
        matrix[np.diag_indices_from(matrix)] += more
    elif hasattr(matrix, "detach"):
        matrix.diagonal().add_(more)
    else:  # the array API has no view of a diagonal
        xp = namespace(matrix)
        index = move(np.arange(matrix.shape[0]), matrix, exact=True)
        same = xp.reshape(index, (-1, 1)) == xp.reshape(index, (1, -1))
        matrix = xp.where(same, matrix + xp.reshape(more, (-1, 1)), matrix)
    return matrix


def double(x: Any) -> Any:
    """Return the array in double precision."""
    if isinstance(x, np.ndarray):
        return np.asarray(x, dtype=np.float64)
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def cholesky_solve(matrix: Any, right: Any) -> Any:
    """Solve a symmetric positive definite system for several right-hand sides.

    The matrix may be overwritten. Raises ``LinAlgError`` if it is not positive definite.
    """
    return cholesky_solver(matrix)(right)


def cholesky_solver(matrix: Any) -> Callable[[Any], Any]:
    """Return a function that solves systems with a symmetric positive definite matrix.

    The matrix may be overwritten.
    """
    factor = lower_factor(matrix)
    if isinstance(matrix, np.ndarray):
        from scipy.linalg import cho_solve

        return lambda right: cho_solve((factor, True), right, check_finite=False)
    if hasattr(matrix, "detach"):
        torch = import_module("torch")
        return lambda right: torch.cholesky_solve(right, factor)
    return lambda right: lower_solve(factor, lower_solve(factor, right), transposed=True)


def lower_factor(matrix: Any) -> Any:
    """Return the lower Cholesky factor of a symmetric matrix, which may be overwritten.

    Entries above the diagonal are arbitrary. Raises ``LinAlgError`` if the matrix is not positive
    definite.
    """
    if isinstance(matrix, np.ndarray):
        from scipy.linalg import cho_factor

        # the transpose of a C-ordered array is F-ordered, as LAPACK needs it
        return cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)[0]
    if hasattr(matrix, "detach"):
        factor, failed = import_module("torch").linalg.cholesky_ex(matrix)
        if int(failed):
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return factor
    return namespace(matrix).linalg.cholesky(matrix)


def lower_solve(factor: Any, right: Any, *, transposed: bool = False) -> Any:
    """Solve a system with a lower triangular factor, or with its transpose."""
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
    return namespace(factor).linalg.solve(own, right)  # the array API has no triangular solver
