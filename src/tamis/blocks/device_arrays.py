"""Validation and conversion of tables that are arrays of torch, CuPy or another library.

A search keeps a copy in host memory, for its record, its groups and all code that runs only on the
CPU. Everything else is computed on the device of the table.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.validation import (
    _check_n_features,
    _check_y,
    check_consistent_length,
    validate_data,
)

from tamis._format import format_count
from tamis._frame import collected
from tamis._namespace import (
    Place,
    computing_on,
    device_asked,
    double,
    host,
    is_elsewhere,
    is_out_of_memory,
    namespace,
    on_host,
)
from tamis.exceptions import DeviceWarning, InvalidTable

#: Value of ``y`` that makes scikit-learn validate only ``X``.
_NO_TARGET = "no_validation"


def place_of(X: Any) -> Place | None:
    """Return the device of a table, or None for the CPU with numpy.

    A tensor on the CPU becomes a numpy array, unless ``array_api_dispatch`` of scikit-learn is set.

    Parameters
    ----------
    X : table
        Table of any kind.
    """
    if not is_elsewhere(X) or (on_host(X) and not get_config()["array_api_dispatch"]):
        return None
    _check_plain("A search", X)
    return Place.of(X)


@contextmanager
def where_it_is(name: str, X: Any, y: Any, params: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the table, target and metadata in host memory.

    Inside this context, kernels are computed on the device of the table.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    X : table
    y : target
    params : dict
        Per-row metadata such as weights.
    """
    place = place_of(X)
    held = {key: as_numpy(name, value) for key, value in params.items()}
    with computing_on(place):
        yield as_numpy(name, X), as_numpy(name, y), held


def warn_of_device(selector: Any, device: str) -> None:
    """Warn if no part of a method runs on the requested device.

    Parameters
    ----------
    selector : Selection
    device : str
        The device as the user wrote it.
    """
    parts = [selector, *selector.get_params().values()]
    if not any(getattr(part, "runs_on_device", False) for part in parts):
        warn(
            f"{type(selector).__name__} runs on the CPU, because it cannot use {device}. HSIC, "
            "ParzenInformation, KwakInformation, WeightNorm and sensitivities of SVMs with "
            "kernel='rbf', MRMR and its relatives, PairInformation, NewtonSVC and NewtonSVR "
            "can.",
            DeviceWarning,
            stacklevel=3,
        )


def as_numpy(name: str, x: Any) -> Any:
    """Convert arrays of other libraries to numpy, and collect lazy frames.

    All other objects are returned unchanged.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    x : array, or anything
    """
    if x is None or type(x) is np.ndarray:
        return x
    if not is_elsewhere(x):
        return collected(x)
    _check_plain(name, x)
    return host(x)


def _check_plain(name: str, x: Any) -> None:
    """Refuse sparse, complex, quantized and meta tensors."""
    if str(getattr(x, "layout", "torch.strided")) != "torch.strided":
        raise InvalidTable(
            f"{name} needs a dense tensor, not one of layout {x.layout}. Write X.to_dense(), or "
            "give a sparse array of SciPy if the criterion takes one."
        )
    if "complex" in str(x.dtype):
        raise InvalidTable(
            f"{name} needs real numbers, not {x.dtype}. Give X.real, or real and imaginary parts "
            "as columns."
        )
    if getattr(x, "is_meta", False):
        raise InvalidTable(
            f"{name} needs numbers, but a tensor of device='meta' holds none. Give X on a device "
            "that does, such as 'cpu' or 'cuda'."
        )
    if getattr(x, "is_quantized", False):
        raise InvalidTable(f"{name} needs plain numbers, not {x.dtype}. Write X.dequantize().")


def validated(estimator: Any, X: Any, y: Any = _NO_TARGET, **options: Any) -> Any:
    """Validate data as scikit-learn does, including arrays of other libraries.

    With ``array_api_dispatch``, scikit-learn validates these arrays itself. Otherwise they stay on
    their device, in double precision, and the target is moved to the host.

    Parameters
    ----------
    estimator : estimator
        Estimator that receives ``n_features_in_``.
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Omit it to validate only ``X``.
    **options
        Options of ``validate_data``: ``reset``, ``y_numeric``.
    """
    if not is_elsewhere(X) or get_config()["array_api_dispatch"]:
        if not get_config()["array_api_dispatch"]:
            y = as_numpy(type(estimator).__name__, y)
        return validate_data(estimator, X, y, dtype="numeric", **options)
    X = _check_table(type(estimator).__name__, X)
    _check_n_features(estimator, X, reset=options.get("reset", True))
    if isinstance(y, str):
        return X
    target = _check_y(np.asarray(as_numpy("y", y)), y_numeric=options.get("y_numeric", False))
    check_consistent_length(np.broadcast_to(0, X.shape[0]), target)
    return X, target


def _check_table(name: str, X: Any) -> Any:
    """Return the array in double precision.

    Refuse missing values, infinity and arrays that are not two-dimensional.
    """
    _check_plain(name, X)
    X = double(X.detach() if hasattr(X, "detach") else X)
    if len(X.shape) != 2 or not all(X.shape):
        raise InvalidTable(
            f"{name} needs an array of rows and columns, not one of shape {tuple(X.shape)}. Write "
            "X[:, None] for a single column."
        )
    xp = namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        raise InvalidTable(
            f"{name} needs a number in every entry, but X has NaN or infinity. Impute them, or "
            "leave these rows out."
        )
    return X


def columns_of(X: Any, support: NDArray[np.bool_], name: str) -> Any:
    """Return the selected columns of an array of another library, on its device.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Array with any numeric type.
    support : array of bool
        Mask of the selected columns.
    name : str
        Name of the selector, for error messages.
    """
    if len(X.shape) != 2 or X.shape[1] != len(support):
        raise InvalidTable(
            f"X has shape {tuple(X.shape)}, but {name} is expecting {len(support)} features as "
            "input. Give the columns that it was fitted to."
        )
    kept = namespace(X).asarray(np.flatnonzero(support), device=X.device)
    return namespace(X).take(X, kept, axis=1)


def out_of_memory(selection: Any, error: Exception, n_steps: int) -> str:
    """Return the message for a device that ran out of memory, or "" for any other error.

    Parameters
    ----------
    selection : Selection
        The selector that ran.
    error : Exception
    n_steps : int
        Number of completed steps.
    """
    if not is_out_of_memory(error):
        return ""
    name, device, text = type(selection).__name__, device_asked(), " ".join(str(error).split())
    found = re.search(r"(?:allocate|allocating) ([\d.,]+ \w+)", text)
    free = re.search(r"of which ([\d.,]+ \w+) is free", text)
    wanted = f"it needed {found[1]} more" if found else "it needed more than was free"
    left = f", and {free[1]} were free" if free else ""
    where = "its device" if device is None else device.name
    params = {key.split("__")[-1] for key in selection.get_params()}
    smaller = "write precision='single', " if "precision" in params else ""
    smaller += "write n_landmarks=4096, " if "n_landmarks" in params else ""
    done = (
        f"{format_count(n_steps, 'step')} made so far {'is' if n_steps == 1 else 'are'} in record_"
    )
    advice = f"The {done}: continue by resume(X, y, record=...) with" if n_steps else "Give"
    return (
        f"{name} ran out of memory on {where}: {wanted}{left}. {advice} a numpy array, which is "
        f"processed on the CPU; or {smaller}give fewer rows."
    )
