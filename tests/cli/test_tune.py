"""``tamis tune``: the printed best C, compared with the search itself and with GridSearchCV."""

import csv
import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import (
    GridSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis.cli import tune
from tamis.cli.progress import ProgressBar
from tamis.cli.tune import _format_C, axis_text, best_between
from tamis.report.tuned_svm import interval_around
from tamis.svm.curves.certificate import certify
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.search import classification

DIABETES = load_diabetes()


@pytest.fixture
def cancer(folder):
    """A table of two classes in the folder."""
    X, y = load_breast_cancer(return_X_y=True)
    names = [f"x{j}" for j in range(6)]
    frame = pl.DataFrame(X[:160, :6], schema=names).with_columns(pl.Series("y", y[:160]))
    frame.write_csv("cancer.csv")
    return X[:160, :6], y[:160]


@pytest.fixture
def sugar(folder):
    """A table with a numeric target in the folder."""
    X, y = DIABETES.data[:80, :5], DIABETES.target[:80]
    pl.DataFrame(X, schema=DIABETES.feature_names[:5]).with_columns(
        pl.Series("progress", y)
    ).write_csv("sugar.csv")
    return X, y


def line(result, word):
    """What stands behind a word, on as many lines as it takes."""
    lines = result.stdout.splitlines()
    first = next(i for i, text in enumerate(lines) if text.startswith(f"  {word:<12}"))
    more = []
    for text in lines[first + 1 :]:
        if not text.startswith(" " * 14):
            break
        more.append(text.strip())
    return " ".join([lines[first][14:], *more])


def test_the_result_agrees_with_the_folds(tamis, cancer):
    X, y = cancer
    result = tamis("tune", "cancer.csv", "-t", "y", "--folds", 4, "--seed", 3, "-o", "curve.json")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("cancer.csv: 160 rows, 6 columns, target y (2 classes)\n")
    found = json.loads(Path("curve.json").read_text())
    cv = RepeatedStratifiedKFold(n_splits=4, n_repeats=1, random_state=3)
    chain = make_pipeline(StandardScaler(), SVC(tol=1e-8))
    powers = [2.0**k for k in range(-9, 9)]
    grid = GridSearchCV(chain, {"svc__C": [*powers, found["C"]]}, cv=cv).fit(X, y)
    means = grid.cv_results_["mean_test_score"]
    assert found["best_score"] == means[-1]
    assert found["best_score"] >= means.max()
    assert found["grid"]["score"] == means[:-1].max()
    assert found["grid"]["C"] == powers[int(np.argmax(means[:-1]))]
    low, high = found["interval"]
    assert low < found["C"] < high
    assert line(result, "best C").startswith(f"{found['C']:.9g}; every C from ")
    assert line(result, "error").startswith(f"{100 * found['certificate']['value']:.2f} ± ")
    assert found["certificate"]["value"] == pytest.approx(1 - means[-1])
    assert line(result, "proved") == "no C from 0.00195 to 256 is better"
    assert result.stdout.endswith(
        f"In Python:\n  make_pipeline(StandardScaler(), SVC(C={found['C']:.9g}))\n"
    )
    assert found["certificate"]["proved"] is True
    assert found["curve"][0]["C_low"] == pytest.approx(2**-9)
    values = [piece["best"] for piece in found["curve"]]
    assert min(values) == pytest.approx(1 - found["best_score"])


def test_regression_has_a_tube_and_a_range_of_its_own(tamis, sugar):
    X, y = sugar
    result = tamis("tune", "sugar.csv", "-t", "progress", "--kernel", "linear", "-o", "curve.json")
    assert result.exit_code == 0, result.output
    found = json.loads(Path("curve.json").read_text())
    assert found["epsilon"] == pytest.approx(0.1 * y.std(), rel=0.1)
    assert found["curve"][0]["C_low"] <= y.std() / 256
    machine = SVR(kernel="linear", epsilon=found["epsilon"], tol=1e-8)
    grid = {"svr__C": [found["best_C"], 0.9 * found["best_C"], 1.1 * found["best_C"]]}
    cv = RepeatedKFold(n_splits=5, n_repeats=1, random_state=0)
    peer = GridSearchCV(
        make_pipeline(StandardScaler(), machine), grid, cv=cv, scoring="neg_mean_squared_error"
    ).fit(X, y)
    assert peer.best_index_ == 0
    assert found["best_score"] == pytest.approx(peer.best_score_, rel=1e-6)
    assert "has MSE below" in line(result, "proved")
    assert re.match(r"\d+ ± \d+ \(standard error over", line(result, "MSE"))
    assert "within 1 % of the best" in line(result, "best C")
    squares = tamis("tune", "sugar.csv", "-t", "progress", "--scoring", "r2", "--epsilon", 5)
    assert "R²" in squares.stdout
    assert "epsilon = 5" in squares.stdout


def test_several_gammas_and_processes_give_the_same_result(tamis, cancer):
    words = ["tune", "cancer.csv", "-t", "y", "--gamma", "0.01,0.1", "--gamma", "scale"]
    alone = tamis(*words)
    assert alone.exit_code == 0, alone.output
    assert line(alone, "best gamma") in ("0.01", "0.1", "scale")
    assert "with any of the 3 gammas" in line(alone, "proved")
    assert tamis(*words, "--jobs", 2).stdout == alone.stdout
    written = tamis(*words, "--output", "curve.csv")
    assert "the curve is in curve.csv." in written.stderr
    with open("curve.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["gamma"] for row in rows} == {"0.01", "0.1", "scale"}
    assert tamis(*words, "--output", "again.csv", "--quiet").stderr == ""


def test_text_missing_values_and_groups(tamis, frame):
    words = frame.with_columns(
        pl.Series("site", ["a", "b"] * 89),
        pl.Series("batch", np.arange(178) // 4),
        pl.Series("gap", [None, 1.5] * 89),
    )
    words.write_csv("mixed.csv")
    args = ["tune", "mixed.csv", "-t", "kind", "--kernel", "linear", "--groups", "batch"]
    result = tamis(*args, "--folds", 3)
    assert result.exit_code == 0, result.output
    assert "encoded and standardised on training rows" in " ".join(result.stdout.split())
    assert "make_pipeline(TableEncoder(), StandardScaler(), SVC(" in result.stdout
    assert "8 columns" in result.stdout


def test_a_sample_stands_for_many_rows(tamis, cancer):
    result = tamis("tune", "cancer.csv", "-t", "y", "--sample", 60)
    assert result.stdout.startswith("cancer.csv: 60 rows drawn from 160 rows, ")
    assert tamis("tune", "cancer.csv", "-t", "y", "--sample", 60).stdout == result.stdout


def test_too_many_rows_are_refused_with_a_way_out(cancer, refused, monkeypatch):
    monkeypatch.setattr(tune, "MAX_SAMPLES", 100)
    sentence = refused("tune", "cancer.csv", "-t", "y")
    assert re.search(r"for up to 100 rows, but cancer.csv has 160. Write --sample 100", sentence)
    monkeypatch.setattr(tune, "free_memory", lambda: 1.0)
    assert "--sample" in refused("tune", "cancer.csv", "-t", "y")


def test_without_blocks_the_curve_is_of_plain_signs(tamis, cancer, monkeypatch):
    result = tamis("tune", "cancer.csv", "-t", "y")
    assert "▲" in result.stdout
    assert "\x1b" not in result.stdout

    class Plain(type(tune.stdout())):
        encoding = "ascii"

    monkeypatch.setattr(tune, "stdout", lambda: Plain(width=80, highlight=False))
    plain = tamis("tune", "cancer.csv", "-t", "y").stdout
    assert "^" in plain
    assert "#" in plain
    assert not re.search("[▁▂▃▄▅▆▇█▲┤]", plain)


def test_the_curve_is_omitted_if_every_C_is_equally_good(tamis, folder):
    pl.DataFrame(
        {"a": [-1.0, -2.0, -1.5, 1.0, 2.0, 1.5] * 5, "y": [0, 0, 0, 1, 1, 1] * 5}
    ).write_csv("easy.csv")
    result = tamis("tune", "easy.csv", "-t", "y")
    assert "or any other: all from" in line(result, "best C")
    assert "┤" not in result.stdout


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ([], "Which column is the target?"),
        (["-t", "z"], "no column 'z'"),
        (["-t", "y", "--kernel", "poly"], "--kernel needs linear or rbf"),
        (["-t", "y", "--gamma", "wide"], "--gamma needs positive numbers"),
        (["-t", "y", "--gamma", "-1"], "gamma to be a number above 0"),
        (["-t", "y", "--gamma", "1", "--kernel", "linear"], "a linear kernel has none"),
        (["-t", "y", "--c-range", "5"], "--c-range needs"),
        (["-t", "y", "--c-range", "5,1"], "--c-range needs"),
        (["-t", "y", "--scoring", "neg_log_loss"], "Use one of accuracy"),
        (["-t", "y", "--scoring", "wrong"], "scoring among"),
        (["-t", "y", "--epsilon", "1"], "--epsilon is for a numeric target"),
        (["-t", "y", "--folds", "900"], "--folds 900 needs at least 900 rows, got 160"),
        (["-t", "y", "--groups", "w"], "no column 'w'"),
        (["-t", "y", "--groups", "x1", "--repeats", "2"], "leave out --groups"),
        (["-t", "y", "--output", "curve.txt"], "needs the ending .csv or .json"),
        (["-t", "y", "--output", "cancer.csv"], "holds the data"),
        (["-t", "x0", "--scoring", "f1"], "squared or absolute errors"),
    ],
)
def test_invalid_options_of_tune_are_refused(refused, cancer, args, sentence):
    assert sentence in refused("tune", "cancer.csv", *args)


def test_a_class_of_one_row_is_refused(refused, folder):
    pl.DataFrame({"a": np.arange(30.0) % 7, "y": [2, *[0, 1] * 14, 0]}).write_csv("single.csv")
    assert "'2' has a single row" in refused("tune", "single.csv", "-t", "y")


@pytest.mark.posix
def test_an_interrupt_prints_the_best_C_so_far(tamis, cancer, monkeypatch):
    shown = ProgressBar.__call__

    def count(self, done, total):
        shown(self, done, total)
        if done == after:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ProgressBar, "__call__", count)
    after = 6
    result = tamis("tune", "cancer.csv", "-t", "y", "--gamma", "0.1,1")
    assert result.exit_code == 130
    assert result.stdout == ""
    sentence = "tamis: stopped after 6 of 10 paths. Found on 5 folds with gamma = 0.1: error "
    assert result.stderr.startswith(sentence)

    after = 0
    result = tamis("tune", "cancer.csv", "-t", "y")
    assert result.exit_code == 130
    assert result.stderr == "tamis: stopped after 0 of 5 paths; no result yet.\n"


