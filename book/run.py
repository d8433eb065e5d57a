"""Full runs of the experiments, the fastest first.

python -m book.run                          # all without results; takes days
python -m book.run thesis-3.1 thesis-3.2    # these two
python -m book.run --most 3600              # those that take at most an hour of processor time

Finished tasks are saved in a store, so that the same command resumes an interrupted run. Each
experiment writes a small file to ``tamis_book/results``, from which ``make docs`` makes its page.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from book.pages import BOOK
from tamis.exceptions import TamisError
from tamis_book.experiment import Experiment
from tamis_book.files import by_cost, names, read
from tamis_book.result_files import RESULTS, results_path, save_results, stored_results
from tamis_book.runner import reproduce


def main(words: Sequence[str]) -> int:
    """Run the experiments, and return the number of those that failed."""
    asked = _parser().parse_args(words)
    RESULTS.mkdir(parents=True, exist_ok=True)
    chosen = by_cost(read(name) for name in asked.names or names())
    failed = 0
    for experiment in chosen:
        n = asked.realizations or experiment.realizations
        seconds = (experiment.cost or 0) * n
        if asked.most is not None and seconds > asked.most:
            print(f"{experiment.name}: skipped, takes about {seconds:.0f} s", flush=True)
        elif not asked.again and is_done(experiment, n):
            print(f"{experiment.name}: has results", flush=True)
        else:
            failed += not compute(experiment, n, asked.store, asked.jobs)
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m book.run", description=__doc__)
    parser.add_argument("names", nargs="*", help="experiments; all by default")
    parser.add_argument("--realizations", type=int, help="number of realizations; as published")
    parser.add_argument("--most", type=float, help="skip experiments of more processor seconds")
    parser.add_argument("--jobs", type=int, help="number of processes")
    parser.add_argument("--store", type=Path, default=BOOK / "tasks.sqlite")
    parser.add_argument("--again", action="store_true", help="run experiments with results again")
    return parser


def is_done(experiment: Experiment, realizations: int) -> bool:
    """Return whether there are results of the current experiment file and enough realizations."""
    stored = stored_results(experiment)
    return stored is not None and stored.is_current and stored.realizations >= realizations


def compute(experiment: Experiment, realizations: int, store: Path, jobs: int | None) -> bool:
    """Run an experiment and save its results; return whether that worked."""
    start, spent = time.perf_counter(), time.process_time()
    try:
        found = reproduce(experiment, realizations=realizations, store=store, n_jobs=jobs)
    except TamisError as error:
        print(f"{experiment.name}: {error}", flush=True)
        return False
    save_results(found, results_path(experiment.name), realizations=realizations)
    took, spent = time.perf_counter() - start, time.process_time() - spent
    otherwise = "nothing published" if found.cells else "nothing could be computed"
    counts = ", ".join(f"{n} {mark}" for mark, n in found.counts().items()) or otherwise
    print(f"{experiment.name}: {counts}; {took:.0f} s, {spent:.0f} s of processor", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
