"""Checks of a device without pytest: ``PYTHONPATH=src python3 -m tests.gpu --device cuda``."""

import sys
import traceback
from argparse import ArgumentParser
from time import perf_counter

from tests.gpu.checks import CHECKS, name_of, run_check


def main() -> None:
    """Print a line for each check. Exit with 1 if one fails."""
    parser = ArgumentParser(prog="python -m tests.gpu")
    parser.add_argument("--device", default="cuda", help="such as cuda, or cpu for torch on a CPU")
    parser.add_argument("checks", nargs="*", help="parts of their names; all by default")
    asked = parser.parse_args()
    failed, lines = [], sys.stdout.write
    lines(f"{name_of(asked.device)}\n")
    for check in CHECKS:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        if asked.checks and not any(word in check.__name__ for word in asked.checks):
            continue
        start = perf_counter()
        try:
            run_check(check, asked.device)
        except Exception as error:
            failed.append(name)
            lines(f"  FAILED {name}: {type(error).__name__}: {error}\n")
            traceback.print_exc()
        else:
            lines(f"  passed {name} ({perf_counter() - start:.1f} s)\n")
    if failed:
        raise SystemExit(f"{len(failed)} of {len(CHECKS)} checks failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
