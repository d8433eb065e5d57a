"""The run behind the book: experiments with all their realizations, the shortest first.

python -m book.run                          # all that have no results yet; takes days
python -m book.run thesis-3.1 thesis-3.2    # these
python -m book.run --most 3600              # those that take an hour of processor time at most

Finished tasks are kept in a store, so that the same command goes on where it was stopped. An
experiment that is done leaves a small file in ``book/results``, from which ``make docs`` draws
its page.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from book.pages import BOOK, RESULTS, results_path
from tamis.exceptions import TamisError
from tamis_book.experiment import Experiment
from tamis_book.files import by_cost, names, read
from tamis_book.result_files import load_results, save_results
from tamis_book.runner import reproduce


def main(words: Sequence[str]) -> int:
    """Compute what was asked for; the number of experiments that failed."""
    asked = _parser().parse_args(words)
    RESULTS.mkdir(parents=True, exist_ok=True)
    chosen = by_cost(read(name) for name in asked.names or names())
    failed = 0
    for experiment in chosen:
        n = asked.realizations or experiment.realizations
        if asked.most is not None and (experiment.cost or 0) * n > asked.most:
            print(
                f"{experiment.name}: left out, about {(experiment.cost or 0) * n:.0f} s", flush=True
            )
        elif not asked.again and is_done(experiment, n):
            print(f"{experiment.name}: done before", flush=True)
        else:
            failed += not compute(experiment, n, asked.store, asked.jobs)
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m book.run", description=__doc__)
    parser.add_argument("names", nargs="*", help="experiments; all by default")
    parser.add_argument("--realizations", type=int, help="instead of as many as are published")
    parser.add_argument("--most", type=float, help="processor seconds that an experiment may take")
    parser.add_argument("--jobs", type=int, help="how many processes")
    parser.add_argument("--store", type=Path, default=BOOK / "tasks.sqlite")
    parser.add_argument("--again", action="store_true", help="those too that have results")
    return parser


def is_done(experiment: Experiment, realizations: int) -> bool:
    """Whether there are results of the experiment as its file is now, of as many realizations."""
    path = results_path(experiment.name)
    if not path.is_file():
        return False
    have = load_results(path, experiment)
    return have.is_current and have.realizations >= realizations


def compute(experiment: Experiment, realizations: int, store: Path, jobs: int | None) -> bool:
    """Compute an experiment and keep its results; False where it cannot be."""
    start, spent = time.perf_counter(), time.process_time()
    try:
        found = reproduce(experiment, realizations=realizations, store=store, n_jobs=jobs)
    except TamisError as error:
        print(f"{experiment.name}: {error}", flush=True)
        return False
    save_results(found, results_path(experiment.name), realizations=realizations)
    took, spent = time.perf_counter() - start, time.process_time() - spent
    told = "nothing published" if found.cells else "nothing could be computed"
    counts = ", ".join(f"{n} {mark}" for mark, n in found.counts().items()) or told
    print(f"{experiment.name}: {counts}; {took:.0f} s, {spent:.0f} s of processor", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
