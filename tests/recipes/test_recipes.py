"""The recipes: each runs on every bundled table of a suitable kind. Names, options and usage."""

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.svm import SVC

from tamis.auto import Auto
from tamis.contract import Selection
from tamis.contract.criterion import TASKS
from tamis.criteria import Correlation, CrossValidated, FisherScore, Scatter
from tamis.datasets import load
from tamis.exceptions import (
    DegenerateData,
    IncompatibleCriterion,
    InvalidParameter,
    InvalidSpec,
    InvalidTarget,
    NotProvenOptimal,
    TamisError,
)
from tamis.recipes import Recipe, find, method, names, prepare, recipe, select
from tamis.recipes.book import BOOK
from tamis.response import GenericEngine
from tamis.search import Forward, Genetic, Ranking, Then
from tamis.spec import parse, write

TABLES = {
    "iris": "classification",
    "wine": "classification",
    "wdbc": "classification",
    "diabetes": "regression",
}
#: They train dozens of networks or forests, so only the iris table is used.
TRAINED = {
    *(name for name in names() if "fsmlp" in name),
    *("lasso-mlp", "mlp-fspp-rfe", "moi-rfe", "ga-knn"),
    *("forest-rfe", "random-forest-rfe", "boosting-rfe", "boruta"),
}
#: Each differs from another recipe in one setting, and tunes an SVM for seconds.
TWINS = {
    *("sd-g-init", "sd-l-init", "sd-l-rfe-permuted", "sd-g-rfe-permuted", "fspp1-rfe-permuted"),
    *(
        "mlp-fspp-rfe-permuted",
        "mlp-fspp-init",
        "gated-fsmlp-crc-open",
        "rmb-regression-rfe",
        "nnfs",
    ),
}


#: They tune SVMs or train forests for seconds on 442 rows. The laws run them too.
LONG_ON_DIABETES = {"sd-g-rfe", "boruta-regression", "forest-regression-rfe"}


#: The laws run them in the quick run, on tables of this size; training takes seconds.
IN_LAWS = {"boruta", "forest-rfe", "fsmlp-al-crc-joint", "fsmlp-al-grc-joint"}


def takes_long(name, table):
    """Return whether a recipe on a table belongs to the slow tests.

    The largest table always does.
    """
    if name in IN_LAWS:
        return True
    if table == "diabetes":
        return name in TWINS | LONG_ON_DIABETES
    return table == "wdbc" or (table != "iris" and name in TWINS | TRAINED)


PAIRS = [
    pytest.param(name, table, marks=pytest.mark.slow if takes_long(name, table) else ())
    for table, kind in TABLES.items()
    for name in names()
    if kind in BOOK[name].targets
]
#: Recipes that train models use a third of the rows in the quick run, and all in the slow one.
BY_THIRDS = TRAINED | TWINS | {"sd-l-rfe", "annigma", "mlp-fspp-rfe", "fspp1-rfe", "fspp2-rfe"}
PARTS = [
    pytest.param(*pair.values, part, marks=pytest.mark.slow if part == "all" else pair.marks)
    for pair in PAIRS
    for part in (("a third", "all") if pair.values[0] in BY_THIRDS else ("every row",))
]
# recipes that train hundreds of models, or scan all pairs, on 1797 rows and 64 columns
SLOW_ON_DIGITS = {"sfs-knn", "sffs-knn", "ga-knn", "sfs-lda", "branch-and-bound-j3"} | {
    "mi-pw",
    "kwak",
    "hsic-forward",
    "moi-rfe",
    "boosting-rfe",
    "forest-rfe",
    "boruta",
    "nnfs",
    "annigma",
    "mrmr-two-stage",
    "lasso-mlp",
    "grad-w2-rfe",
    "random-forest-rfe",
    "divergence-parzen-sffs",
    *(name for name in names() if name.startswith(("rmb", "span"))),
    *(name for name in names() if "fspp" in name or "fsmlp" in name),
}

#: They select all relevant columns, and all four columns of iris are relevant.
DECIDE = {"boruta", "boruta-regression", "gated-fsmlp-crc-open"}


def neither_nothing_nor_everything(name, table, step=1):
    X, y, *_ = load(table)
    X, y = X[::step], y[::step]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotProvenOptimal)
        warnings.simplefilter("ignore", DegenerateData)  # a class that needs no column
        selection = recipe(name).fit(X, y)
    assert 0 < selection.n_features_ < X.shape[1] + (name in DECIDE)
    assert sorted(selection.order_) == list(range(X.shape[1]))


@pytest.mark.parametrize(("name", "table", "part"), PARTS)
def test_every_recipe_runs_without_arguments(name, table, part):
    neither_nothing_nor_everything(name, table, 3 if part == "a third" else 1)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW_ON_DIGITS else ())
        for name in names()
        if "classification" in BOOK[name].targets
    ],
)
def test_every_recipe_runs_on_digits(name):
    neither_nothing_nor_everything(name, "digits")


