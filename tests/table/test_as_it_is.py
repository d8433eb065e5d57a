"""Categories and missing values, passed unchanged to criteria that accept them."""

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import mutual_info_score

from tamis.contract import Record
from tamis.criteria import JMI, MRMR, CrossValidated, FisherScore, Importances, MutualInformation
from tamis.exceptions import InvalidParameter
from tamis.meta import HonestSize, Probes, StabilitySelection
from tamis.search import Forward, Ranking, RecursiveElimination, Then
from tamis.table import TableEncoder, TableSelector
from tamis.testing.search_laws import Stop

pytestmark = pytest.mark.filterwarnings("ignore::tamis.exceptions.TableAlert")

NAMES = ["dose", "town", "member", "noise", "colour"]
TOWNS = ["Aix", "Bonn", "Cork", "Delft", "Ely", "Fes", "Graz", "Hull", "Iasi", "Jena"]


def mixed(n=240, gaps=True):
    """A frame of numbers and categories, a target, and by hand its numbers with NaN."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    town = (2 * y + rng.integers(0, 6, n)) % 10
    colour = np.where(rng.random(n) < 0.5, y, rng.integers(0, 3, n))
    X = np.c_[y + rng.normal(size=n), town, (y + rng.random(n)) > 1.2, rng.normal(size=n), colour]
    X = X.astype(float)
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    words = {
        "dose": number(X[:, 0]),
        "town": worded(X[:, 1], TOWNS),
        "member": [None if np.isnan(x) else bool(x) for x in X[:, 2]],
        "noise": number(X[:, 3]),
        "colour": worded(X[:, 4], ["red", "blue", "green"]),
    }
    return pl.DataFrame(words), y, X


def number(column):
    return pl.Series(column).fill_nan(None)


def worded(codes, words):
    return [None if np.isnan(code) else words[int(code)] for code in codes]


def information(column, y):
    """The contingency formula, with a level for what is missing."""
    return mutual_info_score(np.where(np.isnan(column), -1, column).astype(int), y)


def assert_same_walk(table, plain):
    np.testing.assert_array_equal(table.order_, plain.order_)
    np.testing.assert_array_equal(table.scores_, plain.scores_)
    assert table.columns == [NAMES[j] for j in plain.columns]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("missing", ["level", "pairs"])
@pytest.mark.parametrize("criterion", [MRMR, JMI, MutualInformation])
def test_a_category_is_one_discrete_variable(criterion, missing, gaps):
    frame, y, X = mixed(gaps=gaps)
    search = Forward(criterion(missing=missing), n_features_to_select=3)
    found = TableSelector(search).fit(frame, y)
    by_hand = Forward(criterion(missing=missing, categories=[1, 4]), n_features_to_select=3)
    assert_same_walk(found, by_hand.fit(X, y))
    assert found.search_.criterion.categories == [1, 4]
    assert search.criterion.categories is None


def test_its_information_is_that_of_the_contingency_table():
    frame, y, X = mixed()
    plain = Ranking(MutualInformation(adjusted=False), n_features_to_select=2)
    found = TableSelector(plain).fit(frame, y)
    for j in (1, 2, 4):
        assert found.scores_[j] == pytest.approx(information(X[:, j], y), abs=1e-12)


def test_missing_values_are_passed_to_estimators_that_accept_them():
    frame, y, X = mixed()
    boosting = CrossValidated(HistGradientBoostingClassifier(max_iter=3, random_state=0), cv=2)
    found = TableSelector(Forward(boosting, n_features_to_select=1, standardize=False))
    found.fit(frame.select("dose", "noise"), y)
    plain = Forward(boosting, n_features_to_select=1, standardize=False).fit(X[:, [0, 3]], y)
    np.testing.assert_array_equal(found.scores_, plain.scores_)
    both = TableEncoder(gaps="keep").fit(frame)
    assert np.isnan(both.transform(frame)).any(axis=0).tolist()[:1] == [True]
    assert "town_Aix" in both.output_to_input_  # one column a level, as before


@pytest.mark.parametrize(
    "search",
    [
        Ranking(FisherScore(), n_features_to_select=2),
        RecursiveElimination(Importances(RidgeClassifier()), n_features_to_select=2),
        Then(
            Ranking(MutualInformation(), n_features_to_select=3),
            Ranking(FisherScore(), n_features_to_select=2),
        ),
        HonestSize(Ranking(MutualInformation()), n_folds=2, random_state=0),
    ],
)
def test_searches_that_take_neither_get_filled_columns(search):
    frame, y, _ = mixed()
    found = TableSelector(search).fit(frame, y)
    Z = TableEncoder().fit_transform(frame)
    np.testing.assert_array_equal(found.encoder_.transform(frame), Z)
    assert np.isfinite(Z).all()
    assert found.search_.n_features_in_ == Z.shape[1]


def test_both_parts_of_then_know_the_categories():
    frame, y, X = mixed()

    def both(categories=None):
        first = Ranking(MutualInformation(categories=categories), n_features_to_select=4)
        return Then(first, Forward(MRMR(categories=categories), n_features_to_select=2))

    plain = both([1, 4]).fit(X, y)
    kept = np.flatnonzero(plain.first_.support_)
    assert not plain.first_.support_[3]
    places = np.flatnonzero(np.isin(kept, [1, 4])).tolist()
    second = Forward(MRMR(categories=places), n_features_to_select=2).fit(X[:, kept], y)
    assert plain.columns == kept[second.columns].tolist()
    np.testing.assert_array_equal(plain.scores_[kept], second.scores_)
    assert_same_walk(TableSelector(both()).fit(frame, y), plain)


@pytest.mark.parametrize("kind", [Probes, StabilitySelection])
def test_selections_around_a_search_hand_them_on(kind):
    frame, y, X = mixed()
    given = {"random_state": 0, "n_rounds": 3} if kind is Probes else {"random_state": 0}
    given |= {"n_pairs": 3} if kind is StabilitySelection else {}
    plain = kind(Ranking(MutualInformation(categories=[1, 4])), **given).fit(X, y)
    found = TableSelector(kind(Ranking(MutualInformation()), **given)).fit(frame, y)
    assert_same_walk(found, plain)


def test_probes_know_categories_in_any_order_of_the_columns():
    """Codes of many levels without an order, which would lose information if binned."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    code = rng.permutation(40)[20 * y + rng.integers(0, 20, 400)]
    X = np.c_[rng.normal(size=(400, 5)), code]
    found = Probes(
        Ranking(MutualInformation(categories=[5])), expected_false=0.2, n_rounds=5, random_state=0
    ).fit(X, y)
    assert found.columns == [5]


