"""The command ``tamis compare``: its numbers are those of ``evaluate``, whatever the table."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis.contract.units import Grouping
from tamis.criteria import MRMR, Correlation, Scatter
from tamis.datasets import make_mixed
from tamis.evaluation import (
    Realizations,
    Standings,
    Store,
    corrected_t,
    evaluate,
    friedman,
    holm,
    stability,
)
from tamis.exceptions import InvalidStore
from tamis.meta.inner_search import walk_of
from tamis.recipes import prepare
from tamis.report import compared as compared_page
from tamis.report.contest import contestant
from tamis.search import FloatingForward, Forward, Ranking
from tamis.table import TableEncoder, TableSelector, read
from tamis.table.rows import FrameSource, frame_rows

FEW = ("--resamples", 4, "--quiet")
J3 = 'Forward(Scatter("J3"))'


@pytest.fixture
def compared(tamis, folder):
    """Run the command and give what it wrote as JSON."""

    def run(*args):
        result = tamis("compare", *args, *FEW, "-o", "found.json")
        assert result.exit_code == 0, result.output
        return json.loads((folder / "found.json").read_text()), result.stdout

    return run


def by_hand(frame, methods, sizes, estimator=None, **plan):
    """The scores of realizations by method and size, from ``evaluate`` itself."""
    X, y = frame.drop("kind").to_numpy(), frame["kind"].to_numpy()
    return evaluate(
        methods,
        {"wine.csv": (X, y.astype(str))},
        Realizations(4, **{"train": 0.75, "stratify": True} | plan),
        estimators=RidgeClassifier() if estimator is None else estimator,
        sizes=sizes,
    )


def test_the_numbers_are_those_of_evaluate(compared, frame):
    found, _ = compared("wine.csv", "-t", "kind", "mrmr", J3, "-k", 5)
    (table,) = found["tables"]
    assert table["sizes"] == [1, 2, 3, 4, 5]
    methods = {
        "mrmr": Forward(MRMR(task="classification"), n_features_to_select=5),
        J3: Forward(Scatter("J3"), n_features_to_select=5),
    }
    expected = by_hand(frame, methods, [1, 2, 3, 4, 5])
    rows = {row["method"]: row for row in table["methods"]}
    for name in methods:
        for point in rows[name]["curve"]:
            values = list(expected.values("error", name, size=point["size"]).values())
            assert point["mean"] == pytest.approx(np.mean(values), abs=0)
            spread = np.std(values, ddof=1) * np.sqrt(1 / 4 + expected.test_ratio())
            assert point["error"] == pytest.approx(spread)
        assert rows[name]["stability"]["value"] == pytest.approx(
            stability(expected.supports(name, size=int(rows[name]["columns"]))).nogueira
        )


def test_a_resample_is_scored_at_the_size_that_is_best_on_the_others(compared, frame):
    found, _ = compared("wine.csv", "-t", "kind", "mrmr", "correlation")
    methods = {
        "mrmr": Forward(MRMR(task="classification"), n_features_to_select=6),
        "correlation": Ranking(Correlation()),
    }
    expected = by_hand(frame, methods, range(1, 7))
    rows = {row["method"]: row for row in found["tables"][0]["methods"]}
    scores = {}
    for name in methods:
        table = np.array(
            [list(expected.values("error", name, size=k).values()) for k in range(1, 7)]
        )
        chosen = [np.delete(table, i, axis=1).mean(axis=1).argmin() for i in range(4)]
        scores[name] = [table[chosen[i], i] for i in range(4)]
        assert list(rows[name]["scores"].values()) == scores[name]
        assert rows[name]["columns"] == table.mean(axis=1).argmin() + 1
        assert rows[name]["mean"] == pytest.approx(np.mean(scores[name]))
    tests = {frozenset((t["first"], t["second"])): t for t in found["tables"][0]["tests"]}
    one = tests[frozenset(methods)]
    assert one["p_value"] == pytest.approx(
        corrected_t(scores["mrmr"], scores["correlation"], expected.test_ratio()).p_value
    )
    adjusted = holm([test["p_value"] for test in tests.values()])
    assert [test["p_adjusted"] for test in tests.values()] == pytest.approx(adjusted)


def test_all_columns_and_the_majority_class_are_baselines(compared, frame):
    found, text = compared("wine.csv", "-t", "kind", "mrmr", "--estimator", "GaussianNB()")
    rows = {row["method"]: row for row in found["tables"][0]["methods"]}
    expected = by_hand(frame, {"all": make_pipeline(GaussianNB())}, "own", GaussianNB())
    assert list(rows["all columns"]["scores"].values()) == list(
        expected.values("error", "all").values()
    )
    assert rows["baseline"]["mean"] > 0.5
    assert re.search("All columns: .*Baseline: ", text, re.DOTALL)
    assert "GaussianNB()" in text


def test_a_mixed_table_is_encoded_inside_the_training_parts(compared, folder):
    table = make_mixed(120, random_state=0, like="incomes")
    frame = table.to_frame()
    frame = frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame)
    frame.with_columns(pl.Series("y", np.asarray(table.y))).write_csv("mixed.csv")
    found, _ = compared("mixed.csv", "-t", "y", "ridge-rfe", "-k", 2)
    (one,) = found["tables"]
    row = one["methods"][0]
    again = read(folder / "mixed.csv", "y")
    assert not again.is_plain
    data = again.labelled()
    method = TableSelector(prepare("ridge-rfe", data.y, n_features_to_select=1, task=data.task))
    expected = evaluate(
        {"ridge-rfe": method},
        {"mixed.csv": FrameSource("mixed.csv", frame_rows(data.X, data.y, "mixed.csv"))},
        Realizations(4, train=0.75, stratify=True),
        estimators=make_pipeline(TableEncoder(), StandardScaler(), RidgeClassifier()),
        sizes=[1, 2],
        normalise=False,
    )
    for point in row["curve"]:
        values = expected.values("error", "ridge-rfe", size=point["size"]).values()
        assert point["mean"] == np.mean(list(values))


def test_a_real_target_is_measured_by_the_root_of_squares(compared, frame):
    found, text = compared("wine.csv", "-t", frame.columns[0], "correlation", "--drop", "kind")
    assert found["metric"] == "rmse"
    assert "RMSE of Ridge()" in text
    data = frame.drop("kind", frame.columns[0]).to_numpy()
    expected = evaluate(
        Ranking(Correlation()),
        {"wine.csv": (data, frame[:, 0].to_numpy())},
        Realizations(4, train=0.75, stratify=False),
        "mse",
        estimators=Ridge(),
        sizes=[2],
    )
    point = found["tables"][0]["methods"][0]["curve"][1]
    roots = [np.sqrt(score.value) for score in expected.rows()]
    assert point["mean"] == pytest.approx(np.mean(roots))


def test_several_tables_are_ranked(compared, frame):
    for i in range(3):
        frame[i::2].write_csv(f"part{i}.csv")
    files = [f"part{i}.csv" for i in range(3)]
    found, text = compared(*files, "-t", "kind", "mrmr", "correlation", "fisher-score", "-k", 2)
    means = [
        [
            row["mean"]
            for name in ("mrmr", "correlation", "fisher-score")
            for row in one["methods"]
            if row["method"] == name
        ]
        for one in found["tables"]
    ]
    expected = friedman(means, ["mrmr", "correlation", "fisher-score"])
    assert list(found["ranks"]["ranks"].values()) == expected.ranks.tolist()
    assert found["ranks"]["critical_difference"] == expected.critical_difference
    assert "Mean ranks over 3 tables" in text


def test_a_method_that_decides_is_measured_with_what_it_keeps(compared, frame):
    text = "Forward(MRMR(), n_features_to_select=2)"
    found, _ = compared("wine.csv", "-t", "kind", text, "correlation", "-k", 3)
    rows = {row["method"]: row for row in found["tables"][0]["methods"]}
    assert rows[text]["curve"] == []
    assert rows[text]["columns"] == 2
    method = Forward(MRMR(task="classification"), n_features_to_select=2)
    expected = by_hand(frame, {text: method}, "own").values("error", text)
    assert list(rows[text]["scores"].values()) == list(expected.values())


def test_a_method_that_selects_nothing_has_the_error_of_the_baseline(compared, folder):
    rng = np.random.default_rng(0)
    noise = pl.DataFrame(rng.normal(size=(40, 3)), schema=["a", "b", "c"])
    noise.with_columns(pl.Series("y", ["p", "q"] * 20)).write_csv("noise.csv")
    method = "StabilitySelection(Ranking(Correlation()))"
    found, text = compared("noise.csv", "-t", "y", method, "correlation")
    rows = {row["method"]: row for row in found["tables"][0]["methods"]}
    assert rows[method]["columns"] == 0
    assert rows[method]["scores"] == rows["baseline"]["scores"]
    assert rows[method]["stability"] is None
    assert "failed" not in text


def test_a_method_that_fails_has_a_row_with_its_error(compared):
    found, text = compared("wine.csv", "-t", "kind", "svr-rfe", "correlation")
    (failed,) = found["tables"][0]["failed"]
    assert failed["method"] == "svr-rfe"
    assert "needs a numeric target" in failed["sentence"]
    assert "svr-rfe failed: " in text
    assert "correlation is best" in text


def test_a_method_that_fails_in_some_resamples_is_reported(compared, folder):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(30, 3)), schema=["a", "b", "c"])
    frame.with_columns(pl.Series("y", ["p", "q"] * 15)).write_csv("noise.csv")
    found, text = compared("noise.csv", "-t", "y", "t-test-fdr", "correlation")
    (failed,) = found["tables"][0]["failed"]
    assert failed["times"] > 0
    assert "false discovery rate" in text


def test_invalid_arguments_are_refused_before_any_work(refused):
    assert "Did you mean mrmr" in refused("compare", "wine.csv", "-t", "kind", "mrmrr")
    assert "no file win.csv" in refused("compare", "win.csv", "-t", "kind", "mrmr").replace("'", "")
    assert "needs a table" in refused("compare", "mrmr", "-t", "kind")
    assert "--target" in refused("compare", "wine.csv", "mrmr")
    assert "--metric" in refused("compare", "wine.csv", "-t", "kind", "mrmr", "--metric", "rmse")
    assert "--estimator" in refused(
        "compare", "wine.csv", "-t", "kind", "mrmr", "--estimator", "Ridge()"
    )
    assert ".csv, .md, .tex or .json" in refused(
        "compare", "wine.csv", "-t", "kind", "mrmr", "-o", "x.xml"
    )
    assert "holds the data" in refused("compare", "wine.csv", "-t", "kind", "-o", "wine.csv")


def test_methods_of_which_none_can_be_measured_are_refused(refused, frame):
    frame[::9].write_csv("few.csv")  # of whose 20 rows one is left to learn from
    asked = ("compare", "few.csv", "-t", "kind", "correlation")
    told = refused(*asked, "--test-share", "0.95", *FEW)
    assert told.startswith("No method could be measured. correlation: ")
    assert "is a folder" in refused("compare", ".", "-t", "kind", "mrmr")


def test_the_folder_holds_everything_and_is_not_replaced(tamis, folder, refused):
    asked = ("compare", "wine.csv", "-t", "kind", "correlation", "-k", 2, *FEW, "--folder", "mine")
    first = tamis(*asked)
    assert first.exit_code == 0, first.output
    names = sorted(path.name for path in (folder / "mine").iterdir())
    assert names == [
        "comparison.csv",
        "comparison.html",
        "comparison.json",
        "comparison.md",
        "comparison.tex",
        "fits.sqlite",
    ]
    assert "--force" in refused(*asked)
    again = tamis(*asked, "--force")
    assert again.stdout == first.stdout  # from the store


def test_the_page_and_the_terminal_agree(tamis, folder, refused):
    asked = ("compare", "wine.csv", "-t", "kind", "correlation", "mrmr", "-k", 2, *FEW)
    found = tamis(*asked, "--report", "page.html")
    assert found.exit_code == 0, found.output
    page = (folder / "page.html").read_text()
    best = next(line for line in found.stdout.splitlines() if " is best: " in line)
    assert best in page
    assert "tamis compare wine.csv correlation mrmr --target kind --features 2" in page
    assert "4 resamples: selected and trained on 134 rows" in page
    assert ".html" in refused(*asked, "--report", "page.pdf")


def test_the_csv_has_every_number(tamis, folder):
    asked = ("compare", "wine.csv", "-t", "kind", "correlation", "-k", 2, *FEW)
    assert tamis(*asked, "-o", "a.csv", "-o", "a.md", "-o", "a.tex").exit_code == 0
    frame = pl.read_csv("a.csv")
    assert frame["rule"].to_list() == ["given", "given", "best", "own", "own"]
    assert frame["mean"].null_count() == 0
    assert (folder / "a.md").read_text().count("**\n\n| ") == 3
    assert (folder / "a.tex").read_text().count(r"\begin{tabular}") == 3


def test_names_of_anybody_do_no_harm(tamis, folder):
    rng = np.random.default_rng(0)
    names = ['=cmd|"x"', "a&b_c%$#{}~^\\", "<b>|`x`*", "\x1b[2Jred", "x\ny"]
    X = rng.normal(size=(40, len(names)))
    frame = pl.DataFrame(X, schema=names)
    target = np.where(X[:, 0] > 0, "p|q\x1b[31m", "r_s")
    frame.with_columns(pl.Series("=y|&_\x1b[2J", target)).write_csv("=a&_|b.csv")
    ways = [word for end in ("csv", "md", "tex", "json") for word in ("-o", f"x.{end}")]
    result = tamis(
        "compare", "=a&_|b.csv", "-t", "=y|&_\x1b[2J", "correlation", "-k", 2, *FEW, *ways
    )
    assert result.exit_code == 0, result.output
    for text in (result.stdout, *((folder / f"x.{end}").read_text() for end in ("md", "tex"))):
        assert "\x1b" not in text
    assert (folder / "x.csv").read_text().splitlines()[1].startswith("'=a&_|b.csv,")
    assert r"=a\&\_\|b.csv" in (folder / "x.md").read_text()
    tex = (folder / "x.tex").read_text()
    body = [line for line in tex.splitlines() if not line.startswith("%")]
    assert not any(re.search(r"(?<!\\)[%#_]", line) for line in body)


@pytest.mark.posix
def test_ctrl_c_keeps_the_fits_and_prints_the_command_to_continue(folder):
    asked = ["compare", "wine.csv", "-t", "kind", "sfs-knn", "mrmr", "-r", "500"]
    command = [sys.executable, "-m", "tamis.cli", *asked, "--folder", "mine"]
    work = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    store = folder / "mine" / "fits.sqlite"
    deadline = time.monotonic() + 100
    while n_fits(store) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    work.send_signal(signal.SIGINT)
    _, said = work.communicate(timeout=100)
    assert work.returncode == 130
    stopped = r"stopped after \d+ of 2000 fits; finished tasks are stored in mine/fits.sqlite"
    assert re.search(stopped, said)
    assert "To continue: tamis compare wine.csv -t kind sfs-knn mrmr -r 500 --folder mine" in said
    assert n_fits(store) >= 2
    assert [path.name for path in (folder / "mine").iterdir()] == ["fits.sqlite"]


def n_fits(store):
    if not store.exists():
        return 0
    try:
        with Store(store) as kept:
            return len(kept)
    except InvalidStore:  # about to be made
        return 0


def test_a_class_of_two_rows_and_a_target_that_hardly_varies(compared, folder):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(40, 3)), schema=["a", "b", "c"])
    rare = pl.Series("y", ["a"] * 30 + ["b"] * 8 + ["c"] * 2)
    frame.with_columns(rare).write_csv("rare.csv")
    found, _ = compared("rare.csv", "-t", "y", "correlation", "svm-rfe")
    assert len(found["tables"][0]["methods"]) == 4
    flat = pl.Series("y", [1.5, 2.5] + [0.0] * 38)
    frame.with_columns(flat).write_csv("flat.csv")
    found, text = compared("flat.csv", "-t", "y", "correlation", "--task", "regression")
    assert "no method is shown to beat the baseline" in text


def test_a_protected_folder_and_one_that_is_a_file_are_refused(refused, folder):
    asked = ("compare", "wine.csv", "-t", "kind", "correlation")
    for place in ("wine.csv", "wine.csv/deep/er"):
        assert "is a file" in refused(*asked, "--folder", place)
    assert "no folder" in refused(*asked, "-o", "nowhere/x.csv")
    if os.name != "nt" and os.access(folder, os.W_OK) and os.geteuid():
        (folder / "shut").mkdir(mode=0o500)
        assert "protected" in refused(*asked, "--folder", "shut/x")


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [(3.742, 0.0585, "3.74 ± 0.06"), (0.0, 0.0, "0.00"), (123456.0, 1.0, "1.23e+05 ± 1.00e+00")],
)
def test_numbers_have_three_digits_and_their_errors_as_many_decimals(mean, error, text):
    standing = Standings("rmse", False, 0.05, (), (), None)
    assert compared_page(standing).format(mean, error) == text


def test_a_floating_search_is_measured_by_what_it_held(compared, frame):
    text = 'FloatingForward(Scatter("J3"))'
    found, _ = compared("wine.csv", "-t", "kind", text, "-k", 5)
    (row,) = (row for row in found["tables"][0]["methods"] if row["method"] == text)
    X, y = frame.drop("kind").to_numpy(), frame["kind"].to_numpy().astype(str)
    plan = Realizations(4, train=0.75, stratify=True)
    for k, point in enumerate(row["curve"], 1):
        errors = []
        for i in range(4):
            train, test, _ = plan.split(y, "wine.csv", i)
            scale = StandardScaler().fit(X[train])
            A, B = scale.transform(X[train]), scale.transform(X[test])
            walk = FloatingForward(Scatter("J3"), n_features_to_select=5).fit(A, y[train]).trace_
            held = [s for s in range(len(walk)) if len(walk[s].subset) == k]
            columns = walk[max(held, key=lambda s: walk[s].value)].subset
            ridge = RidgeClassifier().fit(A[:, columns], y[train])
            errors.append(np.mean(ridge.predict(B[:, columns]) != y[test]))
        assert point["mean"] == pytest.approx(np.mean(errors))


@pytest.mark.parametrize(
    ("text", "measured", "size"),
    [
        ("correlation", "order", 1.0),
        ("mrmr", "order", 8),
        ("svm-rfe", "order", 1),
        ("t-test-fdr", "order", 1.0),
        ("Then(Ranking(FisherScore(), n_features_to_select=6), Forward(MRMR()))", "order", 6),
        ("sffs-j3", "held", 8),
        ("sfbs-j3", "held", 1),
        ("ga-knn", "own", 8),
        ("branch-and-bound-j3", "own", 8),
        ("mrmr(n_features_to_select=3)", "own", 3),
    ],
)
def test_each_method_searches_up_to_the_largest_measured_size(text, measured, size):
    y = np.repeat(["a", "b"], 10)
    found = contestant(text, y, "classification", Grouping(50), largest=8)
    assert found.measured == measured
    assert walk_of(found.method).n_features_to_select == size


def test_fixed_columns_are_in_every_list(compared, frame):
    args = ("wine.csv", "-t", "kind", "fisher-score", "ridge-rfe", "--fixed", "ash", "-k", 3)
    found, _ = compared(*args)
    alone = by_hand(frame.select("ash", "kind"), {"m": make_pipeline(RidgeClassifier())}, "own")
    for row in found["tables"][0]["methods"][:2]:
        assert [point["size"] for point in row["curve"]] == [1, 2, 3]
        assert row["curve"][0]["mean"] == np.mean(list(alone.values("error", "m").values()))
        three = prepare(
            row["method"], frame["kind"].to_numpy(), n_features_to_select=3, fixed_features=[2]
        )
        expected = by_hand(frame, {"m": three}, "own")
        assert row["curve"][2]["mean"] == np.mean(list(expected.values("error", "m").values()))


def test_groups_are_selected_as_a_whole(compared, refused, frame):
    group = ("--group", "both=alcohol,total_phenols")
    found, _ = compared("wine.csv", "-t", "kind", "fisher-score", *group, "-k", 2)
    row = found["tables"][0]["methods"][0]
    y = frame["kind"].to_numpy()
    method = prepare("fisher-score", y, n_features_to_select=2, feature_groups={"both": [0, 5]})
    expected = by_hand(frame, {"m": method}, "own")
    assert row["mean"] == np.mean(list(expected.values("error", "m").values()))
    assert row["columns"] == 3
    assert "'malice'" in refused(
        "compare", "wine.csv", "-t", "kind", "fisher-score", "--group", "a=malice,ash"
    )
