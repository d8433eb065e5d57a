"""Store the results of tamis before a redesign, and compare them afterwards.

This is not a pytest module. ``python -m tests.behaviour store FILE.json`` runs every case and
writes the results as plain JSON. ``python -m tests.behaviour compare FILE.json`` runs them again,
prints one line for each difference and exits with 1 if there is any. ``--only recipes/mrmr`` runs
the cases whose name starts with this text, and keeps the other cases of an existing file. With
``--jobs 2``, two cases run at a time. Only public names are used. There are six sections: every
recipe on five tables, the searches along regularization paths, the automatic selection, the text of
the command line, runs that are interrupted and resumed, and criteria without numba.
:data:`LEFT_OUT` lists what is left out, and why.
"""

import argparse
import difflib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import scale

import tamis
from tamis.exceptions import TamisError
from tamis.recipes import names

RELATIVE, ABSOLUTE = 1e-10, 1e-12
#: Longest text of one value in a line that reports a difference.
SHOWN = 60

# -- tables ---------------------------------------------------------------------------------------

SKLEARN = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
}
TABLES = [*SKLEARN, "wide"]


@cache
def table(name, n_rows=None):
    """Return X and y of a table, of which ``n_rows`` rows are drawn with a fixed seed."""
    if name == "wide":
        X, y = datasets.make_classification(
            60, 400, n_informative=8, n_redundant=4, class_sep=1.5, random_state=0
        )
    else:
        X, y = SKLEARN[name](return_X_y=True)
    if n_rows is None or n_rows >= len(y):
        return X, y
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:n_rows])
    return X[rows], y[rows]


# -- recipes --------------------------------------------------------------------------------------

#: Rows of the tables, so that most recipes take seconds.
ROWS = {"cancer": 150, "diabetes": 150}
#: Options that make a recipe fast, or independent of time.
OPTIONS = {
    "boruta": {"n_estimators": 20, "n_rounds": 20},
    "boruta-regression": {"n_estimators": 20, "n_rounds": 20},
    "branch-and-bound-j3": {"max_seconds": None, "max_evaluations": 300},
    "forest-regression-rfe": {"n_estimators": 30},
    "forest-rfe": {"n_estimators": 30},
    "ga-knn": {"n_generations": 5},
}
#: Columns of the wide table for recipes that are slow on all 400, by the start of their names.
NARROW = {
    "nnfs|sfs-linear|branch-and-bound|.*-retrain|.*-joint": 40,
    "rmb-|span-|lasso-mlp|mlp-fspp-rfe|fspp[12]-rfe-permuted|fsmlp-|gated-|boosting-": 100,
    ".*forest-|annigma|moi-rfe|mi-pw|kwak": 100,
}
#: Cases that are not run, and why.
LEFT_OUT: dict[str, str] = {}


def describe(selection):
    """Return the result of a fitted selection."""
    return {
        "order": selection.order_,
        "support": np.flatnonzero(selection.support_),
        "scores": selection.scores_,
        "n_evaluations": selection.n_evaluations_,
    }


def make_recipe(name, **wanted):
    """Return a recipe with the given options, except those that it does not have."""
    options = dict(OPTIONS.get(name, {}))
    for option, value in wanted.items():
        try:
            tamis.recipe(name, **{option: value})
        except TamisError:
            continue
        options[option] = value
    return tamis.recipe(name, **options)


def run_recipe(old, name, place):
    """Fit a recipe. ``tamis.select`` sets the seeds for which the recipe has no option."""
    wanted = {"random_state": 0} | ({"n_features_to_select": 5} if place == "wide" else {})
    X, y = table(place, ROWS.get(place))
    if place == "wide":
        X = X[:, : next((n for begun, n in NARROW.items() if re.match(begun, name)), X.shape[1])]
    return describe(tamis.select(X, y, make_recipe(name, **wanted), random_state=0))


# -- paths ----------------------------------------------------------------------------------------

PATHS = {"SVCPathCV": "cancer", "SVRPathCV": "diabetes", "LSSVCPathCV": "cancer"}


