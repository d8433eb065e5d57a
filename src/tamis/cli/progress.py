"""A bar on stderr that follows a search through scikit-learn's callbacks."""

import math
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tamis.contract import resolve_choice
from tamis.search import Exhaustive, Genetic

#: Seconds between two looks at the trace; a ranking of 10^5 columns makes as many steps.
PAUSE = 0.05


class SearchBar:
    """Callback that shows how far a search is; without a terminal it shows nothing."""

    def __init__(self, console: Console):
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.stop = False
        self.task: TaskID | None = None
        self.looked = 0.0

    def setup(self, estimator: Any, context: Any) -> None:
        """A bar for a search that begins."""
        self.progress.start()
        who, judge = type(estimator).__name__, getattr(estimator, "criterion", None)
        name = who if judge is None else f"{who}({type(judge).__name__})"
        self.task = self.progress.add_task(name, total=None, state="")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing: a step is shown when it is made."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Move the bar to the newest step, and say whether the search is to stop."""
        now = monotonic()
        if self.task is not None and now - self.looked > PAUSE and context.parent is not None:
            self.looked = now
            share, state = progress_of(estimator)
            total = None if share is None else 1.0
            self.progress.update(self.task, total=total, completed=share or 0.0, state=state)
        return self.stop

    def teardown(self, estimator: Any, context: Any) -> None:
        """Take the bar away."""
        self.progress.stop()
        if self.task is not None:
            self.progress.remove_task(self.task)


def progress_of(search: Any) -> tuple[float | None, str]:
    """The share of a walk that is done, None where nobody knows, and a word on where it stands."""
    trace = search.trace_
    n_units, step = trace.n_units, trace[-1]
    if isinstance(search, Genetic):
        return len(trace) / (search.n_generations + 1), f"generation {len(trace) - 1}"
    target = resolve_choice(search.n_features_to_select, type(search).__name__).size(n_units, "")
    if isinstance(search, Exhaustive):
        whole = 2**n_units - 1 if target is None else math.comb(n_units, target)
        return trace.state["valued"] / whole, f"{trace.state['valued']} subsets"
    state = f"{len(step.subset)} of {n_units} columns"
    if "gap" in trace.state:
        return None, f"gap {trace.state['gap']:.3g}"
    if search.scores_alone:  # it ranks all, whatever is asked
        target = None
    if len(trace[0].subset) > n_units / 2:  # it began with everything
        share = (n_units - len(step.subset)) / max(n_units - (target or 1), 1)
    else:
        share = len(step.subset) / (target or n_units)
    return min(share, 1.0), state
