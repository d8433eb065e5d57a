"""Selections that are interrupted at a line of the library and resumed.

Each case has a number. Run ``python -m tests.contract.interrupts [first] [count]``. A case fits a
method, raises ``KeyboardInterrupt`` at one line of tamis, saves the record, resumes from it and
compares the result with an undisturbed fit. Every third case interrupts the resumed run as well.
Half of the cases draw a line among all lines that run, so that short windows are hit with the same
probability as long loops. The other cases draw a moment of the run.
"""

import sys
import warnings
from collections import Counter
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import tamis
from tamis import FeatureCosts
from tamis._seeds import fix_seeds
from tamis.auto import Auto
from tamis.choice import CostLimit
from tamis.contract import Record
from tamis.criteria import Correlation, FisherScore, Scatter
from tamis.exceptions import TamisError
from tamis.meta import (
    ConditionalTest,
    Contest,
    Fusion,
    HonestSize,
    Knockoffs,
    Probes,
    StabilitySelection,
)
from tamis.recipes.book import BOOK, names, recipe
from tamis.search import BranchAndBound, Exhaustive, Forward, Ranking, RecursiveElimination, Then
from tamis.table import TableSelector

LIBRARY = str(Path(tamis.__file__).parent)
DRAW = np.random.default_rng(5)
X = DRAW.normal(size=(36, 6))
NUMBERS = X[:, 0] + 0.7 * X[:, 1] + 0.3 * DRAW.normal(size=36)
CLASSES = (NUMBERS > 0).astype(int)
FRAME = pd.DataFrame(X[:, :4], columns=list("abcd")).assign(kind=["u", "v", "w"] * 12)


def ranked_first(second):
    """Return a composed search whose second part gets four columns."""
    return Then(Ranking(FisherScore(), n_features_to_select=4), second)


def backward(size=2):
    return RecursiveElimination(Scatter(ridge=1e-3), n_features_to_select=size)


def forward(size=2):
    return Forward(Scatter(ridge=1e-3), n_features_to_select=size)


COSTS = FeatureCosts({0: 3.0, 1: 2.5}, shared={"both": (1.5, [0, 1])}, default=1.0)


def limited(search):
    """Return a search with prices and a price limit."""
    return search.set_params(feature_costs=COSTS, n_features_to_select=CostLimit(4))


#: Compositions and meta-selectors, which recipes do not cover completely.
COMPOSED = {
    "auto": lambda: Auto(budget=1, cv=2),
    "auto of a frame": lambda: TableSelector(Auto(budget=1, cv=2)),
    "probes": lambda: Probes(Ranking(FisherScore()), n_rounds=4),
    "honest size": lambda: HonestSize(Ranking(FisherScore()), n_folds=2),
    "conditional test": lambda: ConditionalTest(Ranking(FisherScore()), n_folds=2),
    "contest": lambda: Contest(backward(), n_rounds=8, early_rejection=True),
    "stability selection": lambda: StabilitySelection(forward(), n_pairs=2),
    "knockoffs": lambda: Knockoffs(Ranking(FisherScore())),
    "fusion": lambda: Fusion([Ranking(Correlation()), forward()], n_features_to_select=3),
    "frame": lambda: TableSelector(forward()),
    "frame, backward": lambda: TableSelector(backward()),
    "frame, composed": lambda: TableSelector(ranked_first(backward())),
    "composed": lambda: ranked_first(forward()),
    "composed, backward": lambda: ranked_first(backward()),
    "composed of three": lambda: Then(backward(5), ranked_first(forward())),
    "composed, fixed": lambda: ranked_first(backward(3)).set_params(fixed_features=[5]),
    "limit, forward": lambda: limited(forward()),
    "limit, backward": lambda: limited(backward()),
    "limit, exact": lambda: limited(BranchAndBound(Scatter(ridge=1e-3))),
    "limit, ranking": lambda: limited(Ranking(FisherScore())),
    "limit, auto": lambda: Auto(budget=1, cv=2, feature_costs=COSTS, cost_limit=4),
    "exhaustive": lambda: Exhaustive(Scatter(), n_features_to_select="best"),
}
METHODS = [*COMPOSED, *names()]


def made(name):
    """Return the method with this name, with integers as seeds."""
    method = COMPOSED[name]() if name in COMPOSED else recipe(name)
    fix_seeds(method, root=0)
    return method


