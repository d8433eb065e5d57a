"""Objects that processes of this machine share: written to files once, read by each once."""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cloudpickle
import numpy as np

#: Bytes from which an array is mapped into the memory of each process rather than read into it, as
#: joblib does with what it sends.
MAPPED = 1 << 20


class Filed:
    """Something that was written to a folder, for whoever reads it."""

    def __init__(self, folder: Path, thing: Any):
        folder.mkdir()
        self.folder = folder
        large: list[Any] = []

        def stays_inside(buffer: Any) -> bool:
            if buffer.raw().nbytes < MAPPED:
                return True
            large.append(buffer)
            return False

        with open(folder / "object", "wb") as file:
            cloudpickle.Pickler(file, protocol=5, buffer_callback=stays_inside).dump(thing)
        for number, buffer in enumerate(large):
            (folder / f"buffer-{number}").write_bytes(buffer.raw())

    @property
    def inside(self) -> Any:
        """What was written; a process reads it once."""
        return _read(self.folder)


@contextmanager
def filed(things: Sequence[Any]) -> Iterator[list[Filed]]:
    """Write objects to files, which are gone when the context ends.

    >>> with filed([np.arange(3), "text"]) as sent:
    ...     [one.inside for one in sent]
    [array([0, 1, 2]), 'text']
    """
    # files that a process still maps stay until it is done with them, where systems allow it
    with TemporaryDirectory(prefix="tamis-", ignore_cleanup_errors=True) as folder:
        yield [Filed(Path(folder, str(number)), thing) for number, thing in enumerate(things)]


#: What this process has read of the latest context: of one that ended nothing is held any more.
_KNOWN: dict[Path, Any] = {}


def _read(folder: Path) -> Any:
    if folder not in _KNOWN:
        for other in [known for known in _KNOWN if known.parent != folder.parent]:
            del _KNOWN[other]
        # written to in the process alone, should an estimator work in place
        n_buffers = len(list(folder.glob("buffer-*")))
        buffers = [np.memmap(folder / f"buffer-{k}", mode="c") for k in range(n_buffers)]
        with open(folder / "object", "rb") as file:
            _KNOWN[folder] = pickle.load(file, buffers=buffers)
    return _KNOWN[folder]