def test_the_drawn_curve_is_the_best_of_each_column():
    rng = np.random.default_rng(0)
    for kind in ("steps", "bent"):
        C = np.sort(10.0 ** rng.uniform(-2, 2, 30))
        values = rng.random(29)
        if kind == "steps":
            curve = ValidationCurve.steps(C, values, np.append(values, 1.0))
        else:
            ends = rng.random(30) + 1
            middle = np.minimum(ends[1:], ends[:-1]) - rng.random(29)
            curve = ValidationCurve(C, np.column_stack([ends[:-1], middle, ends[1:]]), ends)
        edges = np.geomspace(C[0], C[-1], 11)
        found = best_between(curve, edges)
        for value, low, high in zip(found, edges[:-1], edges[1:], strict=True):
            dense = curve(np.geomspace(low * (1 + 1e-9), high * (1 - 1e-9), 4001))
            assert value <= dense.min() + (1e-9 if kind == "steps" else 0.5)
            if kind == "steps":
                assert value >= dense.min() - 1e-9


def test_the_interval_surrounds_the_best_C_of_a_curve():
    C = np.geomspace(0.01, 100, 401)
    ends = 1 + np.log10(C) ** 2
    curve = ValidationCurve(C, np.column_stack([ends[:-1], ends[1:]]), ends)
    found = interval_around(curve, 1.0, 0.25)
    assert found.low == pytest.approx(10**-0.5, rel=0.05)
    assert found.high == pytest.approx(10**0.5, rel=0.05)
    assert (curve(np.geomspace(found.low, found.high, 999)) <= 1.25 + 1e-9).all()
    assert interval_around(curve, 1.0, 99.0)[:2] == (C[0], C[-1])


