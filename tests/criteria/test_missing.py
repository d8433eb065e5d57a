"""NaN and categories in criteria, compared with their definitions."""

from itertools import product
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis._arrays import idle_columns, standardised
from tamis.criteria import (
    CIFE,
    CMIM,
    DISR,
    HSIC,
    JMI,
    MIFS,
    MIFSU,
    MRMR,
    NMIFS,
    CrossValidated,
    FisherScore,
    Importances,
    MutualInformation,
    PosteriorSensitivity,
)
from tamis.criteria.model import allows_nan
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
)
from tamis.search import Forward, Ranking, RecursiveElimination, Then

FAMILY = [MIFS, MIFSU, MRMR, NMIFS, CMIM, CIFE, JMI, DISR]


def entropy(*columns):
    """Return the entropy of some columns of labels, counted one by one."""
    rows = list(zip(*columns, strict=True))
    if not rows:
        return 0.0
    return -sum(n / len(rows) * log(n / len(rows)) for n in (rows.count(r) for r in set(rows)))


def contingency(a, b):
    """Return I(a; b) from the contingency table."""
    n, told = len(a), 0.0
    for level, other in product(set(a), set(b)):
        both = sum(x == level and z == other for x, z in zip(a, b, strict=True))
        if both:
            margins = a.count(level) * b.count(other)
            told += both / n * log(n * both / margins)
    return told


def told(a, b, adjusted):
    """Return I(a; b), minus its expectation by scikit-learn if adjusted."""
    if not adjusted:
        return contingency(a, b)
    return contingency(a, b) - expected_mutual_information(contingency_matrix(a, b), len(a))


def by_hand(kind, relevance, x, pick, y, adjusted):
    """Return the gain of x given one selected column, from the labels of the rows that are used."""
    shared, of_pick, own = (told(*two, adjusted) for two in ((x, pick), (pick, y), (x, y)))
    conditional = 0.0
    for level in set(pick):
        rows = [(a, c) for a, b, c in zip(x, pick, y, strict=True) if b == level]
        conditional += len(rows) / len(pick) * told(*map(list, zip(*rows, strict=True)), adjusted)
    together = of_pick + conditional
    share = max(of_pick, 0.0) / entropy(pick) if entropy(pick) else 0.0
    least = min(entropy(x), entropy(pick))
    return {
        MIFS: relevance - 0.5 * shared,
        MIFSU: relevance - share * shared,
        MRMR: relevance - shared,
        NMIFS: relevance - (shared / least if least else 0.0),
        CMIM: conditional,
        CIFE: relevance - (of_pick + own - together),
        JMI: together,
        DISR: together / entropy(x, pick, y),
    }[kind]


