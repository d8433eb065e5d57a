"""The command line: arguments in, text out. It needs the extra ``app``."""

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Entry point of the command ``tamis``."""
    try:
        import polars  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.stderr.write(
            f"tamis: the command line needs {error.name}, which is not installed: "
            'write pip install "tamis[app]".\n'
        )
        sys.exit(2)
    try:
        from tamis.cli.app import app

        app(prog_name="tamis")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