@pytest.mark.parametrize("name", names())
def test_a_recipe_is_described(name):
    (one,) = (found for found in find() if found.name == name)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert one.summary.endswith(".")
    assert re.search(r"\b(19|20)\d\d\b", one.reference)
    assert one.targets
    assert one.targets <= TASKS
    assert isinstance(one.make(), Selection)
    assert write(parse(one.expression)) == one.expression
    assert one in find(one.reference)


@pytest.mark.parametrize("name", sorted(set(names()) - DECIDE))
def test_options_are_passed_to_the_search(name):
    made = recipe(name, n_features_to_select=3)
    last = made.second if isinstance(made, Then) else made
    assert last.n_features_to_select == 3
    assert write(method(f"{name}(n_features_to_select=3)")) == write(made)
    assert write(method(f" {name} ")) == write(recipe(name))
    with pytest.raises(InvalidSpec, match=rf"{name} has no option 'n_featurs'.*Its options are .*"):
        recipe(name, n_featurs=3)


def test_recipes_declare_their_kinds_of_target():
    assert BOOK["fisher-score"].targets == {"classification"}
    assert BOOK["svr-rfe"].targets == {"regression"}
    assert BOOK["correlation"].targets == {"classification", "regression"}
    assert BOOK["t-test-fdr"].targets == {"classification", "regression"}


def test_recipes_have_their_own_options():
    assert recipe("svm-rfe", C=7).criterion.estimator.C == 7
    assert recipe("svm-rfe").criterion.estimator.kernel == "linear"
    assert recipe("svm-rfe", kernel="rbf", gamma=0.1).criterion.estimator.gamma == 0.1
    assert recipe("ga-knn", n_generations=3).n_generations == 3
    assert recipe("branch-and-bound-j3", max_evaluations=None).max_evaluations is None
    assert recipe("t-test-fdr", q=0.01).first.n_features_to_select.q == 0.01
    with pytest.raises(InvalidSpec, match="Did you mean n_generations"):
        recipe("ga-knn", n_generation=3)


def test_boruta_accepts_any_search_and_no_number_of_columns():
    made = recipe("boruta", search=Forward(Scatter("J3")), n_rounds=30)
    assert write(made) == "Contest(Forward(Scatter()), n_rounds=30)"
    assert (
        write(method("boruta(search=Ranking(FisherScore()))")) == "Contest(Ranking(FisherScore()))"
    )
    published = recipe("boruta")
    assert (published.early_rejection, published.n_rounds) == (True, 100)
    assert recipe("boruta", n_rounds=30, early_rejection=False).n_rounds == 30
    assert recipe("boruta", n_estimators=7).search.criterion.estimator.n_estimators == 7
    assert recipe("boruta-regression").search.criterion.estimator.n_estimators == 100
    with pytest.raises(InvalidParameter, match="it determines the number itself"):
        prepare("boruta", n_features_to_select=3)


