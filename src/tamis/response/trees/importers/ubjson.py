"""Universal Binary JSON, as far as XGBoost writes it; lists of numbers become arrays."""

from struct import Struct
from typing import Any

import numpy as np

LENGTH = Struct(">q")
#: Types of numbers by their marks; all are big-endian.
NUMBERS: dict[int, np.dtype[Any]] = {
    ord("i"): np.dtype(">i1"),
    ord("U"): np.dtype(">u1"),
    ord("I"): np.dtype(">i2"),
    ord("l"): np.dtype(">i4"),
    ord("L"): np.dtype(">i8"),
    ord("d"): np.dtype(">f4"),
    ord("D"): np.dtype(">f8"),
}
CONSTANTS = {ord("T"): True, ord("F"): False, ord("Z"): None}


def decoded(data: bytes) -> Any:
    """The one value that the bytes stand for.

    >>> decoded(b"{L" + LENGTH.pack(1) + b"a[$d#L" + LENGTH.pack(2) + bytes(8) + b"}")
    {'a': array([0., 0.], dtype=float32)}
    """
    return _value(data, 0)[0]


def _value(data: bytes, at: int) -> tuple[Any, int]:
    mark = data[at]
    if mark in NUMBERS:
        dtype = NUMBERS[mark]
        end = at + 1 + dtype.itemsize
        return np.frombuffer(data, dtype, 1, at + 1)[0].item(), end
    if mark in CONSTANTS:
        return CONSTANTS[mark], at + 1
    if mark == ord("S"):
        return _text(data, at + 1)
    if mark == ord("{"):
        return _object(data, at + 1)
    if mark == ord("["):
        return _list(data, at + 1)
    raise ValueError(f"UBJSON has no value that begins with {chr(mark)!r}")


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A length, itself a value, and so many bytes."""
    start = at + 9
    if data[at] == ord("L"):  # always, so far
        (length,) = LENGTH.unpack_from(data, at + 1)
    else:
        length, start = _value(data, at)
    return data[start : start + length].decode(), start + length


def _object(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    found = {}
    while data[at] != ord("}"):
        name, at = _text(data, at)
        found[name], at = _value(data, at)
    return found, at + 1


def _list(data: bytes, at: int) -> tuple[Any, int]:
    dtype = None
    if data[at] == ord("$"):
        dtype = NUMBERS[data[at + 1]]
        at += 2
    if data[at] == ord("#"):
        count, at = _value(data, at + 1)
        if dtype is not None:
            array = np.frombuffer(data, dtype, count, at)
            return array.astype(dtype.newbyteorder("=")), at + array.nbytes
        return _items(data, at, count)
    items = []
    while data[at] != ord("]"):
        item, at = _value(data, at)
        items.append(item)
    return items, at + 1


def _items(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(count):
        item, at = _value(data, at)
        items.append(item)
    return items, at