def test_categories_of_the_users_are_columns_of_the_table():
    frame, y, X = mixed()
    frame = frame.with_columns(pl.Series("town", X[:, 1]).fill_nan(None))
    plain = MutualInformation(categories=[1], adjusted=False)
    found = TableSelector(Ranking(plain, n_features_to_select=2))
    assert found.fit(frame, y).search_.criterion.categories == [1, 4]
    assert found.scores_[1] == pytest.approx(information(X[:, 1], y), abs=1e-12)


def test_a_stopped_selection_is_resumed():
    frame, y, _ = mixed()
    selector = TableSelector(Forward(MRMR(), n_features_to_select=3))
    whole = TableSelector(Forward(MRMR(), n_features_to_select=3)).fit(frame, y)
    selector.set_callbacks(Stop(2)).fit(frame, y)
    record = Record.from_dict(selector.record_.to_dict())
    selector.set_callbacks().resume(frame, y, record=record)
    assert selector.columns == whole.columns
    np.testing.assert_array_equal(selector.scores_, whole.scores_)


def test_new_levels_and_new_missing_values_have_codes():
    frame, _, _ = mixed(gaps=False)
    new = frame.head(2).with_columns(pl.Series("town", ["Nowhere", None]))
    for gaps, code in (("keep", np.nan), ("fill", -1)):
        encoder = TableEncoder(levels="codes", gaps=gaps).fit(frame)
        assert encoder.get_feature_names_out().tolist() == NAMES
        np.testing.assert_array_equal(encoder.transform(new)[:, 1], [code, code])
    with pytest.raises(InvalidParameter, match="levels to be 'columns' or 'codes', got 'ranks'"):
        TableEncoder(levels="ranks").fit(frame)
