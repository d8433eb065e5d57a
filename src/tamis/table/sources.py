"""Where the bytes of a table come from: a file, a compressed one, or standard input."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from tamis._format import did_you_mean
from tamis.datasets.memory import check_fits
from tamis.exceptions import InvalidTable
from tamis.table.formats import BEGINNINGS, COMPRESSIONS, EXTENSIONS

#: How a user writes standard input.
STDIN = "-"
#: Bytes that are unpacked at a time.
PIECE = 1 << 22


@dataclass(frozen=True)
class TableSource:
    """A file to read, what to call it in sentences, and what its format is, where that shows."""

    path: Path
    name: str
    format: str | None

    def __str__(self) -> str:
        return self.name

    def open(self, *args: Any, **options: Any) -> IO[Any]:
        """The file, opened as :meth:`pathlib.Path.open` does."""
        return self.path.open(*args, **options)


@contextmanager
def opened(where: str | Path) -> Iterator[TableSource]:
    """The file of a path, unpacked where it is compressed; ``-`` stands for standard input."""
    if str(where) == STDIN:
        with TemporaryDirectory() as folder:
            yield _from_stdin(Path(folder))
        return
    path = Path(where)
    _check_file(path)
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression is None:
        yield TableSource(path, str(path), EXTENSIONS.get(path.suffix.lower()))
        return
    with TemporaryDirectory() as folder:
        target = Path(folder) / "table"
        _unpack(path, compression, target, str(path))
        yield TableSource(target, str(path), EXTENSIONS.get(Path(path.stem).suffix.lower()))


def _check_file(path: Path) -> None:
    if not path.exists():
        raise InvalidTable(f"There is no file {path}.{_near_files(path)}")
    if path.is_dir():
        raise InvalidTable(f"{path} is a folder. Give the file with the table.")
    if path.is_file() and path.stat().st_size == 0:
        raise InvalidTable(f"{path} is empty. Give a file with a table.")


def _near_files(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" There is no folder {folder} either."
    return did_you_mean(path.name, (file.name for file in folder.iterdir() if file.is_file()))


def _from_stdin(folder: Path) -> TableSource:
    """What stands on standard input, as a file: tables are read more than once."""
    name, path = "standard input", folder / "input"
    with path.open("wb") as target:
        _copy(sys.stdin.buffer, target, name)
    kind = _told_by_beginning(path)
    if kind in COMPRESSIONS.values():
        _unpack(path, kind, folder / "table", name)
        path = folder / "table"
        kind = _told_by_beginning(path)
    if not path.stat().st_size:
        raise InvalidTable("Standard input is empty. Write tamis select - < FILE.")
    return TableSource(path, name, kind)


def _told_by_beginning(path: Path) -> str:
    with path.open("rb") as stream:
        first = stream.read(64)
    if first.lstrip().lower().startswith((b"@relation", b"%")):
        return "arff"
    return next((kind for bytes_, kind in BEGINNINGS.items() if first.startswith(bytes_)), "csv")


def _unpack(path: Path, compression: str, target: Path, name: str) -> None:
    """Write what a compressed file holds; a few bytes may stand for more than the machine has."""
    from pyarrow import CompressedInputStream, OSFile

    try:
        with (
            OSFile(str(path)) as raw,
            CompressedInputStream(raw, compression) as stream,
            target.open("wb") as out,
        ):
            _copy(stream, out, name)
    except OSError as error:
        raise InvalidTable(
            f"{name} cannot be unpacked as {compression}: {error}. Write the file anew."
        ) from error


def _copy(stream: Any, target: IO[bytes], name: str) -> None:
    n_bytes = 0
    while piece := stream.read(PIECE):
        n_bytes += target.write(piece)
        check_fits(name, n_bytes)
