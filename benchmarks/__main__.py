"""Run benchmarks one after the other, and compare their ratios with the stored ratios.

python -m benchmarks            all that measure ratios; ratios.toml is replaced
python -m benchmarks relief     some of them; their ratios are replaced
python -m benchmarks --check    the short ones; a ratio below 0.7 of the stored one is an error
"""

import argparse
import platform
import tomllib
from datetime import date
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import benchmarks
from benchmarks import MEASURED

RATIOS = Path(__file__).with_name("ratios.toml")
#: Smallest accepted share of the stored ratio. Other programs disturb short measurements.
TOLERATED = 0.7
HEADER = """\
# Processor time of another program divided by that of tamis for the same task, on one thread.
# Written by `make bench`; `make bench-check` measures the short ones again.
"""


def main() -> None:
    """Run the benchmarks; exit with an error if a ratio is too small."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="names of benchmarks (default: those of ratios)")
    parser.add_argument("--check", action="store_true", help="run the short ones; write nothing")
    options = parser.parse_args()
    missed = []
    for name in options.modules or [module.name for module in iter_modules(benchmarks.__path__)]:
        module = None if name.startswith("_") else import_module(f"benchmarks.{name}")
        run = getattr(module, "short" if options.check else "main", None)
        measures = getattr(module, "compare", None) is benchmarks.compare
        if run is None or not (measures or options.modules):
            continue
        try:
            run()
        except SystemExit as error:
            missed += [str(error)] * (not options.check)
        if not options.check:
            write()  # after each, so that a failure of the next loses nothing
    if options.check:
        missed = slower()
    if missed:
        raise SystemExit("; ".join(missed))


def stored() -> list[dict[str, object]]:
    """Return the ratios in the file."""
    return tomllib.loads(RATIOS.read_text())["ratio"] if RATIOS.exists() else []


def slower() -> list[str]:
    """Return a sentence for each ratio of this run that is far below the stored one."""
    before = {row["task"]: float(row["ratio"]) for row in stored()}
    return [
        f"{now.task}: {now.ratio:.3g} times {now.peer}, {before[now.task]:.3g} when stored"
        for now in MEASURED
        if now.ratio < TOLERATED * before.get(now.task, 0)
    ]


def write() -> None:
    """Store the ratios of this run in place of earlier ones."""
    today, machine = date.today().isoformat(), processor()
    rows = {row["task"]: row for row in stored()}
    for now in MEASURED:
        rows[now.task] = now._asdict() | {"date": today, "processor": machine}
    RATIOS.write_text(HEADER + "".join(entry(row) for _, row in sorted(rows.items())))


def entry(row: dict[str, object]) -> str:
    """Return one ratio in TOML."""
    lines = []
    for key, value in row.items():
        number = f"{value:.3g}" if isinstance(value, float) else value
        lines.append(f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {number}")
    return "\n[[ratio]]\n" + "\n".join(lines) + "\n"


def processor() -> str:
    """Return the name of the processor."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


main()
