"""Sources of tables: files, compressed files and standard input."""

import codecs
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from tamis._format import did_you_mean
from tamis._memory import check_fits
from tamis.exceptions import InvalidTable

#: File extensions of each format.
_ENDINGS = {
    "csv": ("csv", "txt"),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "excel": ("xlsx", "xls", "xlsb", "ods"),
    "arff": ("arff",),
    "libsvm": ("libsvm", "svmlight", "svm"),
}
#: Allowed values of ``--format``.
FORMATS = tuple(_ENDINGS)
EXTENSIONS = {f".{end}": kind for kind, endings in _ENDINGS.items() for end in endings}

#: Compression for each file extension, which follows the extension of the format.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

#: First bytes of each format and compression, by which input without a file name is recognised.
BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"PK\x03\x04": "excel",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
}

#: Encodings that the first bytes of a text file show. Spreadsheets write such files.
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

#: Path that means standard input.
STDIN = "-"
#: Number of bytes copied at a time.
PIECE = 1 << 22
#: Pattern for text that is not in Windows-1252: unusual characters, three accented letters in a
#: row, or a euro sign or no-break space inside a word.
NOT_WESTERN = re.compile(
    "[^\x00-\x7fÀ-ÏÑ-ÖØ-Üß-ïñ-öø-üÿ£§°µ²€\xa0]|[À-ÿ]{3}|(?<!\\d)\xa0|(?<=[^\\W\\d])€|€(?=[^\\W\\d])"
)


@dataclass(frozen=True)
class TableSource:
    """A file to read, its name in messages, its format if known, and a temporary folder."""

    path: Path
    name: str
    format: str | None
    folder: Path

    def __str__(self) -> str:
        return self.name


@contextmanager
def open_source(where: str | Path) -> Iterator[TableSource]:
    """Yield the file at a path, decompressed if necessary. ``-`` means standard input."""
    # Windows cannot remove files that are still mapped
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if str(where) == STDIN:
            yield _read_stdin(Path(folder))
            return
        path = Path(where)
        _check_file(path)
        readable = _in_utf8(path, Path(folder) / "link")
        compression = COMPRESSIONS.get(path.suffix.lower())
        if compression is None:
            kind = EXTENSIONS.get(path.suffix.lower())
            yield TableSource(readable, str(path), kind, Path(folder))
            return
        unpacked = _unpack(readable, compression, Path(folder) / "table", str(path))
        kind = EXTENSIONS.get(Path(path.stem).suffix.lower())
        yield TableSource(unpacked, str(path), kind, Path(folder))


def as_utf8(source: TableSource, encoding: str | None) -> tuple[TableSource, str | None]:
    """Return a text file in UTF-8, and its encoding if that was detected.

    Windows-1252, which includes Latin-1, is detected if the text looks Western European.
    """
    if encoding is None:
        encoding = _marked_encoding(source.path)
    detected, position = None, _first_error(source) if encoding is None else None
    if encoding is None:
        if position is None:
            return source, None
        encoding = detected = "cp1252"
    path = source.folder / "utf8"
    try:
        with (
            source.path.open(encoding=encoding, newline="") as stream,
            path.open("w", encoding="utf-8", newline="") as copy,
        ):
            while piece := stream.read(PIECE):
                if detected and NOT_WESTERN.search(piece):
                    raise UnicodeError
                copy.write(piece)
    except (LookupError, ValueError):  # no such encoding, or it does not fit
        tried = f"UTF-8 (byte {position})" if detected else f"the encoding {encoding!r}"
        raise InvalidTable(
            f"{source} is not written in {tried}. Write --encoding with its encoding, such as "
            "cp1252, cp1250, mac-roman or utf-16."
        ) from None
    return replace(source, path=path), detected


def _marked_encoding(path: Path) -> str | None:
    """Return the encoding that a byte order mark shows, or None."""
    with path.open("rb") as stream:
        first = stream.read(4)
    return next((name for mark, name in BYTE_ORDER_MARKS.items() if first.startswith(mark)), None)


def _first_error(source: TableSource) -> int | None:
    """Return the number of the first byte that is not UTF-8, or None if all of the file is."""
    decoder, n_bytes = codecs.getincrementaldecoder("utf-8")(), 0
    with source.path.open("rb") as stream:
        while piece := stream.read(PIECE):
            if not n_bytes and b"\0" in piece:
                raise InvalidTable(
                    f"{source} is not a text file. Give a table as CSV, or name its format with "
                    "--format, or its encoding with --encoding."
                )
            start = n_bytes - len(decoder.getstate()[0])
            try:
                decoder.decode(piece, final=len(piece) < PIECE)
            except UnicodeDecodeError as error:
                return start + error.start + 1
            n_bytes += len(piece)
    return None


def _in_utf8(path: Path, link: Path) -> Path:
    """Return a path that libraries can read. A name that is not UTF-8 is replaced with a link."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        link.symlink_to(path.absolute())
        return link
    return path


def _check_file(path: Path) -> None:
    if not path.exists():
        folder, near = path.parent, f" There is no folder {path.parent} either."
        if folder.is_dir():
            files = (file.name for file in folder.iterdir() if file.is_file())
            near = did_you_mean(path.name, files)
        raise InvalidTable(f"There is no file {path}.{near}")
    if path.is_dir():
        raise InvalidTable(f"{path} is a folder. Give the file with the table.")
    if path.is_file() and path.stat().st_size == 0:
        raise InvalidTable(f"{path} is empty. Give a file with a table.")


def _read_stdin(folder: Path) -> TableSource:
    """Write standard input to a file, because tables are read more than once."""
    name, path = "standard input", folder / "input"
    _copy(sys.stdin.buffer, path, name)
    kind = _guess_format(path)
    if kind in COMPRESSIONS.values():
        path = _unpack(path, kind, folder / "table", name)
        kind = _guess_format(path)
    if not path.stat().st_size:
        raise InvalidTable("Standard input is empty. Write tamis select - < FILE.")
    return TableSource(path, name, kind, folder)


def _guess_format(path: Path) -> str:
    """Return the format or compression that the first bytes of a file indicate."""
    with path.open("rb") as stream:
        first = stream.read(64)
    if first.lstrip().lower().startswith((b"@relation", b"%")):
        return "arff"
    return next((kind for bytes_, kind in BEGINNINGS.items() if first.startswith(bytes_)), "csv")


def _unpack(path: Path, compression: str, target: Path, name: str) -> Path:
    """Decompress a file. Raise an error if the content does not fit into memory."""
    from pyarrow import CompressedInputStream, OSFile

    try:
        with OSFile(str(path)) as raw, CompressedInputStream(raw, compression) as stream:
            _copy(stream, target, name)
    except OSError as error:
        raise InvalidTable(
            f"{name} cannot be unpacked as {compression}: {error}. Write the file again."
        ) from error
    return target


def _copy(stream: IO[bytes] | Any, path: Path, name: str) -> None:
    n_bytes = 0
    with path.open("wb") as target:
        while piece := stream.read(PIECE):
            n_bytes += target.write(piece)
            check_fits(name, n_bytes)
