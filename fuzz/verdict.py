"""Checks of random cases. A case must return a valid result or raise a clear error message."""

import traceback
import warnings
from typing import Any

import numpy as np

from fuzz.methods import kinds, method
from fuzz.tables import Table, table
from tamis.contract import Selection
from tamis.exceptions import TamisError, TamisWarning
from tamis.meta.repeats import InRounds
from tamis.search import (
    Backward,
    Bidirectional,
    Forward,
    PlusLMinusR,
    Ranking,
    RecursiveElimination,
)
from tamis.spec import write

#: Searches in which every move has a score.
SCORED = (Backward, Bidirectional, Forward, PlusLMinusR, Ranking, RecursiveElimination)
#: Least length of a message.
SHORTEST = 20


class Case:
    """One table and one method, which depend on the seed and the number of the case."""

    def __init__(self, seed: int, number: int, kind: str | None = None):
        self.name = f"--seed {seed} --only {number}" + (f" --kind {kind}" if kind else "")
        draw = np.random.default_rng([seed, number])
        self.method: Any = method(draw, kind)
        self.table: Table = table(draw, kinds(self.method))

    def __str__(self) -> str:
        return f"{self.name}: {write(self.method, strict=False)} on {', '.join(self.table.words)}"

    def run(self) -> tuple[str, str | None]:
        """Return "answer" or the type of the error, and what is wrong with it, or None."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                ended, wrong = "answer", self._wrong_answer()
            except Exception as error:
                ended, wrong = type(error).__name__, _wrong_error(error, self.table)
        if wrong is None:
            wrong = next(
                (_describe(w) for w in heard if not issubclass(w.category, TamisWarning)), None
            )
        return ended, wrong

    def _wrong_answer(self) -> str | None:
        params = {}
        if self.table.sample_weight is not None:
            params["sample_weight"] = self.table.sample_weight
        fitted = self.method.fit(self.table.X, self.table.y, **params)
        if isinstance(fitted, Selection):
            return _wrong_selection(fitted, self.table)
        return _wrong_path(fitted, self.table)


def _wrong_selection(fitted: Selection, table: Table) -> str | None:
    """Return what is wrong with the fitted attributes, or None."""
    d = fitted.n_features_in_
    if fitted.support_.dtype != bool or fitted.support_.shape != (d,):
        return f"support_ is {fitted.support_.dtype} of shape {fitted.support_.shape}"
    fewest = 0 if isinstance(fitted, InRounds) else 1  # may select nothing
    if not fewest <= fitted.n_features_ <= d or fitted.n_features_ != fitted.support_.sum():
        return f"{fitted.n_features_} columns of {d}, support_ has {fitted.support_.sum()}"
    if sorted(fitted.order_) != list(range(d)):
        return f"order_ is {fitted.order_}"
    if not fitted.support_[fitted.order_[: fitted.n_features_]].all():
        return f"order_ {fitted.order_} does not begin with the columns kept"
    moves = fitted.trace_.moves()
    # a backward search starts without scores
    if isinstance(fitted, SCORED) and np.isnan(moves.score[moves.step > 0]).any():
        return f"scores of moves are {moves.score}"
    asked = fitted.n_features_to_select if hasattr(fitted, "n_features_to_select") else None
    if isinstance(asked, int) and fitted.n_features_ != asked:
        return f"{fitted.n_features_} columns where {asked} were asked for"
    for column in range(min(d, 3)):
        fitted.explain(column)
    if not fitted.n_features_:  # scikit-learn warns of a table without columns
        return None
    kept = fitted.transform(table.X)
    if np.shape(kept)[1] != fitted.n_features_:
        return f"transform gives shape {np.shape(kept)}"
    return None


def _wrong_path(fitted: Any, table: Table) -> str | None:
    """Return which output of a path is not a number, or None."""
    for at in ({"C": 0.1}, {"C": 10.0}) if not hasattr(fitted, "best_score_") else ({},):
        answered = fitted.predict(table.X, **at)
        if answered.dtype.kind == "f" and not np.isfinite(answered).all():
            return f"predict({at}) gives {answered}"
        if hasattr(fitted, "decision_function"):
            decided = fitted.decision_function(table.X, **at)
            if np.isnan(decided).any():
                return f"decision_function({at}) gives {decided}"
    numbers = [getattr(fitted, name, 0.0) for name in ("best_score_", "best_C_", "violation_")]
    if np.isnan(np.array(numbers, dtype=float)).any():
        return f"best_score_, best_C_, violation_ are {numbers}"
    return None


def _wrong_error(error: Exception, table: Table) -> str | None:
    """Return why an error message is not clear, or None."""
    text = str(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__}: {' '.join(text.split())[:300]} ({_short(where)})"
    if isinstance(error, TamisError):
        is_sentence = len(text) >= SHORTEST and " " in text and text.rstrip()[-1] in ".'\")?"
        return None if is_sentence else f"unclear message: {message}"
    if not isinstance(error, ValueError | TypeError) or "sklearn/" not in where.filename:
        return message
    if where.filename.endswith("sklearn/base.py"):  # a parameter that we set, not the user
        return message
    # finite numbers must not be reported as infinite
    if table.finite and table_is_numbers(table) and ("infinity" in text or "NaN" in text):
        return f"false: {message}"
    return None if len(text) >= SHORTEST else f"unclear message: {message}"


def table_is_numbers(table: Table) -> bool:
    """Return whether X and y are finite numbers before any conversion."""
    clean = {"target of nan", "float32"}.isdisjoint(table.words)
    return clean and table.sample_weight is None


def _describe(warning: warnings.WarningMessage) -> str:
    text = " ".join(str(warning.message).split())[:200]
    where = "/".join(warning.filename.split("/")[-3:])
    return f"warning {warning.category.__name__}: {text} ({where}:{warning.lineno})"


def _short(where: traceback.FrameSummary) -> str:
    return f"{'/'.join(where.filename.split('/')[-3:])}:{where.lineno}"