def table(name):
    """Return the table and target that a method is fitted to."""
    if "frame" in name:
        return FRAME, CLASSES
    numeric = name in BOOK and "classification" not in BOOK[name].targets
    return X, NUMBERS if numeric else CLASSES


def answer(fitted):
    """Return the result of a fitted selection."""
    return {
        "support": fitted.support_.tolist(),
        "order": fitted.order_.tolist(),
        "ranking": fitted.ranking_.tolist(),
        "reason": fitted.choice_.reason,
        "subsets": [step.subset.tolist() for step in fitted.trace_],
        "finished": fitted.record_.finished,
    }


def difference(fitted, whole):
    """Return the first difference between two fitted selections, or None."""
    found, expected = answer(fitted), answer(whole)
    for name in expected:
        if found[name] != expected[name]:
            return f"{name} is {found[name]}, undisturbed {expected[name]}"
    if not np.allclose(fitted.scores_, whole.scores_, rtol=1e-8, equal_nan=True):
        return f"scores are {fitted.scores_}, undisturbed {whole.scores_}"
    return None


def traced(work, at_line, inside=LIBRARY):
    """Call a function with the position of each line that runs in some files."""

    def line(frame, event, _):
        if event == "line":
            at_line(frame.f_code.co_filename, frame.f_lineno)
        return line

    def call(frame, *_):
        return line if frame.f_code.co_filename.startswith(inside) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        return work()
    finally:
        sys.settrace(before)


@cache
def undisturbed(name):
    """Return the fitted method, and how often each line of the library ran."""
    X, y = table(name)
    lines = Counter()

    def at_line(*place):
        lines[place] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole, again = made(name).fit(X, y), made(name)
        traced(lambda: again.fit(X, y), at_line)
    assert difference(again, whole) is None, f"{name} does not repeat itself"
    return whole, lines


def moment(name, draw, weighted):
    """Return a line of the library that the method runs, and the number of its execution."""
    _, lines = undisturbed(name)
    places, counts = list(lines), np.array(list(lines.values()), dtype=float)
    place = places[draw.choice(len(places), p=counts / counts.sum() if weighted else None)]
    return place, int(draw.integers(1, lines[place] + 1))


def is_interrupted(work, place, time):
    """Return whether the work was interrupted at the given line."""

    def at_line(_, number):
        nonlocal time
        time -= number == place[1]
        if number == place[1] and time == 0:
            raise KeyboardInterrupt

    try:
        traced(work, at_line, inside=place[0])
    except KeyboardInterrupt:
        return True
    return False


def outcome(name, moments):
    """What comes of a fit that is interrupted at the first moment, and resumed runs at the others.

    ``through`` if the line did not run again, ``scratch`` if nothing was recorded yet, ``same`` for
    the undisturbed answer; else a sentence that begins with ``refused``, ``raw`` or ``different``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (X, y), (whole, _) = table(name), undisturbed(name)
        fitted = made(name)
        if not is_interrupted(lambda: fitted.fit(X, y), *moments[0]):
            return "through"
        if not hasattr(fitted, "record_"):
            return "scratch"
        try:
            record = stored(fitted.record_)
            for again in moments[1:]:
                fitted = made(name)
                is_interrupted(partial(fitted.resume, X, y, record=record), *again)
                record = stored(fitted.record_) if hasattr(fitted, "record_") else record
            fitted = made(name).resume(X, y, record=record)
        except TamisError as error:
            return f"refused: {error}"
        except Exception as error:
            return f"raw: {type(error).__name__}: {error}"
        wrong = difference(fitted, whole)
    return "same" if wrong is None else f"different: {wrong}"


def stored(record):
    """Return the record after it was saved and loaded."""
    with TemporaryDirectory() as folder:
        record.save(path := Path(folder) / "record.json")
        return Record.load(path)


def case(number):
    """Return the method and the moments of a case."""
    name, draw = METHODS[number % len(METHODS)], np.random.default_rng(number)
    n_moments = 2 if number % 3 == 0 else 1
    return name, [moment(name, draw, bool(number % 2)) for _ in range(n_moments)]


def main(first=0, count=500):
    counts = Counter()
    for number in range(first, first + count):
        name, moments = case(number)
        found = outcome(name, moments)
        counts[found.split(":")[0]] += 1
        if found not in ("scratch", "through", "same"):
            places = [f"{Path(f).relative_to(LIBRARY)}:{line} ({n})" for (f, line), n in moments]
            print(f"{number}: {name} at {', '.join(places)}\n    {found[:300]}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
