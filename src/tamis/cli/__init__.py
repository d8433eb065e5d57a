"""The command line: arguments in, text out. It needs the extra ``app``."""

import gc
import sys
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["main"]

#: Objects made between two searches for unused ones. Python's 700 has the half million that are
#: imported, and the columns of a wide table, looked through again and again: a fifth of the time of
#: a filter on 10^5 columns.
COLLECTED_EVERY = 50_000


def main() -> NoReturn:
    """Entry point of the command ``tamis``."""
    for needed in ("polars", "rich", "typer"):  # looked for, not imported: --help needs no polars
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
    sys.exit(0)