def run_path(old, name, kernel):
    """Fit a search for C.

    The violation and the duality gap of the certificate are left out, because they are rounding
    errors. The curve is given by its breakpoints, merged if they differ only by rounding, and by
    its values halfway between them.
    """
    from tamis import svm

    X, y = table(PATHS[name], 120)
    found = getattr(svm, name)(kernel, cv=4).fit(scale(X[:, :8]), y)
    proof, ends = found.certificate_, found.curve_.breakpoints
    ends = ends[np.append(True, np.diff(np.log(ends)) > 1e-8)]
    return {
        "best_C": found.best_C_,
        "best_gamma": found.best_gamma_,
        "best_score": found.best_score_,
        "breakpoints": ends,
        "halfway": found.curve_(np.sqrt(ends[:-1] * ends[1:])),
        "certificate": {
            **{part: getattr(proof, part) for part in ("C", "value", "lower", "upper", "closed")},
            "interval": None if proof.interval is None else list(proof.interval),
        },
    }


# -- the automatic selection ----------------------------------------------------------------------

AUTO = {
    "iris": {"budget": 2},
    "wine": {"budget": 5},
    "cancer": {"budget": 2, "scoring": "roc_auc"},
    "diabetes": {"budget": 2, "size": "short"},
}


def run_auto(old, place):
    """Fit the automatic selection on 150 rows. Its plan depends on estimated costs, not on time."""
    from tamis.auto import Auto

    found = Auto(**AUTO[place], random_state=0).fit(*table(place, 150))
    errors = ("error_", "error_all_", "error_guess_", "error_lost_")
    return {
        "order": found.order_,
        "support": np.flatnonzero(found.support_),
        "reason": found.record_.reason,
        "path": found.path_,
        "model": found.model_,
        "curve": [list(point) for point in found.curve_],
        **{name.strip("_"): _parts(getattr(found, name)) for name in errors},
    }


def _parts(error):
    return None if error is None else error._asdict()


# -- the command line -----------------------------------------------------------------------------

COMMANDS = {
    "select": ["mrmr", "--features", "3", "--output", "ranking.csv"],
    "select-auto": ["--budget", "1s", "--seed", "0", "--folder", "found"],
    "compare": ["correlation", "mrmr", "--resamples", "4", "--seed", "0"],
    "tune": ["--folds", "4", "--seed", "0"],
}
FILES = {"wine": 6, "diabetes": 5}  # with their number of columns
#: Measured times end a line. Times in the plan of the automatic selection are costs.
MASKS = [
    (re.compile(r" +\d[\d.e+-]* ?(us|ms|s|min|h)$", re.MULTILINE), " <time>"),
    (re.compile(r"\S+\.py:\d+"), "<line of code>"),
]


