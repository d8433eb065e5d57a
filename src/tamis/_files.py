"""Files that are there whole or not at all."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile


def replace_text(path: Path, text: str) -> None:
    """Put a complete text in place of what was there, or leave it as it was."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, content: bytes) -> None:
    """Put a complete file in place of what was there, or leave it as it was."""
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
    """Whether a file can be made in a folder, by making one: rights alone do not tell it."""
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _umask() -> int:
    """The rights that this process withholds, which can only be read by setting them."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
