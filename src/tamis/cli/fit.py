"""Fitting a search: with a bar, from a record, and with a record to keep when it is stopped."""

import warnings
from pathlib import Path
from typing import Any, NoReturn

import typer

from tamis._format import format_count
from tamis._namespace import computing_on
from tamis._parallel import listening
from tamis.blocks.device_arrays import warn_of_device
from tamis.cli.app import INTERRUPTED
from tamis.cli.blocks import LabelledBlocks
from tamis.cli.folder import RECORD, free_folder
from tamis.cli.options import SelectOptions, default_folder
from tamis.cli.progress import ProgressBar
from tamis.cli.terminal import notify, print_warnings
from tamis.contract import Record, Selection
from tamis.exceptions import ClusterLost, InvalidTable, NotEnoughMemory
from tamis.table.target import LabelledTable


def fit_selection(
    asked: SelectOptions,
    selector: Any,
    data: LabelledTable | LabelledBlocks,
    record: Record | None,
    metadata: dict[str, Any] | None = None,
) -> Selection:
    """Fit a selector, or continue from a record; warnings are printed after success only.

    ``metadata`` are groups and weights of the rows.
    """
    bar = ProgressBar(quiet=asked.quiet)
    if not getattr(selector, "search", selector).scores_alone:  # a ranking makes all steps at once
        selector.set_callbacks(bar)
    try:
        with warnings.catch_warnings(record=True) as caught, bar, listening(bar.count_step):
            warnings.simplefilter("always")
            if asked.device is not None:
                warn_of_device(selector, f"device={asked.device!r}")
            with computing_on(asked.device):
                if record is None:
                    selector.fit(data.X, data.y, **metadata or {})
                else:
                    selector.resume(data.X, data.y, record=record, **metadata or {})
    except NotEnoughMemory:
        keep_record(asked, selector, "out of memory", device=None)
        raise
    except ClusterLost:
        keep_record(asked, selector, "the cluster is lost")
        raise
    finally:
        selector.set_callbacks()
    if bar.stop:
        leave(asked, selector)
    if asked.save_record is not None:
        selector.record_.save(asked.save_record)
    if not asked.quiet:
        print_warnings(caught)
    fitted: Selection = selector
    return fitted


def leave(asked: SelectOptions, selector: Any) -> NoReturn:
    """Keep the steps so far, print how to go on, and leave."""
    if not keep_record(asked, selector, "stopped"):
        notify("stopped; nothing was written.")
    raise typer.Exit(INTERRUPTED)


def keep_record(asked: SelectOptions, selector: Any, why: str, **others: Any) -> bool:
    """Write the steps so far, and print how to go on; False if there are none."""
    record = getattr(selector, "record_", None)
    if record is None or not (len(record.trace) or record.parts or record.trace.state):
        return False
    path = asked.save_record
    if path is None:
        path = (asked.results_folder or free_folder(default_folder(asked.file))) / RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    record.save(path)
    n = len(record.trace)
    done = f"{format_count(n, 'step')} {'is' if n == 1 else 'are'}"
    if not n:
        done = f"the state after {selector.progress()[2]} is"
    again = asked.command_line(resume=path, **others)
    notify(f"{why}; {done} in {path}. To go on, write:", again)
    return True


def load_record(path: Path | None) -> Record | None:
    """Read the record of a file."""
    try:
        return None if path is None else Record.load(path)
    except (LookupError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise InvalidTable(
            f"{path} is a damaged record ({type(error).__name__}: {error}). Start the search from "
            "scratch."
        ) from error
