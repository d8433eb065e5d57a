"""The command-line tool ``tamis``. It needs the extra ``app``."""

import gc
import sys
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["main"]

#: Number of new objects between two garbage collections. Python's default is 700. With it, half a
#: million imported objects and the columns of a wide table are scanned again and again. A filter on
#: 10^5 columns spends a fifth of its time on this.
COLLECTED_EVERY = 50_000


def main() -> NoReturn:
    """Run the command ``tamis``."""
    for needed in ("polars", "rich", "typer"):  # only checked, because --help does not need polars
        if find_spec(needed) is None:
            sys.stderr.write(
                f"tamis: the command line needs {needed}, which is not installed: "
                'write pip install "tamis[app]".\n'
            )
            sys.exit(2)
    gc.set_threshold(COLLECTED_EVERY)
    try:
        from tamis.cli.app import app

        app(prog_name="tamis")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()  # else Python scans all imported objects again when it exits
    sys.exit(0)
