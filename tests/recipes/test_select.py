"""``tamis.select`` on a frame that contains the target."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

import tamis
from tamis.criteria import FisherScore
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTarget,
    MissingExtra,
)
from tamis.meta import HonestSize
from tamis.search import Ranking
from tamis.testing.problem import make_table

IRIS = load_iris(as_frame=True).frame.assign(
    species=lambda frame: np.array(["setosa", "versicolor", "virginica"])[frame["target"]]
)
FRAME = IRIS.drop(columns="target")


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.assign(species=FRAME["species"].astype("category")),
        pl.from_pandas(FRAME),
        pl.from_pandas(FRAME).with_columns(pl.col("species").cast(pl.Categorical)),
    ],
    ids=["pandas", "pandas categories", "polars", "polars categories"],
)
def test_the_target_may_be_a_column_of_the_frame(frame):
    before = frame.copy() if isinstance(frame, pd.DataFrame) else frame.clone()
    found = tamis.select(frame, method="fisher-score", target="species", n_features_to_select=2)
    given = tamis.select(
        FRAME.drop(columns="species"), IRIS["target"], "fisher-score", n_features_to_select=2
    )
    np.testing.assert_array_equal(found.order_, given.order_)
    assert found.feature_names_in_.tolist() == FRAME.columns[:-1].tolist()
    assert frame.equals(before)


def test_the_default_method_depends_on_the_target():
    numbers = IRIS.drop(columns=["species", "target"])
    found = tamis.select(numbers, target="petal width (cm)", task="regression")
    assert found.record_.expression == "Auto(budget=0.5, task='regression')"
    assert found.feature_names_in_.tolist() == numbers.columns[:-1].tolist()


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_an_unknown_column_is_refused(frame):
    with pytest.raises(InvalidParameter, match=r"no column 'specis'\. Did you mean species\?"):
        tamis.select(frame, target="specis")


@pytest.mark.parametrize(
    ("X", "y", "target", "sentence"),
    [
        (FRAME, IRIS["target"], "species", "got both y and target='species'. Leave one"),
        (
            FRAME.to_numpy(),
            None,
            "species",
            "needs a frame of pandas, polars or pyarrow .* not ndarray",
        ),
        ([[1, 2], [3, 4]], None, "species", "not list"),
        (pd.concat([FRAME, FRAME], axis=1), None, "species", "which has 2 columns 'species'"),
        (FRAME, None, IRIS["target"], r"not a Series of values. Write select\(X, y\)"),
    ],
)
def test_invalid_targets_are_refused(X, y, target, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        tamis.select(X, y, target=target)


@pytest.mark.parametrize("values", [[b"a", b"b"], ["1", 0], ["a", b"b"]])
def test_labels_that_cannot_be_sorted_are_refused(values):
    frame = FRAME.assign(species=pd.Series(values * 75, dtype=object))
    with pytest.raises(InvalidTarget, match="needs y with numbers or strings"):
        tamis.select(frame, target="species", method="mrmr")


def test_exact_decimals_are_a_numeric_target():
    frame = FRAME.drop(columns="species")
    name = frame.columns[2]
    exact = frame.assign(**{name: [Decimal(f"{value:.3f}") for value in frame[name]]})
    for X, target, y in ((exact, name, None), (frame, None, exact[name].tolist())):
        with pytest.raises(IncompatibleCriterion, match="needs classes, but y is read as a num"):
            tamis.select(X, y, target=target, method="svm-rfe")


@pytest.mark.filterwarnings("ignore::tamis.exceptions.NothingFound")  # warnings of knockoffs
@pytest.mark.parametrize(
    "around", ["Probes", "StabilitySelection", "Knockoffs", "HonestSize", "ConditionalTest"]
)
def test_a_meta_selector_has_the_kinds_of_target_of_its_search(around):
    X, y = load_diabetes(return_X_y=True)
    method = f"{around}(Ranking(Correlation()), random_state=0)"
    found = tamis.select(X, y, method)
    assert found.support_[2] or not found.n_features_
    with pytest.raises(IncompatibleCriterion, match="needs classes"):
        tamis.select(X, y, f"{around}(Ranking(FisherScore()))")
    with pytest.raises(InvalidParameter, match=f"{around} takes no number of features"):
        tamis.select(X, y, method, n_features_to_select=3)
    grouped = tamis.select(X, y, method, feature_groups={"first": [0, 1]})
    assert grouped.units_.n_units == 9


def test_a_column_name_in_place_of_y_is_refused():
    with pytest.raises(InvalidTarget, match="Write target='species' for a column"):
        tamis.select(FRAME, "species")


@pytest.mark.parametrize("of", [pd.DataFrame, lambda told: pl.from_pandas(pd.DataFrame(told))])
@pytest.mark.parametrize("gap", [np.nan, None])
def test_missing_values_in_the_target_are_reported(of, gap):
    words = [*FRAME["species"][:-1], None] if gap is None else [*IRIS["target"][:-1], gap]
    frame = of({"a": IRIS["petal length (cm)"], "b": IRIS["target"], "y": words})
    for given in ({"target": "y"}, {"y": np.array(words)}):
        with pytest.raises(InvalidTarget, match=r"needs a target in every row.*1 row\(s\): 149"):
            tamis.select(frame, **given)


def test_a_missing_polars_is_reported(monkeypatch):
    monkeypatch.setattr("tamis.table.frames.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="need polars, which is not installed"):
        tamis.select(FRAME, target="species", method="mrmr")


def test_one_column_may_name_both_groups_and_environments():
    X, y = make_table()
    site = np.arange(len(y)) % 6
    frame = pd.DataFrame(X, columns=list("abcdefg")).assign(y=y, site=site)
    method = HonestSize(Ranking(FisherScore()), n_errors=0, n_folds=3, random_state=0)
    found = tamis.select(frame, target="y", method=method, groups="site", environments="site")
    same = clone(method).fit(X, y, groups=site, environments=site)
    assert found.losses_.tolist() == same.losses_.tolist()
    assert found.environments_.tolist() == [0, 1, 2, 3, 4, 5]