def test_numbers_and_axes_are_formatted():
    assert [_format_C(x) for x in (0.25, 2048.0, 123456.0, 2.5e9, 1e-7)] == [
        "0.25", "2048", "123456", "2.5e+09", "1e-07"
    ]  # fmt: skip
    assert (
        axis_text(np.geomspace(0.01, 100, 41)) == "0.01      0.1       1         10        100  C"
    )


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("a value of 0.01 cannot be excluded elsewhere", "is better: error 1.00 % cannot be excl"),
        ("a path ended before the end of the range", "is better: a path ended before the end"),
    ],
)
def test_what_is_not_proved_is_reported_once(tamis, cancer, monkeypatch, reason, said):
    def doubtful(*args):
        return replace(certify(*args), closed=False, reason=reason, lower=0.01)

    monkeypatch.setattr(classification, "certify", doubtful)
    result = tamis("tune", "cancer.csv", "-t", "y")
    assert result.exit_code == 0
    assert line(result, "not proved").startswith("that no C from 0.00195 to 256 " + said)
    assert "certify" not in result.stderr


def test_repeats_do_not_pass_for_more_rows(tamis, cancer):
    tamis("tune", "cancer.csv", "-t", "y", "--repeats", 3, "--folds", 4, "-o", "curve.json")
    found = json.loads(Path("curve.json").read_text())
    X, y = cancer
    cv = RepeatedStratifiedKFold(n_splits=4, n_repeats=3, random_state=0)
    chain = make_pipeline(StandardScaler(), SVC(C=found["C"], tol=1e-8))
    scores = cross_val_score(chain, X, y, cv=cv)
    assert found["best_score"] == pytest.approx(scores.mean())
    assert found["standard_error"] == pytest.approx(scores.std(ddof=1) / 2)


def test_a_column_that_is_kept_in_a_mixed_table_is_tuned_on(tamis, folder):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pl.DataFrame(
        {
            "town": rng.choice(["Aix", "Bonn"], 60),
            "id": (rng.permutation(60) + 1000 * y).tolist(),  # unique, and determines the class
            "y": np.array(["no", "yes"])[y],
        }
    )
    frame.write_csv("mixed.csv")
    common = ("tune", "mixed.csv", "-t", "y", "--kernel", "linear", "-q")
    without, kept = tamis(*common), tamis(*common, "--keep", "id")
    assert "make_pipeline(TableEncoder(), StandardScaler()" in without.stdout
    assert "make_pipeline(TableEncoder(keep=['id']), StandardScaler()" in kept.stdout
    assert "error       0.00 %" in kept.stdout
    assert "error       0.00 %" not in without.stdout
