"""Random bad tables for random methods: ``python -m fuzz --count 1000 --seed 3``.

Each failure is one line that starts with the arguments to repeat it. The last line has the counts.
"""

import argparse
import sys
from collections import Counter
from itertools import islice
from time import monotonic

from fuzz.methods import WAYS
from fuzz.verdict import Case
from fuzz.watching import PATIENCE, Outcome, outcomes


def main() -> None:
    """Run cases until the count or the time limit; exit with an error if any failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--count", type=int, help="number of cases [default: one hour]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--kind", choices=sorted(WAYS), help="only recipes, searches or paths")
    parser.add_argument("--seconds", type=float, default=3600.0, help="time limit")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="time limit of a case")
    parser.add_argument("--only", type=int, help="run only this case, in this process")
    asked = parser.parse_args()
    if asked.only is not None:
        case = Case(asked.seed, asked.only, asked.kind)
        sys.exit(_line(Outcome(str(case), *case.run())))
    until = monotonic() + asked.seconds
    counts: Counter[str] = Counter()
    cases = outcomes(asked.seed, asked.first, asked.kind, asked.patience)
    for outcome in islice(cases, asked.count):
        counts["failed" if outcome.wrong else outcome.ended] += 1
        if outcome.wrong:
            print(_line(outcome), flush=True)
        if monotonic() > until:
            break
    ends = ", ".join(f"{count} {ended}" for ended, count in counts.most_common())
    print(f"{counts.total()} cases, {counts['failed']} failures: {ends}")
    sys.exit(counts["failed"] > 0)


def _line(outcome: Outcome) -> str:
    return f"{outcome.case} -> {outcome.wrong or outcome.ended}".encode(
        "ascii", "backslashreplace"
    ).decode()


if __name__ == "__main__":
    main()