def decoys(seed, n=150):
    """Return three relevant columns, a redundant column for each, and 14 of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    X[:, 3:6] = 0.8 * X[:, :3] + 0.6 * X[:, 3:6]
    return X, X[:, :3].sum(axis=1) + rng.normal(size=n)


#: Selected by BorutaPy 0.4.3 (max_iter=20, two_step=False) with the same forests of 30 trees.
BORUTAPY = [
    ("boruta", 0, [0, 1, 2]),
    ("boruta", 1, [0, 1, 2, 4]),
    ("boruta-regression", 0, [0, 1, 2, 4]),
]


@pytest.mark.parametrize(("name", "seed", "kept"), BORUTAPY)
def test_boruta_agrees_with_the_original(name, seed, kept):
    X, y = decoys(seed)
    target = (y > 0).astype(int) if name == "boruta" else y
    found = recipe(name, n_estimators=30, n_rounds=20, random_state=seed).fit(X, target)
    assert found.columns == kept


def test_all_columns_that_pass_the_test_can_be_selected():
    X, y, *_ = load("diabetes")
    kept = recipe("t-test-fdr", n_features_to_select=1.0).fit(X, y)
    assert kept.n_features_ == 9


def test_find_searches_name_summary_and_reference():
    assert [r.name for r in find("rfe")] == [name for name in names() if "rfe" in name]
    assert [r.name for r in find("GUYON repeatedly")] == ["svm-rfe"]
    assert find("no such words") == []
    assert [r.name for r in find()] == names() == sorted(names())


def test_recipe_descriptions_are_immutable():
    one = find("svm-rfe")[0]
    with pytest.raises(AttributeError):
        one.name = "other"
    assert isinstance(one, Recipe)
    assert next(iter(one.parameters)) == "C"


@pytest.mark.parametrize("text", ["svm-rf", "svm_rfe", "SVM-RFE", "nonsense", "forward(Scatter())"])
def test_unknown_methods_are_refused(text):
    with pytest.raises(InvalidSpec) as caught:
        method(text)
    assert "nonsense" in text or "Did you mean" in str(caught.value)


def test_an_unknown_recipe_is_refused():
    with pytest.raises(InvalidSpec, match=r"No method is called 'sff-j3'\. Did you mean sffs-j3"):
        recipe("sff-j3")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("FisherScore()", r"FisherScore\(\) is a criterion.*Write Forward\(FisherScore\(\)\)"),
        ("SVC()", r"SVC\(\) is not a method"),
        ("[1]", "is not a method"),
        ("svm-rfe(C=)", "is not an expression"),
        ("svm-rfe(3)", "takes no argument without a name, not 1. Its parameters are C, "),
        ("svm-rfe(CC=3)", "has no parameter 'CC'"),
        ("svm-rfe(C=x)", "is called x at character 11"),
        (3, "needs the name of a recipe or an expression, not 3"),
    ],
)
def test_invalid_methods_are_refused(text, sentence):
    with pytest.raises(InvalidSpec, match=sentence):
        method(text)


def test_select_by_name_expression_and_object():
    X, y, *_ = load("iris")
    expected = Forward(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support()
    for asked in (
        'Forward(Scatter("J3"), n_features_to_select=2)',
        Forward(Scatter("J3"), n_features_to_select=2),
    ):
        np.testing.assert_array_equal(select(X, y, asked).get_support(), expected)
    chosen = select(X, y, 'Forward(Scatter("J3"))', n_features_to_select=2)
    np.testing.assert_array_equal(chosen.get_support(), expected)


@pytest.mark.parametrize("table", ["wine", "wdbc", "diabetes"])
def test_select_has_a_default_for_each_kind(table):
    X, y, *_ = load(table)
    selection = select(X, y, random_state=0)
    assert write(selection) == "Auto(budget=0.5, random_state=0)"  # a second for all tests
    assert "Auto" in inspect.getdoc(select)
    assert 0 < selection.n_features_ <= X.shape[1]


@pytest.mark.parametrize("name", ["column-subset", "ufescor"])
def test_unsupervised_methods_ignore_the_target(name):
    X, y, *_ = load("wine")
    with_target = select(X, y, name, random_state=0)
    without = select(X, method=name, random_state=0)
    np.testing.assert_array_equal(without.order_, with_target.order_)


def test_labels_may_be_text():
    X, y, _, classes, *_ = load("wine")
    by_name = select(X, classes[y], "ridge-rfe", n_features_to_select=4)
    np.testing.assert_array_equal(
        by_name.get_support(), select(X, y, "ridge-rfe", n_features_to_select=4).get_support()
    )


def test_select_does_not_change_its_arguments():
    given = Genetic(CrossValidated(LogisticRegression(), cv=KFold(shuffle=True)))
    before = write(given)
    made = prepare(given, n_features_to_select=3, random_state=5, n_jobs=2)
    assert write(given) == before
    assert made.n_features_to_select == 3
    assert made.random_state == 5
    again = prepare(given, n_features_to_select=3, random_state=5, n_jobs=2)
    assert write(again) == write(made)
    assert isinstance(made.criterion.estimator.random_state, int)
    assert isinstance(made.criterion.cv.random_state, int)
    assert made.criterion.n_jobs == 2
    assert made.criterion.estimator.n_jobs is None
    assert given.criterion.cv.random_state is None


def test_given_seeds_are_not_changed():
    given = Genetic(CrossValidated(SVC(random_state=1), cv=KFold()), random_state=2)
    made = prepare(given, random_state=5)
    assert (made.random_state, made.criterion.estimator.random_state) == (2, 1)
    assert made.criterion.cv.random_state is None  # it does not shuffle


def test_select_is_reproducible():
    X, y, *_ = load("wine")
    one, two = (select(X, y, "random-forest-rfe", random_state=0) for _ in range(2))
    np.testing.assert_array_equal(one.order_, two.order_)


def test_n_features_of_a_composed_search():
    X, y, *_ = load("wine")
    asked = "Then(Ranking(FisherScore(), n_features_to_select=8), Forward(Scatter()))"
    assert select(X, y, asked, n_features_to_select=3).n_features_ == 3


@pytest.mark.parametrize("n_features", [0, 14, -1, 1.5, "most", True])
def test_invalid_numbers_of_features_are_refused(n_features):
    X, y, *_ = load("wine")
    with pytest.raises(InvalidParameter, match="n_features_to_select"):
        select(X, y, n_features_to_select=n_features)


def test_the_task_can_be_given():
    X, *_ = load("iris")
    y = np.arange(len(X)) // 50
    assert isinstance(prepare(None, y), Auto)
    assert prepare(None, y, task="regression").task == "regression"
    assert prepare("correlation", y, task="regression").criterion.task == "regression"
    assert prepare(
        Ranking(Correlation(task="classification")), y, task="regression"
    ).criterion.task == ("classification")
    # integers with few values may be a regression target without a warning
    assert prepare("svr-rfe", y) is not None


def test_a_method_for_classes_refuses_a_real_target():
    X, y, *_ = load("diabetes")
    with pytest.raises(IncompatibleCriterion, match=r"fisher-score needs classes.*correlation"):
        select(X, y, "fisher-score")
    with pytest.raises(IncompatibleCriterion, match=r"Ranking\(FisherScore\(\)\) needs classes"):
        select(X, y, Ranking(FisherScore()))
    with pytest.raises(IncompatibleCriterion, match="svr-rfe needs a numeric target"):
        select(X, y > 100, "svr-rfe", task="classification")
    with pytest.raises(IncompatibleCriterion, match="different kinds"):
        select(X, y, Then(recipe("svr-rfe"), recipe("svm-rfe")))


def test_invalid_arguments_of_select_are_refused():
    X, y, *_ = load("wine")
    with pytest.raises(InvalidTarget, match="select needs y"):
        select(X)
    with pytest.raises(InvalidParameter, match="task to be 'auto'"):
        select(X, y, task="class")
    with pytest.raises(InvalidSpec, match="is not a method"):
        select(X, y, 3)
    with pytest.raises(InvalidSpec, match="is not a method"):
        select(X, y, SVC())
    with pytest.raises(InvalidTarget, match="at least two classes"):
        select(X, np.zeros(len(X), dtype=int))


def test_a_text_target_is_refused_for_regression():
    X, y, _, classes, *_ = load("wine")
    with pytest.raises(TamisError):
        select(X, classes[y], "svr-rfe")


def test_the_selection_can_be_cloned():
    X, y, *_ = load("wine")
    assert write(clone(select(X, y, "sfs-lda"))) == write(recipe("sfs-lda"))


def test_boosting_models_of_other_libraries_can_be_named():
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    text = "boosting-rfe(estimator=LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1))"
    X, y, *_ = load("wine")
    selection = select(X, y, text, n_features_to_select=4, random_state=0)
    assert selection.n_features_ == 4
    assert write(parse(write(method(text)))) == write(method(text))
    real = "boosting-regression-rfe(estimator=LGBMRegressor(n_estimators=10, verbose=-1))"
    assert recipe("boosting-regression-rfe").criterion.on == "held-out"
    assert method(real).criterion.estimator.n_estimators == 10
    with pytest.raises(IncompatibleCriterion, match="needs a classifier, not LGBMRegressor"):
        select(X, y, "boosting-rfe(estimator=LGBMRegressor())")


def test_forests_are_evaluated_without_altered_copies(monkeypatch):
    def refuse(*_):
        raise AssertionError("altered copies are made")

    monkeypatch.setattr(GenericEngine, "batches", refuse)
    X, y, *_ = load("iris")
    for name in ("forest-rfe(n_estimators=5)", "boosting-rfe"):
        assert select(X, y, name, n_features_to_select=2).n_features_ == 2


def test_all_but_two_recipes_need_a_target():
    free = {n for n in names() if not recipe(n).__sklearn_tags__().target_tags.required}
    assert free == {"column-subset", "ufescor"}


@pytest.mark.parametrize(
    ("name", "options"),
    [("svm-init", {}), ("grad-w2-init", {"estimator": SVC(kernel="linear")})],
)
def test_norm_init_recipes_rank_by_the_squared_weights_of_one_linear_svm(name, options):
    X, y, *_ = load("wdbc")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = SVC(kernel="linear").fit(X, y).coef_[0] ** 2
    ranked = recipe(name, n_features_to_select=5, **options).fit(X, y)
    assert list(ranked.order_[:5]) == list(np.argsort(-weights)[:5])


def test_the_parzen_divergence_finds_classes_with_equal_means_and_spreads():
    """Two clusters of a class have nearly the mean and the variance of the other class."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    clusters = rng.choice([-1.0, 1.0], 100) + 0.1 * rng.normal(size=100)
    both = np.concatenate([clusters, rng.normal(size=100)])
    X = np.c_[rng.normal(size=(200, 2)), both]
    found = recipe("divergence-parzen-sffs", n_features_to_select=1).fit(X, y)
    assert list(found.get_support(indices=True)) == [2]
    gaussian = recipe("divergence-sffs", n_features_to_select=1).fit(X, y)
    assert gaussian.trace_[0].value < found.trace_[0].value
