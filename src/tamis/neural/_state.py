"""Training that can be put down and taken up again: its state in what JSON can say."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import InvalidTable

#: What training has come to: numbers, strings, lists and dictionaries.
State: TypeAlias = dict[str, Any]

#: Kinds of numbers that a packed array may have.
KINDS = ("<f8", "<i8", "|b1")


def packed(array: NDArray[Any]) -> State:
    """An array as text: exact, nan included, and half as long as its digits would be."""
    kind = {"f": "<f8", "i": "<i8", "b": "|b1"}[array.dtype.kind]
    numbers = np.ascontiguousarray(array, dtype=kind).tobytes()
    return {"kind": kind, "shape": list(array.shape), "numbers": b64encode(numbers).decode()}


def unpacked(plain: Any) -> NDArray[Any]:
    """The array that :func:`packed` wrote.

    >>> unpacked(packed(np.array([[1.5, np.nan]])))
    array([[1.5, nan]])
    """
    try:
        kind, shape = plain["kind"], tuple(int(n) for n in plain["shape"])
        numbers = b64decode(plain["numbers"], validate=True)
        whole = kind in KINDS and len(numbers) == prod(shape) * np.dtype(kind).itemsize
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error):
        whole = False
    if not whole:
        raise InvalidTable(
            "The record holds an array that is damaged: its numbers do not fit its shape. Fit "
            "again without the record."
        )
    return np.frombuffer(numbers, dtype=kind).reshape(shape).copy()


def packed_all(arrays: Mapping[str, NDArray[Any]]) -> State:
    """Several arrays by their names."""
    return {name: packed(array) for name, array in arrays.items()}


def unpacked_all(plain: Any, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Arrays by their names; all of them, or those that are named."""
    return {name: unpacked(plain[name]) for name in (plain if names is None else names)}
