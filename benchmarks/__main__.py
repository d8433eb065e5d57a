"""All benchmarks, one after the other: ``python -m benchmarks``."""

from importlib import import_module
from pkgutil import iter_modules

import benchmarks


def main() -> None:
    """Run each module's ``main``; exit with an error if any ratio missed its goal."""
    missed = []
    for module in iter_modules(benchmarks.__path__):
        if module.name.startswith("_"):
            continue
        try:
            import_module(f"benchmarks.{module.name}").main()
        except SystemExit as error:
            missed.append(str(error))
    if missed:
        raise SystemExit("; ".join(missed))


main()
