"""Run the benchmark: ``python -m tamis_book.benchmark --methods mrmr --tables wine``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from tamis.exceptions import InvalidParameter, TamisError
from tamis_book.benchmark.contestant import CAP
from tamis_book.benchmark.methods import METHODS, Method, find_method, is_installed
from tamis_book.benchmark.pages import write_pages
from tamis_book.benchmark.result_files import RESULTS, CellResult
from tamis_book.benchmark.runner import GROUPS, N_SPLITS, Task, run
from tamis_book.benchmark.tables import table_names

KINDS = ["error", "noise", "bootstrap"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.list:
            _print_names()
        else:
            _run(asked)
    except TamisError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted. Finished cells are saved; run again to continue.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tamis_book.benchmark", description=__doc__)
    add = parser.add_argument
    several: dict[str, Any] = {"nargs": "+", "metavar": "NAME"}
    add("--methods", default=GROUPS, help="methods, groups or module:function", **several)
    add("--tables", help="tables [default: all]", **several)
    add("--kinds", nargs="+", choices=KINDS, default=KINDS, help="kinds of cells")
    add("--splits", type=int, default=N_SPLITS, help="number of splits [default: 5]")
    add("--cap", type=float, default=CAP, help="processor seconds per selection [default: 300]")
    add("--folder", type=Path, default=RESULTS, help="folder of the result files")
    add("--pages", type=Path, metavar="FOLDER", help="write the pages to a folder")
    add("--list", action="store_true", help="list methods and tables")
    return parser


def _print_names() -> None:
    for name, method in METHODS.items():
        note = "" if is_installed(method) else f" (pip install {method.package})"
        print(f"{name:30}{method.group:10}{method.package}{note}")
    print("\ntables:", *table_names())


def choose_methods(names: Sequence[str]) -> dict[str, Method]:
    """Return the methods of the given names. A name with a colon is a function to import.

    Methods of groups are left out if their package is not installed.
    """
    chosen: dict[str, Method] = {}
    for name in names:
        if ":" in name:
            chosen[name.partition(":")[2]] = Method(_import(name), "model", "tamis")
            continue
        found = find_method(name)
        if found == [name] and not is_installed(METHODS[name]):
            raise InvalidParameter(
                f"{name} needs the package {METHODS[name].package}, which is not installed. "
                "Install it, or leave the method out."
            )
        chosen |= {one: METHODS[one] for one in found if is_installed(METHODS[one])}
    return chosen


def _import(name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"--methods needs a function or selector to import, and {name!r} cannot be imported "
            f"({error}). Write module:function, with module.py in the current folder."
        ) from error
    finally:
        sys.path.pop(0)


def _run(asked: argparse.Namespace) -> None:
    methods = choose_methods(asked.methods)
    how = {"kinds": asked.kinds, "splits": asked.splits, "cap": asked.cap}
    run(methods, asked.tables, asked.folder, report=_print_cell, **how)
    if asked.pages:
        write_pages(asked.pages, asked.folder)


def _print_cell(task: Task, cell: CellResult) -> None:
    note = cell.failure or f"{cell.seconds:.2f} s"
    print(f"{task.table:16}{task.kind:10}{task.split}  {task.method:28}{note}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
