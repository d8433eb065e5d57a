"""Conversion of the state of an interrupted training to JSON. Arrays become base64 text."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import InvalidTable

#: State of a training. It contains only types that JSON supports.
State: TypeAlias = dict[str, Any]

#: Data types that an encoded array may have.
KINDS = ("<f8", "<i8", "|b1")


def packed(array: NDArray[Any]) -> State:
    """Encode an array for JSON. The encoding is exact, including NaN."""
    kind = {"f": "<f8", "i": "<i8", "b": "|b1"}[array.dtype.kind]
    numbers = np.ascontiguousarray(array, dtype=kind).tobytes()
    return {"kind": kind, "shape": list(array.shape), "numbers": b64encode(numbers).decode()}


def unpacked(plain: Any) -> NDArray[Any]:
    """Decode an array that :func:`packed` encoded.

    >>> unpacked(packed(np.array([[1.5, np.nan]])))
    array([[1.5, nan]])
    """
    try:
        kind, shape = plain["kind"], tuple(int(n) for n in plain["shape"])
        numbers = b64decode(plain["numbers"], validate=True)
        is_valid = kind in KINDS and len(numbers) == prod(shape) * np.dtype(kind).itemsize
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error):
        is_valid = False
    if not is_valid:
        raise InvalidTable(
            "The record contains a damaged array: its numbers do not fit its shape. Fit again "
            "without the record."
        )
    return np.frombuffer(numbers, dtype=kind).reshape(shape).copy()


def packed_all(arrays: Mapping[str, NDArray[Any]]) -> State:
    """Encode a mapping from names to arrays."""
    return {name: packed(array) for name, array in arrays.items()}


def unpacked_all(plain: Any, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Decode a mapping from names to arrays. If ``names`` are given, decode only these."""
    return {name: unpacked(plain[name]) for name in (plain if names is None else names)}