def run_command(old, command, place):
    """Run a command on a CSV file in a temporary folder, and return its output and files."""
    X, y = table(place, 120)
    X = X[:, : FILES[place]]
    with tempfile.TemporaryDirectory() as folder:
        lines = [",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])]
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            lines.append(",".join(map(str, [*row, target])))
        Path(folder, "data.csv").write_text("\n".join(lines) + "\n")
        words = [command.split("-")[0], "data.csv", "--target", "y", *COMMANDS[command]]
        done = subprocess.run(
            [sys.executable, "-m", "tamis.cli", *words],
            capture_output=True,
            text=True,
            cwd=folder,
            env=_environment() | {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"},
        )
        files = sorted(p for p in Path(folder).rglob("*") if p.is_file())
        return {
            "exit": done.returncode,
            "stdout": _masked(done.stdout, folder),
            "stderr": _masked(done.stderr, folder),
            "files": [str(path.relative_to(folder)) for path in files],
            "ranking": [_cells(p.read_text()) for p in files if p.name == "ranking.csv"],
        }


def _cells(text):
    """Return the entries of a CSV file, with numbers converted."""
    rows = [line.split(",") for line in text.splitlines()]
    return [[float(c) if re.fullmatch(r"[-+.\de]+", c) else c for c in row] for row in rows]


def _masked(text, folder):
    text = text.replace(os.path.realpath(folder), "<folder>").replace(folder, "<folder>")
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def _environment():
    """Return the environment of a subprocess that imports the same tamis from any folder."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))
    }


# -- runs that are interrupted and resumed --------------------------------------------------------

RESUMED = ["Forward", "FloatingForward", "RecursiveElimination", "Genetic", "Then"]
RESUMED += ["StabilitySelection", "HonestSize"]


def make_resumed(name):
    """Return the selection of this name, not yet fitted."""
    from tamis import choice, criteria, search

    j3, fisher = criteria.Scatter("J3", ridge=1e-3), criteria.FisherScore()
    if name == "Forward":
        return search.Forward(criteria.MRMR(), n_features_to_select=6)
    if name == "FloatingForward":
        return search.FloatingForward(j3, n_features_to_select=6)
    if name == "RecursiveElimination":
        return search.RecursiveElimination(j3, n_features_to_select=4)
    if name == "Genetic":
        few = {"population_size": 12, "n_generations": 8, "random_state": 0}
        return search.Genetic(j3, n_features_to_select=5, **few)
    if name == "Then":
        first = search.Ranking(fisher, n_features_to_select=8)
        return search.Then(first, search.Forward(j3, n_features_to_select=4))
    if name == "StabilitySelection":
        return choice.StabilitySelection(search.Ranking(fisher), n_pairs=6, random_state=0)
    return choice.HonestSize(search.Forward(j3), random_state=0)


class Stop:
    """Callback that counts finished tasks, and stops a run after a given number."""

    def __init__(self, after=math.inf):
        self.after, self.seen = after, 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        """Return whether to stop."""
        self.seen += context.parent is not None
        return self.seen >= self.after


def run_resumed(old, name):
    """Interrupt a run halfway and resume it, and also resume the stored record if there is one.

    The record is stored for the run that compares. It is not compared itself.
    """
    from tamis.contract import Record

    X, y = table("wine")
    whole = make_resumed(name).set_callbacks(watch := Stop()).fit(X, y)
    cut = make_resumed(name).set_callbacks(Stop(watch.seen // 2)).fit(X, y).record_
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record.json")
        cut.save(path)
        plain = json.loads(path.read_text())
        resumed = make_resumed(name).resume(X, y, record=Record.load(path))
    stored = Record.from_dict(plain if old is None else old["record"])
    return {
        "whole": _ends(whole),
        "resumed": _ends(resumed),
        "stored record resumed": _ends(make_resumed(name).resume(X, y, record=stored)),
        "cut": {"finished": cut.finished, "n_tasks": watch.seen, "n_steps": len(cut.trace)},
        "record": plain,
    }


def _ends(selection):
    return {"order": selection.order_, "support": np.flatnonzero(selection.support_)}


# -- without numba --------------------------------------------------------------------------------

WITHOUT = ["mrmr", "jmi", "hsic-forward"]


def run_without(old, name, place):
    """Fit a recipe in a process that cannot import numba."""
    code = (
        "import sys, json; sys.modules['numba'] = None; from tests import behaviour as b; "
        f"print(json.dumps(b.attempt('recipes/{name}/{place}', None)[1]))"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env=_environment()
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return json.loads(done.stdout)


# -- all cases ------------------------------------------------------------------------------------

SECTIONS = {
    "recipes": run_recipe,
    "paths": run_path,
    "auto": run_auto,
    "command": run_command,
    "resume": run_resumed,
    "without-numba": run_without,
}


def keys():
    """Return the names of all cases: the section, then the arguments of its function."""
    return [
        *(f"recipes/{name}/{place}" for name in names() for place in TABLES),
        *(f"paths/{name}/{kernel}" for name in PATHS for kernel in ("linear", "rbf")),
        *(f"auto/{place}" for place in AUTO),
        *(f"command/{command}/{place}" for command in COMMANDS for place in FILES),
        *(f"resume/{name}" for name in RESUMED),
        *(f"without-numba/{name}/{place}" for name in WITHOUT for place in ("wine", "wide")),
    ]


def attempt(key, old):
    """Return name, result and CPU time of a case.

    If it raises an exception, the result is its type.
    """
    section, *arguments = key.split("/")
    before = sum(os.times()[:4])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = plain(SECTIONS[section](old, *arguments))
        except Exception as error:
            answer = {"exception": type(error).__name__}
    said = {w.category.__name__ for w in caught if w.category.__module__.startswith("tamis")}
    if said:
        answer["warnings"] = sorted(said)
    return key, answer, sum(os.times()[:4]) - before


def plain(value):
    """Convert numpy arrays and scalars to plain values, and NaN or infinity to text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def run(wanted, old, n_jobs):
    """Return the results and CPU times of the requested cases."""
    answers, seconds = {}, {}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = "1"  # for child processes: sums of threads differ by rounding
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        for key, answers[key], seconds[key] in pool.map(attempt, wanted, map(old.get, wanted)):
            done = f"{len(answers)}/{len(wanted)}"
            print(f"{done} {seconds[key]:6.1f} s {key}", file=sys.stderr, flush=True)
    return answers, seconds


# -- differences ----------------------------------------------------------------------------------


def same(old, new):
    """Return whether two simple values are equal, numbers up to rounding."""
    numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in (old, new)]
    if all(numbers):
        return math.isclose(old, new, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(old) is type(new) and old == new


def differences(old, new, place):
    """Yield position, old value and new value of each difference.

    Of a plain list, only the first different entry is yielded.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            if not (place.startswith("resume/") and name == "record"):
                yield from differences(old.get(name), new.get(name), f"{place}: {name}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield place, f"{len(old)} entries", f"{len(new)} entries"
            return
        found = [list(differences(*pair, "")) for pair in zip(old, new, strict=True)]
        wrong = [k for k, one in enumerate(found) if one]
        if wrong:
            where, *values = found[wrong[0]][0]
            more = f", {len(wrong)} of {len(old)} differ" if len(old) > 1 else ""
            yield f"{place}[{wrong[0]}{more}]{where}", *values
    elif not same(old, new):
        yield place, old, new


def report(place, old, new):
    """Print a difference. Text of several lines is printed as a diff, anything else in one line."""
    if isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        print(place)
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "old", "new", lineterm="")
        print("\n".join(f"    {line}" for line in lines))
        return
    shown = [
        text if len(text := repr(one)) <= SHOWN else f"{text[:SHOWN]}..." for one in (old, new)
    ]
    print(f"{place}: {shown[0]} -> {shown[1]}")


def compare(old, new):
    """Print the differences and their number in each section. Return how many cases differ."""
    differing = Counter()
    for key in dict.fromkeys([*old, *new]):
        section = key.split("/")[0]
        if key not in old or key not in new:
            found = [(key, "a case" if key in old else "none", "a case" if key in new else "none")]
        else:
            found = list(differences(old[key], new[key], key))
        for one in found:
            report(*one)
        differing[section] += bool(found)
    total = Counter(key.split("/")[0] for key in new)
    for section in differing:
        print(f"{section}: {differing[section]} of {total[section]} cases differ")
    return sum(differing.values())


def main():
    """Store or compare. Exit with 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("store", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="cases whose name starts so")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    wanted = [key for key in keys() if key.startswith(asked.only) and key not in LEFT_OUT]
    old = json.loads(asked.file.read_text()) if asked.action == "compare" else {}
    old = {key: answer for key, answer in old.items() if key.startswith(asked.only)}
    new, seconds = run(wanted, old, asked.jobs)
    print(f"{len(new)} cases, {sum(seconds.values()):.0f} s of processor time; the longest:")
    for key in sorted(seconds, key=seconds.get)[:-11:-1]:
        print(f"  {seconds[key]:5.1f} s {key}")
    for key, reason in LEFT_OUT.items():
        print(f"left out: {key}: {reason}")
    if asked.action == "store":
        kept = json.loads(asked.file.read_text()) if asked.only and asked.file.exists() else {}
        asked.file.write_text(json.dumps(kept | new, indent=0) + "\n")
        return 0
    return int(compare(old, new) > 0)


if __name__ == "__main__":
    sys.exit(main())
