"""Groups of columns in frames, records, explanations, recipes and expressions."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import tamis
from tamis.choice import FalseDiscovery, Threshold
from tamis.contract import Record
from tamis.criteria import (
    CrossValidated,
    FisherScore,
    Importances,
    PosteriorSensitivity,
    PValue,
    Scatter,
)
from tamis.evaluation.columns import chosen_columns
from tamis.exceptions import (
    DegenerateData,
    InvalidParameter,
    InvalidTable,
    NothingSelected,
    RecordMismatch,
)
from tamis.search import Backward, Exhaustive, Forward, Ranking, RecursiveElimination, Then
from tamis.spec import parse, write
from tamis.testing.problem import make_table as table

NAMES = list("abcdefg")
GROUPS = {"pair": ["b", "e"], "three": ["c", "d", "g"]}


def frame():
    X, y = table()
    return pd.DataFrame(X, columns=NAMES), y


def forward(**options):
    return Forward(Scatter(), **{"n_features_to_select": 2, "feature_groups": GROUPS, **options})


def test_names_and_indices_are_equivalent():
    X, y = frame()
    named = forward(fixed_features="pair").fit(X, y)
    indices = {"pair": [1, 4], "three": [2, 3, 6]}
    numbered = forward(feature_groups=indices, fixed_features=[4]).fit(X.to_numpy(), y)
    assert_array_equal(named.support_, numbered.support_)
    assert named.units_ == numbered.units_
    labels = [None, "pair", "three", "three", "pair", None, "three"]
    assert_array_equal(forward(feature_groups=labels).fit(X, y).order_, forward().fit(X, y).order_)


def test_the_output_has_columns_instead_of_groups():
    X, y = frame()
    search = forward(fixed_features="pair").set_output(transform="pandas").fit(X, y)
    kept = search.get_feature_names_out()
    assert list(search.transform(X).columns) == list(kept)
    assert {"b", "e"} <= set(kept)
    assert search.n_features_in_ == 7
    order, support = chosen_columns(search)
    assert_array_equal(np.sort(order), np.arange(7))
    assert_array_equal(np.sort(order[: len(support)]), support)


@pytest.mark.parametrize(
    "criterion",
    [
        Importances(LogisticRegression()),
        PosteriorSensitivity(LogisticRegression()),
    ],
    ids=write,
)
def test_a_group_is_eliminated_as_a_whole(criterion):
    X, y = frame()
    how = {"n_features_to_select": 1, "feature_groups": GROUPS}
    search = RecursiveElimination(criterion, **how).fit(X, y)
    sizes = [len(search.units_.columns(step.subset)) for step in search.trace_]
    assert sizes[0] == 7
    assert search.trace_.sizes.tolist() == [4, 3, 2, 1]


def test_groups_work_in_a_pipeline_and_a_clone():
    X, y = frame()
    pipeline = make_pipeline(forward(), LogisticRegression()).fit(X, y)
    assert clone(pipeline).fit(X, y).score(X, y) == pipeline.score(X, y)


def test_too_many_fixed_features_are_refused():
    X, y = frame()
    with pytest.raises(InvalidParameter, match="at least 2, the number of fixed_features, got 1"):
        forward(n_features_to_select=1, fixed_features=["pair", "a"]).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"between 1 and 4.*7 columns into 4 units"):
        forward(n_features_to_select=5).fit(X, y)
    assert forward(n_features_to_select=0.5).fit(X, y).unit_support_.sum() == 2


def test_a_search_over_all_sizes_selects_fixed_features():
    X, y = frame()
    criterion = CrossValidated(LogisticRegression(), cv=3)
    for search in (Forward, Backward, Exhaustive):
        found = search(criterion, n_features_to_select="best", feature_groups=GROUPS,
                       fixed_features="a").fit(X, y)  # fmt: skip
        assert found.support_[0]
        assert found.trace_.sizes.min() >= 1


def test_constant_and_duplicate_units_are_reported():
    X, y = frame()
    X = X.assign(copy=X["a"], other=X["b"])
    search = Ranking(FisherScore(), n_features_to_select=1.0, feature_groups={"again": [7, 8]})
    with pytest.warns(DegenerateData, match=r"1 unit\(s\) that are constant or duplicates.*again"):
        search.fit(X, y)


def test_explain_reports_groups():
    X, y = frame()
    search = forward(fixed_features="a").fit(X, y)
    winner = search.units_.label(int(search.order_[1]), NAMES)
    text = search.explain("pair")
    assert text.startswith("'pair' is ")
    assert "of 4 units that Forward selects" in text
    assert winner in text + search.explain("three")
    assert search.explain("b") == "'b' belongs to the group 'pair'. " + text
    assert search.explain(4) == "column 4 belongs to the group 'pair'. " + text
    assert "one of the fixed features" in search.explain("a")
    with pytest.raises(InvalidParameter, match="name or the index of a column, not 'q'"):
        search.explain("q")
    bare = forward(feature_groups={"pair": [1, 4]}).fit(X.to_numpy(), y)
    assert bare.explain(0).startswith("column 0 is ")
    composed = Then(Ranking(FisherScore(), n_features_to_select=3), Forward(Scatter()),
                    feature_groups=GROUPS).fit(X, y)  # fmt: skip
    dropped = int(composed.first_.order_[-1])
    assert composed.units_.label(dropped, NAMES) in composed.explain(
        composed.units_.unit_names(NAMES)[dropped]
    )


def test_a_record_stores_its_units(tmp_path):
    X, y = frame()
    search = forward(fixed_features="a").fit(X, y)
    search.record_.save(tmp_path / "record.json")
    record = Record.load(tmp_path / "record.json")
    assert record.grouping == search.units_
    assert record.unit_names == ("a", "pair", "three", "f")
    assert_array_equal(record.kept, np.flatnonzero(search.support_))
    assert_array_equal(record.kept_units, np.flatnonzero(search.unit_support_))
    more = forward(n_features_to_select=3, fixed_features="a")
    assert_array_equal(more.resume(X, y, record=record).order_, clone(more).fit(X, y).order_)
    by_index = forward(feature_groups={"pair": [1, 4], "three": [2, 3, 6]}, fixed_features=0)
    assert by_index.resume(X, y, record=record).trace_.sizes.tolist() == [1, 2]
    for other in ({"feature_groups": {"pair": ["b", "e"]}}, {"feature_groups": None}, {}):
        with pytest.raises(RecordMismatch, match="the groups pair, three and 1 fixed unit"):
            forward(**other).resume(X, y, record=record)


def test_a_record_without_groups_stores_no_units():
    X, y = frame()
    plain = Forward(Scatter(), n_features_to_select=2).fit(X, y).record_.to_dict()
    assert "units" not in plain
    assert Record.from_dict(json.loads(json.dumps(plain))).grouping.n_units == 7


@pytest.mark.parametrize(
    "units",
    [
        [],
        {"groups": []},
        {"groups": [["x", []]], "fixed": []},
        {"groups": [["x", [0, 0]]], "fixed": []},
        {"groups": [["x", [0, 99]]], "fixed": []},
        {"groups": [["x", [1, 4]], ["y", [4, 5]]], "fixed": []},
        {"groups": [[1, [1, 4]]], "fixed": []},
        {"groups": [["x"]], "fixed": []},
        {"groups": [["x", [1, 4]]], "fixed": [9]},
        {"groups": [["x", [1, 4]]], "fixed": ["a"]},
    ],
    ids=str,
)
def test_a_damaged_record_is_refused(units):
    X, y = frame()
    plain = json.loads(json.dumps(forward().fit(X, y).record_.to_dict()))
    with pytest.raises(InvalidTable, match="damaged record"):
        Record.from_dict({**plain, "units": units})


def test_records_are_compared_by_units():
    X, y = frame()
    one = forward().fit(X, y).record_
    two = forward(fixed_features="a").fit(X, y).record_
    found = one.compare(two)
    assert set(found.both) | set(found.only_first) | set(found.only_second) <= {
        "a", "pair", "three", "f",
    }  # fmt: skip
    assert one.compare(replace(one)).rank_agreement == 1


@pytest.mark.parametrize("name", ["svm-rfe", "mrmr", "t-test-fdr", "sffs-j3", "fisher-score"])
def test_recipes_accept_groups(name):
    X, y = frame()
    how = {"feature_groups": GROUPS, "fixed_features": ["a"]}
    size = 1.0 if name == "t-test-fdr" else 2
    search = tamis.recipe(name, n_features_to_select=size, **how).fit(X, y)
    again = tamis.select(X, y, name, n_features_to_select=size, **how)
    assert_array_equal(search.support_, again.support_)
    assert search.support_[0]
    for columns in GROUPS.values():
        assert len(set(search.support_[[NAMES.index(c) for c in columns]])) == 1


def test_expressions_contain_groups():
    X, y = frame()
    text = (
        "Forward(Scatter(), n_features_to_select=2, "
        "feature_groups={'my pair': ['b', 'e'], 'memory': [2, 3]}, fixed_features=['a'])"
    )
    search = parse(text)
    assert write(search) == text
    assert search.fit(X, y).units_.names == {1: "my pair", 2: "memory"}


@pytest.mark.parametrize("choice", [Threshold(1e6), FalseDiscovery(1e-9)], ids=write)
def test_fixed_features_are_selected_if_no_other_passes(choice):
    X, y = frame()
    noise = np.random.default_rng(0).normal(size=X.shape)
    how = {"n_features_to_select": choice, "feature_groups": {"pair": [1, 4]}}
    fixed = Ranking(PValue(), fixed_features=[1], **how).fit(noise, y)
    assert fixed.get_support(indices=True).tolist() == [1, 4]
    with pytest.raises(NothingSelected):
        Ranking(PValue(), **how).fit(noise, y)


def test_false_discovery_counts_only_features_that_are_not_fixed():
    X, y = frame()
    how = {"n_features_to_select": FalseDiscovery(0.05), "feature_groups": GROUPS}
    search = Ranking(PValue(), fixed_features="a", **how).fit(X, y)
    p = np.sort(np.exp(-PValue().grouped([[0], [1, 4], [2, 3, 6], [5]]).fit(X, y).scores_[1:]))
    passing = np.flatnonzero(p <= 0.05 * np.arange(1, 4) / 3)
    assert search.unit_support_.sum() == 1 + (passing[-1] + 1 if len(passing) else 0)
