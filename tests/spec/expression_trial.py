"""Pass a text to every parameter of every name in expressions, fit, and watch files and processes.

It runs in its own process and folder. A Python audit hook reports every file that is opened, every
module that is imported and every program that is started. Each event that mentions the text is
printed, and finally the content of the folder and the number of trials.
"""

import faulthandler
import json
import os
import sys
import warnings

import numpy as np
from sklearn.datasets import make_classification

from tamis.exceptions import InvalidSpec
from tamis.spec import parse
from tamis.spec.vocabulary import GUESTS, all_names, find, parameters_of

TRAPS = ("tamis_trap", "tamis_trap.sprung")
X, Y = make_classification(24, 4, n_informative=3, n_redundant=0, random_state=0)

#: Values of parameters without a default, by name.
NEEDED = {
    "base": "FisherScore()",
    "criteria": "[FisherScore()]",
    "criterion": "FisherScore()",
    "dictionary": "[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]",
    "estimator": "LogisticRegression()",
    "estimators": '[("one", LogisticRegression())]',
    "first": "Ranking(FisherScore())",
    "function": "None",
    "kernel": "'linear'",
    "n_features": "2",
    "n_nonzero_coefs": "1",
    "n_splits": "2",
    "p": "1",
    "param_distributions": "{}",
    "param_grid": "{}",
    "per_feature": "0.1",
    "q": "0.1",
    "second": "Ranking(FisherScore())",
    "share": "0.5",
    "step": "0.1",
    "steps": '[("one", StandardScaler()), ("two", LogisticRegression())]',
    "t": "0.1",
    "test_fold": "[0, 1]",
    "threshold": "0.1",
    "minimum": "0.1",
    "transformer_list": '[("one", StandardScaler())]',
    "transformers": '[("one", StandardScaler(), [0, 1])]',
    "pattern": "'a'",
}
#: Few iterations, so that training ends soon.
QUICK = {
    "catboost": {"iterations": "2", "verbose": "False"},
    "xgboost": {"n_estimators": "2"},
    "lightgbm": {"n_estimators": "2", "verbosity": "-1"},
}

events: list[str] = []


def watch(event: str, args: tuple) -> None:
    """Record an event that mentions the text, except in tracebacks."""
    if event in ("compile", "object.__getattr__", "code.__new__"):
        return
    if any(isinstance(a, str | bytes) and "tamis_trap" in str(a) for a in args):
        events.append(f"{event} {args!r}"[:200])


def tried(name: str, parameter: str, trap: str) -> str:
    """Return whether an argument was refused, accepted or fitted."""
    words = {
        p.name: NEEDED.get(p.name, "None")
        for p in parameters_of(find(name))
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    known = {p.name for p in parameters_of(find(name))}
    words |= {w: v for w, v in QUICK.get(GUESTS.get(name, ""), {}).items() if w in known}
    words[parameter] = repr(trap)
    try:
        made = parse(f"{name}({', '.join(f'{word}={value}' for word, value in words.items())})")
    except InvalidSpec:
        return "refused"
    for use in (lambda: made.fit(X, Y), lambda: list(made.split(X, Y)), lambda: made.fit(X)):
        try:
            use()
        except Exception:
            continue
        return "fitted"
    return "made"


def main() -> None:
    """Try everything and print what happened as JSON."""
    faulthandler.dump_traceback_later(500, exit=True)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    outcomes: dict[str, int] = {}
    for name in sorted(all_names()):
        find(name)  # imported before anything is watched
    parse("SVC()").fit(X, Y)
    sys.addaudithook(watch)
    sprung = []
    only = sys.argv[1:] or sorted(all_names())
    for name in only:
        for parameter in [
            p.name for p in parameters_of(find(name)) if p.kind is not p.VAR_POSITIONAL
        ]:
            for trap in TRAPS:
                events.clear()
                outcome = tried(name, parameter, trap)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                sprung += [f"{name}({parameter}={trap!r}): {event}" for event in events]
    print(json.dumps({"sprung": sprung, "outcomes": outcomes, "folder": sorted(os.listdir())}))


if __name__ == "__main__":
    main()
