"""What tamis answers, stored so that two versions of it can be compared.

    python -m benchmarks.behaviour store before.json
    python -m benchmarks.behaviour compare before.json after.json

Stored are every recipe on five tables, the searches for C, Auto on four tables, what the command
line prints, selections resumed halfway, and three recipes where numba cannot be imported. Numbers
are equal if they agree to 1e-10 of the larger one.
"""

import json
import re
import subprocess
import sys
import tempfile
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

#: Relative difference from which on two numbers differ.
TOLERANCE = 1e-10
#: Recipes that are run where numba cannot be imported.
WITHOUT_NUMBA = ("mrmr", "jmi", "hsic-forward")


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows of four bundled tables, and a wide table of classes."""
    loaders = {
        "iris": load_iris, "wine": load_wine, "breast": load_breast_cancer,
        "diabetes": load_diabetes,
    }  # fmt: skip
    found = {}
    for name, loader in loaders.items():
        X, y = loader(return_X_y=True)
        rows = np.random.default_rng(0).permutation(len(y))[:150]
        found[name] = X[rows], y[rows]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 400))
    found["wide"] = X, (X[:, 3] + X[:, 70] + 0.5 * rng.normal(size=60) > 0).astype(int)
    return found


def answer(selection: Any) -> dict[str, Any]:
    """What a fitted selection found."""
    return {
        "support": np.flatnonzero(selection.support_).tolist(),
        "order": selection.order_.tolist(),
        "scores": selection.scores_.tolist(),
        "values": selection.trace_.values.tolist(),
        "evaluations": int(selection.n_evaluations_),
        "reason": selection.choice_.reason,
    }


def of_recipes() -> Iterator[tuple[str, Any]]:
    """Every recipe on every table; a recipe for another kind of target is refused."""
    from tamis.recipes import names, select

    for table, (X, y) in tables().items():
        for name in names():
            yield (
                f"recipe {name} on {table}",
                lambda X=X, y=y, name=name: answer(select(X, y, name, random_state=0)),
            )


def of_paths() -> Iterator[tuple[str, Any]]:
    """Curves and certificates of the searches for C."""
    from tamis.svm import LSSVCPathCV, SVCPathCV, SVRPathCV

    def found(search: Any, table: str) -> dict[str, Any]:
        search.fit(*tables()[table])
        proof = search.certificate_
        return {
            "C": float(search.best_C_), "closed": bool(proof.closed), "value": float(proof.value),
            "sentence": str(proof), "curve": search.curve_(np.geomspace(2**-9, 2**8, 300)).tolist(),
        }  # fmt: skip

    asked = {
        "wine": [SVCPathCV("rbf"), SVCPathCV("linear", class_weight="balanced")],
        "breast": [SVCPathCV("rbf", scoring="roc_auc"), LSSVCPathCV()],
        "diabetes": [SVRPathCV("rbf"), SVRPathCV("linear", scoring="r2")],
    }
    for table, searches in asked.items():
        for search in searches:
            yield f"path {search!r} on {table}", lambda s=search, t=table: found(s, t)


def of_auto() -> Iterator[tuple[str, Any]]:
    """The automatic default."""
    import tamis

    def found(table: str) -> dict[str, Any]:
        X, y = tables()[table]
        auto = tamis.select(X, y, random_state=0)
        return answer(auto) | {"curve": [list(point) for point in auto.curve_]}

    for table in ("wine", "breast", "diabetes", "wide"):
        yield f"auto on {table}", lambda table=table: found(table)


def of_commands() -> Iterator[tuple[str, Any]]:
    """What the command line prints; times are left out."""
    from tamis.datasets import make_mixed

    folder = Path(tempfile.mkdtemp())
    X, y = tables()["breast"]
    pd.DataFrame(X[:, :8], columns=[f"c{j}" for j in range(8)]).assign(y=y).to_csv(
        folder / "numbers.csv", index=False
    )
    mixed = make_mixed(120, random_state=0)
    mixed.to_frame().to_pandas().assign(y=mixed.y).to_csv(folder / "mixed.csv", index=False)
    for file in ("numbers.csv", "mixed.csv"):
        for command in (
            f"select {file} -t y mrmr", f"select {file} -t y --dry-run",
            f"select {file} -t y --budget 1s --force",
            f"compare {file} -t y mrmr jmi --resamples 3", f"tune {file} -t y",
        ):  # fmt: skip
            yield f"tamis {command}", lambda command=command: printed(command.split(), folder)


def printed(command: list[str], folder: Path) -> str:
    """Text of a command, with numbers of seconds blanked."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("tamis")), *command],
        cwd=folder, capture_output=True, text=True, env={"COLUMNS": "100", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    text = f"{done.stdout}\n--\n{done.stderr}\nexit {done.returncode}"
    return re.sub(r"[\d.]+ (s|ms|min)\b", "# s", text)


def of_resumed() -> Iterator[tuple[str, Any]]:
    """Records cut halfway, and what they resume to."""
    import tamis
    from tamis.contract import Record

    def found(name: str, table: str) -> dict[str, Any]:
        X, y = tables()[table]
        whole = tamis.select(X, y, name, random_state=0)
        record = Record.from_dict(json.loads(json.dumps(whole.record_.to_dict())))
        half = record.trace.head(len(record.trace) // 2)
        record = replace(record, trace=half, finished=False, chosen=0)
        return answer(tamis.recipe(name).resume(X, y, record=record))

    for name in ("mrmr", "sffs-j3", "svm-rfe", "forest-rfe", "ga-knn", "sbs-j3"):
        yield f"resumed {name}", lambda name=name: found(name, "wine")


def of_no_numba() -> Iterator[tuple[str, Any]]:
    """Recipes in a process that cannot import numba."""
    code = (
        "import sys, json; sys.modules['numba'] = None\n"
        "from benchmarks.behaviour import answer, tables; import tamis\n"
        "print(json.dumps(answer(tamis.select(*tables()['wine'], sys.argv[1], random_state=0))))"
    )

    def found(name: str) -> Any:
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.splitlines()[-1]

    for name in WITHOUT_NUMBA:
        yield f"without numba: {name}", lambda name=name: found(name)


PARTS = (of_paths, of_auto, of_commands, of_resumed, of_no_numba, of_recipes)


def store(file: Path, only: str) -> None:
    """Compute every answer and write them; an error is stored by its type."""
    found: dict[str, Any] = {}
    for part in PARTS:
        for name, compute in part():
            if not re.search(only, name):
                continue
            begun = process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found[name] = compute()
            except Exception as error:
                found[name] = {"error": type(error).__name__}
            print(f"{process_time() - begun:6.1f} s  {name}", flush=True)
            file.write_text(json.dumps(found))


def differences(one: Any, two: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in one.keys() | two.keys():
            yield from differences(one.get(key), two.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            yield from differences(a, b, f"{path}[{k}]")
    elif isinstance(one, int | float) and isinstance(two, int | float):
        if not np.isclose(one, two, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            yield f"{path}: {one!r} != {two!r}"
    elif one != two:
        yield f"{path}: {str(one)[:300]!r} != {str(two)[:300]!r}"


def compare(one: Path, two: Path) -> int:
    """Print the differences of two stored files; the number of answers that differ."""
    before, after = (json.loads(file.read_text()) for file in (one, two))
    n_different = 0
    for name in before.keys() | after.keys():
        found = list(differences(before.get(name), after.get(name)))
        n_different += bool(found)
        for line in found[:3]:
            print(f"{name}{line}")
    print(f"{len(before.keys() & after.keys())} answers, {n_different} of them differ")
    return n_different


def main() -> None:
    """Store or compare."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["store", "compare"])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--only", default="", help="regular expression of the names to store")
    asked = parser.parse_args()
    if asked.action == "store":
        store(asked.files[0], asked.only)
    else:
        sys.exit(bool(compare(*asked.files)))


if __name__ == "__main__":
    main()