def mixed(n=60, seed=0):
    """Return five columns with few values and some missing ones.

    The second is a category of many codes.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.column_stack([
        (y + rng.integers(0, 2, n)) % 3, 7 * y + rng.integers(0, 7, n), rng.integers(0, 2, n),
        y > 0, rng.integers(0, 4, n),
    ]).astype(float)  # fmt: skip
    X[rng.random(X.shape) < [0.2, 0, 0.3, 0, 0.1]] = np.nan
    return X, y


def labels(X):
    """Return each column as a list of hashable levels, including NaN."""
    return [["gone" if v != v else v for v in column] for column in X.T.tolist()]


@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("kind", FAMILY)
def test_missing_values_are_a_level(kind, adjusted):
    X, y = mixed()
    criterion = kind(categories=[1], adjusted=adjusted).fit(X, y)
    columns, target = labels(X), y.tolist()
    relevance = [told(x, target, adjusted) for x in columns]
    assert_allclose(criterion.relevance_, relevance, atol=1e-10)
    for pick in range(5):
        others = np.delete(np.arange(5), pick)
        triples = [(columns[j], columns[pick], target) for j in others]
        wanted = [
            by_hand(kind, relevance[j], *triple, adjusted)
            for j, triple in zip(others, triples, strict=True)
        ]
        assert_allclose(criterion.gain(np.array([pick]), others), wanted, atol=1e-10)


@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("kind", FAMILY)
def test_missing_values_are_left_out_by_pairs(kind, adjusted):
    X, y = mixed()
    criterion = kind(categories=[1], missing="pairs", adjusted=adjusted).fit(X, y)

    def there(*js):
        rows = ~np.isnan(X[:, js]).any(axis=1)
        return [X[rows, j].tolist() for j in js] + [y[rows].tolist()]

    relevance = [told(*there(j), adjusted) for j in range(5)]
    assert_allclose(criterion.relevance_, relevance, atol=1e-10)
    for pick in range(5):
        others = np.delete(np.arange(5), pick)
        wanted = [by_hand(kind, relevance[j], *there(j, pick), adjusted) for j in others]
        assert_allclose(criterion.gain(np.array([pick]), others), wanted, atol=1e-10)


@pytest.mark.parametrize("missing", ["level", "pairs"])
def test_both_options_agree_without_missing_values(missing):
    X = np.random.default_rng(1).normal(size=(80, 6))
    y = (X[:, 0] + X[:, 3] > 0).astype(int)
    plain, other = JMI().fit(X, y), JMI(missing=missing, categories=[]).fit(X, y)
    args = np.array([0]), np.arange(1, 6)
    assert_array_equal(plain.gain(*args), other.gain(*args))


def test_bins_are_cut_from_the_values_that_are_not_missing():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=300), rng.integers(0, 2, 300)
    gone = rng.random(300) < 0.3
    X = np.where(gone, np.nan, x)[:, None]
    alone = MutualInformation(n_bins=4).fit(x[~gone][:, None], y[~gone]).scores_
    by_pairs = MutualInformation(n_bins=4, missing="pairs").fit(X, y).scores_
    assert_allclose(by_pairs, alone, atol=1e-11)


@pytest.mark.parametrize("shape", [(60, 5), (400, 700)], ids=["plain", "compiled"])
def test_a_category_is_never_cut(shape):
    rng = np.random.default_rng(3)
    X = rng.normal(size=shape)
    X[:, 2] = rng.integers(0, 30, shape[0])
    y = (X[:, 2] % 2).astype(int)
    plain = MutualInformation(n_bins=3, adjusted=False)
    cut, whole = (clone(plain).set_params(categories=c).fit(X, y).scores_ for c in ([], [2]))
    assert_allclose(whole[2], contingency(X[:, 2].tolist(), y.tolist()), atol=1e-11)
    assert cut[2] < whole[2] / 2
    assert_array_equal(np.delete(cut, 2), np.delete(whole, 2))
    mask = np.arange(shape[1]) == 2
    assert_array_equal(plain.set_params(categories=mask).fit(X, y).scores_, whole)


def test_large_tables_may_have_missing_values():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, (500, 600)).astype(float)
    y = rng.integers(0, 2, 500)
    X[rng.random(X.shape) < 0.1] = np.nan
    level, pairs = (MRMR(missing=way).fit(X, y) for way in ("level", "pairs"))
    columns = labels(X[:, :5])
    assert_allclose(level.relevance_[:5], [contingency(x, y.tolist()) for x in columns], atol=1e-11)
    there = ~np.isnan(X[:, 7])
    alone = contingency(X[there, 7].tolist(), y[there].tolist())
    assert_allclose(pairs.relevance_[7], alone, atol=1e-11)


def test_a_column_without_values_has_no_information():
    X, y = mixed()
    X[:, 2] = np.nan
    for missing in ("level", "pairs"):
        criterion = MRMR(missing=missing).fit(X, y)
        assert criterion.idle_[2]
        assert criterion.relevance_[2] == 0
        assert np.isfinite(criterion.gain(np.array([2]), np.array([0, 1]))).all()


def test_a_search_does_not_fill_in_missing_values():
    X, y = mixed()
    search = Forward(MRMR(categories=[1]), n_features_to_select=3).fit(X, y)
    raw = Forward(MRMR(categories=[1]), n_features_to_select=3, standardize=False).fit(X, y)
    assert_array_equal(search.order_, raw.order_)
    assert search.transform(X).shape == (60, 3)
    assert np.isnan(search.transform(X)).any() == np.isnan(X[:, search.support_]).any()


def test_missing_values_are_ignored_in_standardisation():
    X = np.array([[1.0, 5.0, np.nan], [np.nan, 6.0, np.nan], [3.0, 7.0, np.nan], [8.0, 1, np.nan]])
    expected = StandardScaler().fit_transform(X[:, :2])
    assert_allclose(standardised(X)[:, :2], expected)
    assert np.isnan(standardised(X)[:, 2]).all()


def test_duplicates_have_missing_values_in_the_same_rows():
    x = np.array([1.0, np.nan, 3.0, 2.0])
    other = np.array([1.0, 5.0, 3.0, np.nan])
    once = np.array([2.0, 2.0, np.nan, 2.0])
    X = np.column_stack([x, other, x, np.full(4, np.nan), once])
    assert_array_equal(idle_columns(X), [False, False, True, True, False])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"missing": "drop"}, "missing to be 'level' or 'pairs'"),
        ({"categories": [9]}, "among the columns 0 to 4"),
        ({"categories": [True, False]}, "one boolean for each of the 5"),
        ({"categories": ["a"]}, "indices of columns"),
        ({"adjusted": "yes"}, "adjusted to be 'auto', True or False"),
    ],
)
def test_invalid_parameters_are_refused(parameters, said):
    for kind in (MRMR, MutualInformation):
        with pytest.raises(InvalidParameter, match=said):
            kind(**parameters).fit(*mixed())


# -- estimators ------------------------------------------------------------------------------------

TAKES = [
    HistGradientBoostingClassifier(max_iter=5),
    make_pipeline(SimpleImputer(), LogisticRegression()),
    make_pipeline(StandardScaler(), make_pipeline(SimpleImputer()), SVC()),
    make_pipeline(make_union(SimpleImputer(), SimpleImputer(strategy="median")), SVC()),
    make_pipeline("passthrough", RandomForestClassifier()),
    GridSearchCV(make_pipeline(SimpleImputer(), SVC()), {"svc__C": [1, 10]}),
]
REFUSES = [
    SVC(),
    make_pipeline(StandardScaler(), SVC()),
    make_pipeline(SelectFromModel(SVC()), SimpleImputer(), SVC()),
    SVC,
]


@pytest.mark.parametrize(("estimator", "takes"), [(e, True) for e in TAKES] + [
    (e, False) for e in REFUSES
], ids=str)  # fmt: skip
def test_support_of_nan_is_found_for_each_estimator(estimator, takes):
    assert allows_nan(estimator) == takes


def gappy(n=90):
    X, y = mixed(n, seed=5)
    return X + 0.0, y


@pytest.mark.parametrize("estimator", TAKES[:3], ids=str)
def test_cross_validation_gets_missing_values(estimator):
    X, y = gappy()
    criterion = CrossValidated(estimator, cv=3).fit(X, y)
    subset = np.array([0, 2, 3])
    expected = cross_val_score(estimator, X[:, subset], y, cv=3).mean()
    assert criterion.value(subset) == pytest.approx(expected)


def test_categories_of_boosting_keep_their_columns():
    X, y = gappy()
    X[:, 1] = np.random.default_rng(0).permutation(21)[X[:, 1].astype(int)]  # no order
    named = HistGradientBoostingClassifier(max_iter=5, categorical_features=[1], random_state=0)
    criterion = CrossValidated(named, cv=3).fit(X, y)
    for subset, inside in [([0, 2], None), ([0, 1, 3], [1]), ([1], [0]), ([2, 3, 4], None)]:
        told = named.__class__(max_iter=5, categorical_features=inside, random_state=0)
        expected = cross_val_score(told, X[:, subset], y, cv=3).mean()
        assert criterion.value(np.array(subset)) == pytest.approx(expected)
    search = Forward(CrossValidated(named, cv=3), n_features_to_select=2).fit(X, y)
    raw = Forward(CrossValidated(named, cv=3), n_features_to_select=2, standardize=False).fit(X, y)
    assert_array_equal(search.order_, raw.order_)


def test_categories_by_position_work_for_sensitivities():
    X, y = gappy()
    named = HistGradientBoostingClassifier(max_iter=3, categorical_features=[1])
    criterion = PosteriorSensitivity(named, n_values=3).fit(X, y)
    assert len(criterion.loss(np.arange(5))) == 5
    with pytest.raises(IncompatibleCriterion, match=r"would mean others.*CrossValidated"):
        criterion.loss(np.array([0, 2]))


def test_importances_and_sensitivities_get_missing_values():
    X, y = gappy()
    forest = RandomForestClassifier(10, random_state=0)
    found = Importances(forest).fit(X, y).loss(np.arange(5))
    assert_allclose(found, forest.fit(X, y).feature_importances_)
    boosting = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    sensitivity = PosteriorSensitivity(boosting).fit(X, y)
    p, moved = boosting.fit(X, y).predict_proba(X), np.zeros(len(X))
    for value in X[:, 0]:
        altered = X.copy()
        altered[:, 0] = value
        moved += np.abs(p - boosting.predict_proba(altered)).sum(axis=1) / 2 / len(X)
    assert_allclose(sensitivity.loss(np.arange(5))[0], moved.mean())


def test_a_search_accepts_nan_with_an_imputing_pipeline():
    X, y = gappy()
    pipeline = make_pipeline(SimpleImputer(), LogisticRegression())
    search = Forward(CrossValidated(pipeline, cv=3), n_features_to_select=2).fit(X, y)
    assert search.n_features_ == 2
    getter = "named_steps.logisticregression.coef_"
    path = Importances(pipeline, importance_getter=getter)
    assert RecursiveElimination(path, n_features_to_select=2).fit(X, y).n_features_ == 2
    both = Then(Ranking(MutualInformation(), n_features_to_select=4), search).fit(X, y)
    assert both.n_features_ == 2


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_boosting_libraries_get_nan(library):
    module = pytest.importorskip(library)
    X, y = gappy()
    if library == "lightgbm":
        model = module.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1)
    elif library == "xgboost":
        model = module.XGBClassifier(n_estimators=3, n_jobs=1)
    else:
        model = module.CatBoostClassifier(
            iterations=3, verbose=False, allow_writing_files=False, thread_count=1
        )
    criterion = CrossValidated(model, cv=3).fit(X, y)
    assert criterion.value(np.arange(5)) > criterion.value(np.array([2]))


# -- sentences -------------------------------------------------------------------------------------


def test_the_message_names_columns_counts_and_a_remedy():
    import pandas as pd

    X, y = mixed()
    frame = pd.DataFrame(X, columns=list("abcde"))
    n_gone = int(np.isnan(X).sum())
    with pytest.raises(InvalidTable, match=rf"{n_gone} missing.*'a', 'c', 'e'.*SimpleImputer"):
        Ranking(FisherScore()).fit(frame, y)
    with pytest.raises(InvalidTable, match=r"column\(s\) 0, 2, 4.*NaN, such as MRMR"):
        HSIC().fit(X, y)
    with pytest.raises(InvalidTable, match=r"CrossValidated\(make_pipeline\(Simple.*SVC"):
        Forward(CrossValidated(SVC())).fit(X, y)
    with pytest.raises(InvalidTable, match="infinity"):
        MRMR().fit(np.where(np.isnan(X), np.inf, X), y)
    with pytest.raises(InvalidTable, match="missing"):
        Then(Ranking(MutualInformation()), Ranking(FisherScore())).fit(X, y)


def test_no_row_is_dropped_silently():
    X, y = mixed()
    criterion = MRMR().fit(X, y)
    assert criterion._coded.n_samples == len(X)
    with pytest.raises(InvalidTarget, match=r"missing \(NaN\) in 2 row\(s\): 3, 8. Leave"):
        MRMR().fit(X, np.where(np.isin(np.arange(60), [3, 8]), np.nan, y))
    words = np.array(["a", "b"], dtype=object)[y % 2]
    words[7] = None
    with pytest.raises(InvalidTarget, match=r"1 row\(s\): 7"):
        MRMR().fit(X, words)
