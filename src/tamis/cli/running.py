"""Running a search: with a bar, from a record, and with something to keep when it is stopped."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, signal
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NamedTuple, NoReturn, Protocol

import typer
from numpy.typing import NDArray

from tamis._format import format_count
from tamis._namespace import computing_on
from tamis._parallel import listening
from tamis.choice.rounds import InRounds
from tamis.cli.failing import INTERRUPTED
from tamis.cli.parts import LabelledParts
from tamis.cli.printing import say, say_warnings, stderr
from tamis.cli.progress import SearchBar, inside, progress_of
from tamis.contract import Record, Selection
from tamis.contract.elsewhere import warn_of_device
from tamis.exceptions import ClusterLost, InvalidParameter, InvalidTable, NotEnoughMemory
from tamis.recipes import prepare
from tamis.search import Ranking
from tamis.spec import parse
from tamis.table.target import LabelledTable


class Interrupted(NamedTuple):
    """What is done with the steps of a search that Ctrl-C, no memory or a lost cluster stops."""

    record: Path
    again: str
    on_processor: str = ""


def run(
    selector: Any,
    data: LabelledTable | LabelledParts,
    record: Record | None = None,
    save_to: Path | None = None,
    *,
    metadata: dict[str, Any] | None = None,
    interrupted: Interrupted | None = None,
    quiet: bool = False,
    device: str | None = None,
) -> Selection:
    """Fit a selector, or continue from a record; warnings are said after success only.

    ``metadata`` are groups and weights of the rows. ``save_to`` is where the record goes at the
    end, ``interrupted`` where it goes after Ctrl-C.
    """
    bar = SearchBar(stderr(), quiet=quiet)
    if not isinstance(
        inside(selector), Ranking
    ):  # which makes all its steps at once, and many of them
        selector.set_callbacks(bar)
    try:
        with stopping(bar), listening(bar.tell), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if device is not None:
                warn_of_device(selector, f"device={device!r}")
            with computing_on(device):
                params = metadata or {}
                if record is None:
                    selector.fit(data.X, data.y, **params)
                else:
                    selector.resume(data.X, data.y, record=record, **params)
    except KeyboardInterrupt:
        bar.stop = True
    except NotEnoughMemory:
        if interrupted is not None:  # where there was no memory, there will be none
            interrupted = interrupted._replace(again=interrupted.on_processor)
            keep(selector, interrupted, "out of memory")
        raise
    except ClusterLost:
        keep(selector, interrupted, "the cluster is lost")
        raise
    except Exception:
        if not bar.stop:  # compiled code may turn an interrupt into an error of its own
            raise
    finally:
        selector.set_callbacks()
    if bar.stop:
        leave(selector, interrupted)
    if save_to is not None:
        selector.record_.save(save_to)
    if not quiet:
        say_warnings(caught)
    fitted: Selection = selector
    return fitted


class Stoppable(Protocol):
    """What is told of Ctrl-C."""

    stop: bool


@contextmanager
def stopping(bar: Stoppable) -> Iterator[None]:
    """Let Ctrl-C interrupt the work and tell the bar, which stops it should it go on."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        bar.stop = True
        raise KeyboardInterrupt

    if current_thread() is not main_thread():
        yield
        return
    before = signal(SIGINT, interrupt)
    try:
        yield
    finally:
        signal(SIGINT, before)


def leave(selector: Any, interrupted: Interrupted | None) -> NoReturn:
    """Keep what was found so far, say how to go on, and leave."""
    if not keep(selector, interrupted, "stopped"):
        say("stopped; nothing was written.")
    raise typer.Exit(INTERRUPTED)


def keep(selector: Any, interrupted: Interrupted | None, why: str) -> bool:
    """Whether something was found so far; it is written, and how to go on is said."""
    if interrupted is None or not _has_begun(selector):
        return False
    path, again, _ = interrupted
    path.parent.mkdir(parents=True, exist_ok=True)
    selector.record_.save(path)
    say(f"{why}; {_done(selector)} in {path}. To go on, write:", again)
    return True


def _has_begun(selector: Any) -> bool:
    """Whether there is a step, a part of a composition or a round to go on from."""
    record = getattr(selector, "record_", None)
    return record is not None and bool(len(record.trace) or record.parts or record.trace.state)


def _done(selector: Any) -> str:
    """What there is to go on from."""
    if isinstance(inside(selector), InRounds):
        return f"what is known after {progress_of(selector)[1]} is"
    n = len(selector.trace_)
    return f"{format_count(n, 'step')} {'is' if n == 1 else 'are'}"


def load_record(path: Path) -> Record:
    """Record of a file."""
    try:
        return Record.load(path)
    except (LookupError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise InvalidTable(
            f"{path} is a damaged record ({type(error).__name__}: {error}). Start the search anew."
        ) from error


def selector_for(
    method: str | None, y: NDArray[Any], record: Record | None, **options: Any
) -> Selection:
    """The selector that the arguments, or the record to go on from, ask for."""
    asked = record.expression if method is None and record is not None else method
    return prepare(asked, y, **options)


def feature_groups(given: Sequence[str]) -> dict[str, list[str]] | None:
    """``--group name=a,b,c``, given any number of times, as a mapping."""
    groups: dict[str, list[str]] = {}
    for text in given:
        name, equals, columns = text.partition("=")
        if not (equals and name.strip()):
            raise InvalidParameter(
                f"--group needs a name and columns, such as colour=red,green,blue, not {text!r}."
            )
        if name.strip() in groups:
            raise InvalidParameter(
                f"--group is given twice for {name.strip()!r}. Write all of its columns at once."
            )
        groups[name.strip()] = names_in([columns])
    return groups or None


def names_in(given: Sequence[str]) -> list[str]:
    """Names that stand with commas between them."""
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def number_of_features(text: str | None) -> Any:
    """``--features`` as an int, a fraction, "best" or a choice such as Threshold(0.1)."""
    if text is None or text == "best":
        return text
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidParameter(
            f"--features needs a number of columns, a fraction such as 0.5, best, or a choice such "
            f"as 'Threshold(0.1)', not {text!r}."
        ) from error
