"""Checks that a file fits into memory, before it is read."""

from math import prod
from typing import IO
from zipfile import ZipFile

from numpy.lib import format as npy

from tamis._format import format_bytes
from tamis._memory import free_memory
from tamis.exceptions import InvalidTable

#: Number of bytes that a number takes in memory, because all arrays are converted to float64.
NUMBER = 8

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def check_fits(where: str, n_bytes: int) -> None:
    """Raise an error if a table needs more memory than is free."""
    free = free_memory()
    if free is not None and n_bytes > free:
        raise InvalidTable(
            f"{where} holds {format_bytes(n_bytes)} of numbers, more than the "
            f"{format_bytes(free)} of memory that this machine has free. Leave out rows or columns."
        )


def check_archive(where: str, stream: IO[bytes]) -> None:
    """Raise an error if a NumPy archive needs too much memory or has inconsistent headers.

    Only the headers of the arrays are read. The header in a small archive may declare any size, and
    a compressed archive may really contain that much.
    """
    needed = 0
    with ZipFile(stream) as archive:
        for member in archive.infolist():
            with archive.open(member) as array:
                version = npy.read_magic(array)
                if version not in HEADERS:
                    raise ValueError(f"{member.filename} has an unknown header")
                shape, _, dtype = HEADERS[version](array)
                if prod(shape) * dtype.itemsize > member.file_size:
                    raise ValueError(f"{member.filename} claims more numbers than it holds")
                needed += prod(shape) * max(dtype.itemsize, NUMBER)
    stream.seek(0)
    check_fits(where, needed)
