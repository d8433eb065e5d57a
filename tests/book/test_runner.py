"""Running an experiment file, and the marks of the numbers."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis.criteria import FisherScore
from tamis.datasets import load, make_weston
from tamis.datasets import names as table_names
from tamis.evaluation import CrossValidation, Realizations, stability
from tamis.evaluation.sources import as_sources
from tamis.exceptions import InvalidParameter
from tamis_book import Cell, Experiment, Part, read, reproduce
from tamis_book.cells import mark_cell
from tamis_book.runner import tuned

HITS = """
title = "Hits"
source = "Nobody (2020)"
metric = "hit"
realizations = 30
[methods]
Fisher = "Ranking(FisherScore())"
Recipe = "fisher-score"
Later = "Forward(NotYetThere())"
Wrapper = "Forward(CrossValidated(svm(), cv=2), n_features_to_select=1)"
[estimators]
svm = "SVC(C=8, gamma=0.1)"
[unsound]
Recipe = "contradicted: by the next table"
[[parts]]
name = "weston"
data = { make = "make_weston", n_samples = 300 }
train = 100
published = { Fisher = 0, Recipe = 0 }
[[parts]]
name = "not here"
data = { load = "not_at_hand" }
train = 100
[[parts]]
name = "corral"
data = { make = "make_corral", n_samples = 60, variant = 6, fresh = true }
train = 40
published = { Fisher = 30 }
"""

STABLE = """
title = "Stability"
source = "Nobody (2020)"
metric = "stability"
realizations = 5
[methods]
Fisher = "Ranking(FisherScore())"
Kept = "Ranking(FisherScore(), n_features_to_select=1.0)"
[[parts]]
name = "wine"
data = { load = "wine" }
train = 0.5
sizes = [3, 6]
published = { Fisher = [1.0, 0.1] }
[[parts]]
name = "iris"
data = { load = "iris" }
train = 0.5
"""

CURVE = """
title = "Errors"
source = "Nobody (2020)"
scale = 100
[methods]
Fisher = "Ranking(FisherScore())"
[estimators]
svm = "SVC()"
[tuning]
rule = "mean-of-5"
estimator = "svm"
grid = { C = [0.001, 8.0], gamma = [0.1, 50.0] }
[[parts]]
name = "wine"
data = { load = "wine" }
train = 120
test = 58
sizes = [1, 2, 13, 14]
published = { Fisher = [23.0, 90.0, "", 5.0] }
"""


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "own.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture(scope="module")
def hits(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "own.toml"
    path.write_text(HITS)
    return reproduce(str(path), realizations=3)


def test_missing_methods_and_tables_are_reported_and_the_rest_runs(hits):
    found = hits
    assert [s.split(" ")[0] for s in found.missing] == ["Later", "not"]
    assert "NotYetThere" in found.missing[0]
    assert "not_at_hand" in found.missing[1]
    assert {(c.part, c.method) for c in found.cells} == {
        (part, method)
        for part in ("weston", "corral")
        for method in ("Fisher", "Recipe", "Wrapper")
    }


def test_a_failing_method_is_reported_once(file):
    text = CURVE.replace("[estimators]", 'Fails = "SelectKBest(k=-1)"\n[estimators]')
    found = reproduce(file(text), realizations=3)
    (sentence,) = found.missing
    assert sentence.startswith("Fails failed 3 times on wine, first by InvalidParameterError")
    assert {cell.method for cell in found.cells} == {"Fisher"}


def test_marks_of_hits(hits):
    found = hits
    cells = {(c.part, c.method): c for c in found.cells}
    assert cells["weston", "Fisher"].mark == "="
    assert cells["weston", "Recipe"].mark == "~"
    assert cells["weston", "Wrapper"].mark == ""
    assert cells["corral", "Fisher"].mark == "-"
    assert found.counts() == {"=": 1, "-": 1, "~": 1}
    assert repr(found) == "<Reproduction of own: 1 =, 1 -, 1 ~>"
    assert found.to_frame().shape == (6, 16)


#: A metric for which smaller, or greater, is better.
METRIC = {False: "error", True: "accuracy"}


def mark_of(
    ours, published, *, metric="error", agreement="chance", n=30, deviation=1.0, decimals=0
):
    """Return the mark of a number with a range of 0.5, for 30 published realizations."""
    printed = {"method": (10.0**-decimals if decimals else 1,)}
    part = Part("part", {}, published=printed)
    experiment = Experiment("own", "title", "", (part,), metric=metric, agreement=agreement)
    assert experiment.decimals == decimals
    cell = Cell("part", "method", None, ours, deviation, ours - 0.5, ours + 0.5, n)
    return mark_cell(experiment, cell, published)


@pytest.mark.parametrize(
    ("ours", "n", "published", "mark"),
    [
        (30, 30, 30, "="),
        (27, 30, 30, "="),
        (20, 30, 30, "-"),
        (30, 30, 20, "+"),
        (0, 2, 30, "-"),
        (25, 30, 30, "-"),  # Fisher's exact test, which is conservative, would find no difference
        (1, 2, 30, "-"),
        (2, 2, 0, "+"),
    ],
)
def test_hits_are_compared_by_a_mid_p_test(ours, n, published, mark):
    assert mark_of(ours, published, metric="hit", n=n) == mark


@pytest.mark.parametrize(
    ("ours", "published", "greater", "mark"),
    [
        (5.0, 5.4, False, "="),
        (5.0, 6.0, False, "+"),
        (5.0, 6.0, True, "-"),
        (5.0, 4.0, False, "-"),
        (5.0, 4.0, True, "+"),
    ],
)
def test_means_are_compared_by_two_standard_errors(ours, published, greater, mark):
    # spread 1, 30 against 30 realizations: one standard error is 0.258
    assert mark_of(ours, published, metric=METRIC[greater]) == mark


def test_few_realizations_are_given_the_benefit_of_the_doubt():
    assert mark_of(5.0, 10.0, n=2) == "="
    assert mark_of(5.0, 20.0, n=2) == "+"


def test_a_single_realization_has_no_mark():
    assert mark_of(5.0, 90.0, n=1, deviation=float("nan")) == ""


def test_equal_numbers_without_a_spread_agree():
    assert mark_of(5.0, 5.0 + 1e-9, deviation=0.0) == "="
    assert mark_of(5.0, 5.1, deviation=0.0) == "+"


@pytest.mark.parametrize(
    ("published", "greater", "mark"),
    [(1.0, False, "="), (2.0, False, "="), (2.1, False, "+"), (0.9, False, "-"), (0.9, True, "+")],
)
def test_a_number_of_one_realization_is_compared_with_the_range(published, greater, mark):
    how = {"metric": METRIC[greater], "agreement": "range", "decimals": 9}
    assert mark_of(1.5, published, n=10, **how) == mark
    assert mark_of(1.5, published, n=1, **how) == ""


def test_printed_numbers_are_rounded():
    for published, mark in ((2.04, "="), (2.06, "+"), (0.96, "=")):
        assert mark_of(1.5, published, agreement="range", decimals=1) == mark


@pytest.mark.parametrize(
    ("ours", "greater", "mark"),
    [
        (92.0, True, "="),
        (88.0, True, "="),
        (92.1, True, "+"),
        (87.9, True, "-"),
        (92.1, False, "-"),
    ],
)
def test_agreement_may_be_a_tolerance(ours, greater, mark):
    assert mark_of(ours, 90.0, metric=METRIC[greater], agreement=2.0) == mark


BESIDE = """
title = "Accuracies"
source = "Nobody (2020)"
metric = "accuracy"
scale = 100
agreement = 2
realizations = 10
[baselines]
F = "Ranking(FisherScore())"
[estimators]
knn = "KNeighborsClassifier()"
[[parts]]
name = "iris"
data = { load = "iris" }
folds = 5
steps = [1, 2, 9]
[parts.methods]
gates = 'GateSelector(scope="class", n_features_to_select=PerClass(1), mu=1, lam=10)'
[parts.published]
gates = [94.3, 93.7, 20]
[parts.published_columns]
gates = [2.1, 3.8, ""]
"""


def test_baselines_use_the_same_number_of_columns_as_the_method(file):
    found = reproduce(file(BESIDE), realizations=5)
    assert not found.missing
    ours = {cell.size: cell for cell in found.cells if cell.beside is None}
    theirs = {cell.size: cell for cell in found.cells if cell.beside == "gates"}
    assert {cell.method for cell in theirs.values()} == {"F"}
    assert 2 <= ours[1].n_features < ours[2].n_features <= ours[9].n_features == 4
    assert [ours[k].published_n_features for k in (1, 2, 9)] == [2.1, 3.8, None]
    assert ours[9].mark == "+"
    # with all columns there is no choice
    assert (theirs[9].ours, theirs[9].published, theirs[9].mark) == (ours[9].ours, None, "")
    assert theirs[1].n_features == ours[1].n_features


def test_a_baseline_agrees_with_a_direct_computation(file):
    text = BESIDE.replace("steps = [1, 2, 9]", "sizes = [2]").replace("PerClass(1)", "2")
    text = text.replace("[94.3, 93.7, 20]", "[94.3]").replace('[2.1, 3.8, ""]', "[2]")
    found = reproduce(file(text), realizations=3)
    (cell,) = (cell for cell in found.cells if cell.beside is not None)
    X, y, *_ = load("iris")
    scores = []
    for i in range(3):
        train, test, _ = CrossValidation(5).split(y, "iris", i)
        scaler = StandardScaler().fit(X[train])
        first = np.argsort(-FisherScore().fit(X[train], y[train]).scores_)[:2]
        Z, Z_test = (scaler.transform(X[rows])[:, first] for rows in (train, test))
        scores.append(KNeighborsClassifier().fit(Z, y[train]).score(Z_test, y[test]))
    assert cell.ours == pytest.approx(100 * np.mean(scores))


def test_methods_that_select_nothing_are_reported(file):
    text = BESIDE.replace("steps = [1, 2, 9]", "").replace("PerClass(1)", "Threshold(99)")
    text = text.replace("[94.3, 93.7, 20]", "94.3").replace('[2.1, 3.8, ""]', "2")
    text = text.replace("[parts.published]", 'all = "KNeighborsClassifier()"\n[parts.published]')
    found = reproduce(file(text), realizations=2)
    assert not found.missing
    ours, theirs, everything = found.cells
    assert (ours.n_features, everything.n_features) == (0, 4)
    assert everything.beside is None  # and it has no baselines
    assert ours.ours == theirs.ours == pytest.approx(100 / 3)
    (remark,) = found.remarks
    assert remark.startswith("iris: gates selects nothing in 2 of 2 realizations")


TUNED = """
title = "Errors"
source = "Nobody (2020)"
metric = "cv_error"
agreement = "range"
realizations = 10
[methods]
exact = 'SVCPathCV("linear", cv=StratifiedKFold(3, shuffle=True, random_state=0), refit=False)'
grid = 'GridC("linear", solver="path", cv=StratifiedKFold(3, shuffle=True, random_state=0))'
[[parts]]
name = "sound"
data = { make = "make_xor", n_samples = 80 }
train = 0.75
published = { exact = 0.001, grid = 0.999 }
[[parts]]
name = "leaky"
data = { make = "make_xor", n_samples = 80 }
train = 0.75
stratify = false
unsound = "impossible: the label is a column"
published = { exact = 0.0 }
"""


def test_tuned_svms_are_scored_by_their_cross_validated_error(file):
    found = reproduce(file(TUNED), realizations=3)
    assert not found.missing
    cells = {(c.part, c.method): c for c in found.cells}
    exact, grid = cells["sound", "exact"], cells["sound", "grid"]
    assert 0.001 < exact.low <= exact.ours <= exact.high
    assert exact.low <= grid.low
    assert (exact.mark, grid.mark) == ("-", "+")
    assert cells["leaky", "exact"].mark == "!"
    assert cells["leaky", "exact"].ours != exact.ours  # not the same splits


SIGNS = """
title = "Errors"
source = "Nobody (2020)"
reference = "First"
[methods]
First = "VarianceThreshold()"
Fisher = "Ranking(FisherScore())"
[estimators]
svm = "SVC()"
[[parts]]
name = "weston"
data = { make = "make_weston", n_samples = 400 }
train = 100
sizes = [2, 10]
published = { Fisher = [0.4, 0.2] }
signs = { Fisher = ["-", ""] }
"""


def test_signs_of_the_paired_test(file):
    """The two relevant columns come first, so selecting columns in table order wins at size 2."""
    found = reproduce(file(SIGNS), realizations=6)
    cells = {(c.method, c.size): c for c in found.cells}
    assert (cells["Fisher", 2].sign, cells["Fisher", 2].published_sign) == ("+", "-")
    assert (cells["Fisher", 10].sign, cells["Fisher", 10].published_sign) == ("", "")
    assert cells["First", 2].sign is None


def test_signs_depend_on_the_reference(file):
    found = reproduce(file(SIGNS.replace('"First"', '"Fisher"', 1)), realizations=6)
    assert [c.sign for c in found.cells if c.method == "First"] == ["-", ""]


def test_curves_have_a_cell_for_each_size(file):
    found = reproduce(file(CURVE), realizations=4)
    cells = {c.size: c for c in found.cells}
    assert sorted(cells) == [1, 2, 13]  # there is no fourteenth column
    assert 10 < cells[1].ours < 40
    assert cells[2].mark == "+"
    assert cells[13].mark == ""


def test_a_stored_run_can_be_continued(file, tmp_path):
    path = file(CURVE)
    first = reproduce(path, realizations=2, store=tmp_path / "s.sqlite")
    calls = []
    again = reproduce(
        path,
        realizations=2,
        store=tmp_path / "s.sqlite",
        progress=lambda *counts: calls.append(counts),
    )
    assert again.cells == first.cells
    assert calls == [(1000, 1000), (1, 1)]


def test_tuning_runs_on_request_and_is_stored(file, tmp_path, monkeypatch):
    from tamis_book import runner

    path, store = file(CURVE), tmp_path / "s.sqlite"
    assert reproduce(path, realizations=2).settings == ()
    found = reproduce(path, realizations=2, tune=True, store=store)
    assert found.settings == ("wine: SVC(C=8.0, gamma=0.1)",)
    monkeypatch.setattr(runner, "tuned", None)  # must not be called again
    assert reproduce(path, realizations=2, tune=True, store=store) == found


def test_tuning_rules_agree_with_a_direct_computation():
    (source,) = as_sources({"w": make_weston(200, random_state=0)}).values()
    plan, grid = Realizations(3, train=80), {"C": [10, 30], "gamma": [0.05, 20]}
    mean = tuned(SVC(), grid, source, plan, rule="mean-of-5")
    assert mean.gamma == 0.05
    median = tuned(SVC(), grid, source, plan, rule="median-of-5")
    assert median.C in grid["C"]
    each = tuned(SVC(), grid, source, plan, rule="each")
    assert each.param_grid == grid
    with pytest.raises(InvalidParameter, match="mean-of-5"):
        tuned(SVC(), grid, source, plan, rule="best")


def test_tuning_rules_agree_with_explicit_cross_validation():
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.preprocessing import StandardScaler

    from tamis._seeds import stream

    data = make_weston(150, random_state=3)
    (source,) = as_sources({"w": data}).values()
    plan, values = Realizations(2, train=70, seed=4), [0.1, 1.0, 10.0]
    table = []
    for i in range(2):
        train = plan.split(data.y, "w", i).train
        X = StandardScaler().fit_transform(data.X[train])
        seed = int(stream(4, "tuning", "w", i).integers(2**31))
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        table.append([cross_val_score(SVC(C=C), X, data.y[train], cv=folds).mean() for C in values])
    mean = values[int(np.argmax(np.round(np.mean(table, axis=0), 12)))]
    assert mean == tuned(SVC(), {"C": values}, source, plan).C
    winners = sorted(values[int(np.argmax(np.round(row, 12)))] for row in table)
    assert winners[0] == tuned(SVC(), {"C": values}, source, plan, rule="median-of-5").C


GIVEN = """
title = "Errors"
source = "Nobody (2020)"
realizations = 10
[methods]
Fisher = "Ranking(FisherScore())"
[estimators]
svm = "SVC()"
[[parts]]
name = "mine"
data = { load = "mine" }
splits = "old"
sizes = [2]
"""


def test_splits_stored_with_the_table_are_used(file, tmp_path, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.tile([0, 1], 15)
    trains, tests = np.arange(24).reshape(2, 12), np.array([np.arange(24, 30), np.arange(6)])
    np.savez(tmp_path / "mine.npz", X=X, y=y, old_train_idx=trains, old_test_idx=tests)
    monkeypatch.setenv("TAMIS_DATA", str(tmp_path))
    found = reproduce(file(GIVEN))
    assert not found.missing
    errors = []
    for train, test in zip(trains, tests, strict=True):
        machine = make_pipeline(StandardScaler(), SVC()).fit(X[train], y[train])
        errors.append(1 - machine.score(X[test], y[test]))
    scores = found.results["mine"].values("error", "Fisher", size=2)
    np.testing.assert_allclose(list(scores.values()), errors)
    (absent,) = reproduce(file(GIVEN.replace('"old"', '"new"'))).missing
    assert "the table of mine has no splits new_train_idx and new_test_idx" in absent


def test_seeds_make_a_reproduction_repeatable():
    whole = read("thesis-3.2")
    table = replace(whole, parts=whole.parts[:1])
    assert reproduce(table, realizations=2) == reproduce(table, realizations=2)


def exact_optima(wanted=None):
    """Compute table 6.3 with only the exact optimum, on the available data sets."""
    whole = read("thesis-6.3")
    at_hand = [p for p in whole.parts if p.data["load"] in table_names()]
    parts = tuple(p for p in at_hand if wanted in (None, p.name))
    if not parts:
        pytest.skip("needs the tables of table 6.3 in the folder named by TAMIS_DATA")
    table = replace(whole, methods={"GO": whole.methods["GO"]}, parts=parts)
    return {cell.part: cell for cell in reproduce(table, realizations=10).cells}


def test_the_exact_optimum_of_heart_agrees_with_table_6_3():
    cell = exact_optima("heart")["heart"]
    assert (cell.mark, cell.published) == ("=", 0.134)
    assert 0.1 < cell.low < cell.high < 0.2


@pytest.mark.experiment
def test_the_exact_optimum_agrees_with_table_6_3():
    cells = exact_optima()
    unsound = {name for name in ("sonar", "wbcd", "ionosphere") if name in cells}
    assert {name for name, cell in cells.items() if cell.mark != "="} == unsound
    assert all(cells[name].low > 0.01 for name in unsound)  # an error of 0 cannot be reached


def test_a_stability_has_an_interval(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(STABLE)
    found = reproduce(str(path))
    cells = {(cell.part, cell.method, cell.size): cell for cell in found.cells}
    results = found.results["wine"]
    for size, mark in ((3, "="), (6, "+")):
        cell = cells["wine", "Fisher", size]
        index = stability(results.supports("Fisher", size=size))
        assert (cell.ours, cell.low, cell.high) == (index.nogueira, index.low, index.high)
        assert cell.mark == mark
        assert cell.n_realizations == 5
    assert cells["iris", "Fisher", None].ours <= 1
    assert ("iris", "Kept", None) not in cells
    assert "needs selections of some but not all columns" in found.remarks[0]
    few = reproduce(str(path), realizations=1)
    assert not few.cells
    assert "at least two selections" in few.remarks[0]
