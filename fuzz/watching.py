"""Worker processes for cases, so that a hang or a crash is a failure like others."""

import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from time import process_time
from typing import NamedTuple

from fuzz.verdict import Case

#: Processor seconds, and by default also wall-clock seconds, after which a case hangs. The slowest
#: recipe takes about ten on the largest table.
PATIENCE = 60.0
#: Seconds for a new process to import its modules.
STARTING = 120.0


class Outcome(NamedTuple):
    """A case as text, how it ended, and what is wrong, if anything."""

    case: str
    ended: str
    wrong: str | None


def outcomes(
    seed: int, first: int = 0, kind: str | None = None, patience: float = PATIENCE
) -> Iterator[Outcome]:
    """Yield the outcomes of cases without end.

    On a busy computer, cases need more ``patience`` in seconds of the clock.
    """
    number = first
    while True:
        with Worker(seed, number, kind, patience) as worker:
            alive = True
            while alive:
                outcome, alive = worker.outcome()
                yield outcome
                number += 1


class Worker:
    """A process that runs consecutive cases until one of them hangs or crashes."""

    def __init__(self, seed: int, first: int, kind: str | None, patience: float):
        self.patience = patience
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_serve, args=(theirs, seed, first, kind), daemon=True)
        self.process.start()
        theirs.close()
        self.ours.poll(STARTING)

    def outcome(self) -> tuple[Outcome, bool]:
        """Return the next outcome, and whether the process is still alive."""
        case = "?"
        try:
            case = self.ours.recv()
            if not self.ours.poll(self.patience):
                return Outcome(case, "hang", f"no answer after {self.patience:g} s"), False
            return Outcome(case, *self.ours.recv()), True
        except EOFError:
            self.process.join()
            return Outcome(case, "crash", f"the process died with {self.process.exitcode}"), False

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.join()


def _serve(theirs: Connection, seed: int, first: int, kind: str | None) -> None:
    number = first
    while True:
        case = Case(seed, number, kind)
        theirs.send(str(case))
        begun = process_time()
        ended, wrong = case.run()
        if (used := process_time() - begun) > PATIENCE:
            wrong = wrong or f"took {used:.0f} s of the processor"
        theirs.send((ended, wrong))
        number += 1
