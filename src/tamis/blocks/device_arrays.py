"""Tables that are arrays of torch, CuPy or another library: at the door, and back where they were.

A search holds one copy on the host, for its record, its groups and what cannot run elsewhere; what
can is computed on the device of the table.
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

#: Types that scikit-learn checks by itself where it is told to.
_NO_TARGET = "no_validation"


def place_of(X: Any) -> Place | None:
    """Where what a table is scored by is to be computed: on its device, where it is on one.

    A tensor in the memory of the processor is taken as numpy takes it, unless
    ``array_api_dispatch`` of scikit-learn says that arrays keep their library.

    Parameters
    ----------
    X : table
        Of any kind.
    """
    if not is_elsewhere(X) or (on_host(X) and not get_config()["array_api_dispatch"]):
        return None
    _check_plain("A search", X)
    return Place.of(X)


@contextmanager
def where_it_is(name: str, X: Any, y: Any, params: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Table, target and metadata on the host, while kernels are computed where the table was.

    Parameters
    ----------
    name : str
        Who asks, for sentences.
    X : table
    y : target
    params : dict
        Metadata of rows.
    """
    place = place_of(X)
    held = {key: as_numpy(name, value) for key, value in params.items()}
    with computing_on(place):
        yield as_numpy(name, X), as_numpy(name, y), held


def warn_of_device(selector: Any, device: str) -> None:
    """Say that nothing of a method runs on the device that was asked for.

    Parameters
    ----------
    selector : Selection
    device : str
        How it was asked for.
    """
    parts = [selector, *selector.get_params().values()]
    if not any(getattr(part, "runs_on_device", False) for part in parts):
        warn(
            f"Nothing of {type(selector).__name__} runs on {device}: it runs on the processor. "
            "HSIC, ParzenInformation, KwakInformation, WeightNorm and sensitivities of machines "
            "with kernel='rbf', MRMR and its relatives, PairInformation, NewtonSVC and NewtonSVR "
            "do.",
            DeviceWarning,
            stacklevel=3,
        )


def as_numpy(name: str, x: Any) -> Any:
    """Numbers of another library as a numpy array; anything else as it is.

    A lazy frame is collected.

    Parameters
    ----------
    name : str
        Who asks, for the sentence.
    x : array, or anything
    """
    if x is None or type(x) is np.ndarray:
        return x
    if not is_elsewhere(x):
        return collected(x)
    _check_plain(name, x)
    return host(x)


def _check_plain(name: str, x: Any) -> None:
    """Refuse what is no array of real numbers that are held."""
    if str(getattr(x, "layout", "torch.strided")) != "torch.strided":
        raise InvalidTable(
            f"{name} needs a dense tensor, not one of layout {x.layout}. Write X.to_dense(), or "
            "give a sparse array of SciPy where the criterion takes one."
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
    """What ``validate_data`` of scikit-learn answers, for arrays of other libraries too.

    Under ``array_api_dispatch`` it sees to them itself; without, they stay where they are, in
    double precision, and a target comes to the host.

    Parameters
    ----------
    estimator : estimator
        Which learns the number of columns.
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Left out where there is none.
    **options
        For ``validate_data``: ``reset``, ``y_numeric``.
    """
    if not is_elsewhere(X) or get_config()["array_api_dispatch"]:
        if not get_config()["array_api_dispatch"]:
            y = as_numpy(type(estimator).__name__, y)
        return validate_data(estimator, X, y, dtype="numeric", **options)
    X = _checked(type(estimator).__name__, X)
    _check_n_features(estimator, X, reset=options.get("reset", True))
    if isinstance(y, str):
        return X
    target = _check_y(np.asarray(as_numpy("y", y)), y_numeric=options.get("y_numeric", False))
    check_consistent_length(np.broadcast_to(0, X.shape[0]), target)
    return X, target


def _checked(name: str, X: Any) -> Any:
    """The array in double precision, with rows, columns and no gap."""
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
            f"{name} needs a number in every entry, but X has NaN or infinity in it. Fill in or "
            "leave out these rows."
        )
    return X


def columns_of(X: Any, support: NDArray[np.bool_], name: str) -> Any:
    """The columns that are kept, of an array of another library, where it is.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of any type of number.
    support : array of bool
    name : str
        Who keeps them.
    """
    if len(X.shape) != 2 or X.shape[1] != len(support):
        raise InvalidTable(
            f"X has shape {tuple(X.shape)}, but {name} is expecting {len(support)} features as "
            "input. Give the columns that it was fitted to."
        )
    kept = namespace(X).asarray(np.flatnonzero(support), device=X.device)
    return namespace(X).take(X, kept, axis=1)


def out_of_memory(selection: Any, error: Exception, n_steps: int) -> str:
    """What is said where a device ran out of memory; empty where an error is another one.

    Parameters
    ----------
    selection : Selection
        Who was at work.
    error : Exception
    n_steps : int
        Steps that were made before.
    """
    if not is_out_of_memory(error):
        return ""
    name, place, said = type(selection).__name__, device_asked(), " ".join(str(error).split())
    found = re.search(r"(?:allocate|allocating) ([\d.,]+ \w+)", said)
    free = re.search(r"of which ([\d.,]+ \w+) is free", said)
    wanted = f"it needed {found[1]} more" if found else "what it needed was not free"
    left = f", and {free[1]} were free" if free else ""
    where = "its device" if place is None else place.name
    params = {key.split("__")[-1] for key in selection.get_params()}
    smaller = "write precision='single', " if "precision" in params else ""
    smaller += "write n_landmarks=4096, " if "n_landmarks" in params else ""
    done = (
        f"{format_count(n_steps, 'step')} made so far {'is' if n_steps == 1 else 'are'} in record_"
    )
    go_on = f"The {done}: go on by resume(X, y, record=...) with" if n_steps else "Give"
    return (
        f"{name} ran out of memory on {where}: {wanted}{left}. {go_on} a table of numpy, which is "
        f"computed with on the processor; or {smaller}give fewer rows."
    )
