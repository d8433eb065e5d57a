"""Atomic replacement of files."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile


def replace_text(path: Path, text: str) -> None:
    """Replace the contents of a file with text atomically. On an error the file is unchanged."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, content: bytes) -> None:
    """Replace the contents of a file atomically. On an error the file is unchanged."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
        try:
            draft.write(content)
            draft.close()
            os.chmod(draft.name, 0o666 & ~_umask())
            os.replace(draft.name, path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise


def can_write(folder: Path) -> bool:
    """Whether a file can be created in a folder. A test file is created and removed."""
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _umask() -> int:
    """Return the umask of this process. It can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
