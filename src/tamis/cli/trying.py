"""What is tried out for a page, in seconds: columns in the place of others, and a model of them."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from tamis._parallel import listening
from tamis.cli.counting import counted_bar
from tamis.contract import SURVIVAL, Selection
from tamis.plot.correlating import numbers_of
from tamis.table.target import LabelledTable

#: Rows of a table whose columns are swapped and modelled for the page: small fits, in seconds.
MOST_TRIED = 5000
#: Products that trying swaps may take, some ten seconds; beyond, columns that are close are named.
MOST_WORK = 2e10
#: Kept columns of a model whose effects are shown: a forest of more has little to say of each.
MOST_SHOWN = 100


def tried_out(
    selection: Selection,
    X: Any,
    data: LabelledTable,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """What could replace the kept columns, and the model of their effects, for a report.

    Tables, and lists of columns, beyond some size have none: a page is not waited for.
    """
    n_rows, n_kept = len(data.y), int(selection.support_.sum())
    if not n_kept or data.task == SURVIVAL or n_rows > MOST_TRIED:
        return {}
    found: dict[str, Any] = {}
    with (
        counted_bar("what could replace them", "swaps", quiet=quiet) as bar,
        listening(bar),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # about models that are only compared
        # three candidates in five folds for each column, each a ridge regression on the kept ones
        if 15 * n_kept * n_rows * n_kept * min(n_rows, n_kept) <= MOST_WORK:
            found["substitutes"] = selection.substitutes(X, data.y, random_state=seed)
        kept = numbers_of(X, np.flatnonzero(selection.support_))
        if np.isfinite(kept).all() and n_kept <= MOST_SHOWN:
            model = _model(selection, data.task, seed, n_jobs)
            found["model"] = model.fit(kept, data.y)
    return found


def _model(selection: Selection, task: str, seed: int, n_jobs: int | None) -> Any:
    """What is trained to show effects: the model of the automatic selection, else a forest."""
    own = getattr(getattr(selection, "search_", selection), "estimator_", None)
    if own is not None:
        return clone(own)
    forest = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return forest(min_samples_leaf=5, n_jobs=n_jobs, random_state=seed)
