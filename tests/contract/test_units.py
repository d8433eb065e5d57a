"""The parameters ``feature_groups`` and ``fixed_features``: their meaning and invalid values."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis.contract.units import Grouping, resolve_units
from tamis.criteria import Scatter
from tamis.exceptions import InvalidParameter
from tamis.testing.problem import make_table as table

NAMES = ["a", "b", "c", "d", "e"]


def read(groups=None, fixed=None, names=NAMES):
    return resolve_units("Forward", groups, fixed, 5, names)


def test_without_groups_a_unit_is_a_column():
    grouping = read()
    assert grouping == Grouping(5)
    assert grouping.plain
    assert grouping.members is None
    assert grouping.n_units == 5
    subset = np.array([1, 4])
    assert grouping.columns(subset) is subset
    assert grouping.to_dict() is None


@pytest.mark.parametrize(
    "groups",
    [
        {"late": ["e", "b"], "x": ["c", "d"]},
        {"late": [4, 1], "x": (2, "d")},
        {"x": np.array([2, 3]), "late": {1, 4}},
        [None, "late", "x", "x", "late"],
        np.array([None, "late", "x", "x", "late"], dtype=object),
        [float("nan"), "late", "x", "x", "late"],
    ],
    ids=repr,
)
def test_units_are_ordered_by_their_first_columns(groups):
    grouping = read(groups, ["late", 0])
    assert grouping.groups == (("late", (1, 4)), ("x", (2, 3)))
    assert grouping.fixed == (0, 1)
    assert_array_equal(grouping.unit_of, [0, 1, 2, 2, 1])
    assert [m.tolist() for m in grouping.members] == [[0], [1, 4], [2, 3]]
    assert grouping.unit_names(NAMES) == ["a", "late", "x"]
    assert_array_equal(grouping.columns(np.array([1, 2])), [1, 2, 3, 4])
    assert_array_equal(grouping.mask(np.array([True, False, True])), [1, 0, 1, 1, 0])
    assert Grouping.from_dict(5, grouping.to_dict()) == grouping


def test_a_fixed_column_fixes_its_group():
    groups = {"pair": ["b", "d"]}
    assert read(groups, "d").fixed == read(groups, 3).fixed == read(groups, ["pair", "b"]).fixed
    assert read(None, ["e", 0]).fixed == (0, 4)


def test_a_grouping_can_be_restricted_to_some_units():
    grouping = read({"pair": ["b", "d"], "other": ["c", "e"]}, ["pair"])
    left = grouping.restricted(np.array([1, 2]))
    assert left == Grouping(4, (("pair", (0, 2)), ("other", (1, 3))), (0,))
    assert grouping.restricted(np.array([0, 2])) == Grouping(3, (("other", (1, 2)),))


@pytest.mark.parametrize(
    ("groups", "fixed", "sentence"),
    [
        ({"x": ["a", "b"], "y": ["b", "c"]}, None, "'b' is in two of the feature_groups"),
        ({"x": ["a", "q"]}, None, r"feature_groups\['x'\] names the column 'q'.*X has a, b"),
        ({"x": [0, 5]}, None, "indices from 0 to 4, not 5"),
        ({"x": [-1]}, None, "indices from 0 to 4, not -1"),
        ({"x": [True]}, None, "not True"),
        ({"x": []}, None, "has no columns. Leave that group out"),
        ({"x": ["a", 0]}, None, "names a column twice"),
        ({"a": ["b", "c"]}, None, "has the name of a column outside it"),
        ({1: ["a"], "1": ["b"]}, None, "two of the feature_groups are called '1'"),
        (["x", "x"], None, "one label in feature_groups for each of the 5 columns of X, not 2"),
        ([["a", "b"], 1, 2, 3, 4], None, "text or numbers, not \\['a', 'b'\\]"),
        ("ab", None, "a mapping of names to columns"),
        (3, None, "a mapping of names to columns"),
        ({"x": ["a", "b"]}, ["q"], "fixed_features names.*feature_groups has x"),
        (None, 7, "indices from 0 to 4, not 7"),
        (None, [None], "not None"),
    ],
    ids=repr,
)
def test_invalid_groups_are_refused(groups, fixed, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        read(groups, fixed)


def test_names_need_a_table_with_names():
    with pytest.raises(InvalidParameter, match="X has no column names"):
        read({"x": ["a"]}, names=None)
    assert read({"x": [0, 1]}, names=None).label(1) == "column 2"


def test_a_criterion_needs_a_partition_of_the_columns():
    X, y = table()
    for units in ([[0, 1]], [[0, 1], [1, 2], [3, 4, 5, 6]], [[0, 1, 2, 3, 4, 5, 6], []]):
        with pytest.raises(InvalidParameter, match="each of the 7 columns once"):
            Scatter().grouped(units).fit(X, y)
    criterion = Scatter().grouped([[0, 1, 2], [3, 4, 5, 6]]).fit(X, y)
    assert criterion.n_units_ == 2
    assert criterion.grouped(None).fit(X, y).n_units_ == 7
