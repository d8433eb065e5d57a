"""Methods of the benchmark: tamis, other packages and baselines.

A method is a function ``(X, y, k, rng)``. Its arguments are the training rows and their target, the
maximum number of columns that is measured, and a random generator. It returns ranked columns, best
first, or a fitted scikit-learn selector, which also chooses a number of columns.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SequentialFeatureSelector,
    f_classif,
    f_regression,
    mutual_info_classif,
    mutual_info_regression,
)
from sklearn.inspection import permutation_importance as permute
from sklearn.linear_model import LassoCV, Ridge, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

import tamis
from tamis._arrays import Array, Subset, best_first
from tamis._format import did_you_mean
from tamis._seeds import draw_seed
from tamis.auto import Auto
from tamis.exceptions import InvalidParameter
from tamis.recipes.book import BOOK

Select = Callable[[Array, NDArray[Any], int, np.random.Generator], Any]
BOTH = frozenset({"classification", "regression"})


class Method(NamedTuple):
    """A method and its description.

    Attributes
    ----------
    select : callable
        Function ``(X, y, k, rng)`` that returns ranked columns or a fitted selector.
    group : str
        "baseline", "filter", "model", "slow" or "auto". Quick groups run first.
    package : str
        The package that has to be installed.
    targets : set of str
        "classification", "regression" or both.

    Examples
    --------
    >>> mine = Method(lambda X, y, k, rng: rng.permutation(X.shape[1]), "baseline")
    >>> sorted(mine.targets)
    ['classification', 'regression']
    """

    select: Select
    group: str
    package: str = "sklearn"
    targets: frozenset[str] = BOTH


def _is_classes(y: NDArray[Any]) -> bool:
    return y.dtype.kind == "i"


def _codes(y: NDArray[Any]) -> NDArray[Any]:
    """Return consecutive class numbers from 0, or the numeric target."""
    return np.unique(y, return_inverse=True)[1] if _is_classes(y) else y


def _labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return classes as text, or the numeric target. tamis reads many integers as numbers."""
    return np.char.zfill(y.astype(str), 9) if _is_classes(y) else y


def _best(scores: Any) -> Subset:
    """Return all columns, the one with the greatest score first. Undefined scores are last."""
    return best_first(np.nan_to_num(np.asarray(scores, dtype=float), nan=-np.inf))


def random(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank the columns at random."""
    return rng.permutation(X.shape[1])


def first_columns(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Return the columns in table order."""
    return np.arange(X.shape[1])


def all_columns(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Select all columns at every size."""
    return np.arange(X.shape[1])


def f_test(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by scikit-learn's F-test, as ``SelectKBest`` does."""
    return _best((f_classif if _is_classes(y) else f_regression)(X, y)[0])


def mutual_info(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by scikit-learn's mutual information of nearest neighbours."""
    score = mutual_info_classif if _is_classes(y) else mutual_info_regression
    return _best(score(X, y, random_state=draw_seed(rng)))


def _linear(y: NDArray[Any]) -> Any:
    return RidgeClassifier() if _is_classes(y) else Ridge()


def rfe(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Eliminate a tenth of the columns at a time by the coefficients of a ridge model."""
    ranking = RFE(_linear(y), n_features_to_select=1, step=0.1).fit(X, y).ranking_
    return np.argsort(ranking, kind="stable")


def rfecv(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Any:
    """Eliminate as ``rfe`` does, and choose the number of columns by cross-validation."""
    return RFECV(_linear(y), step=0.1, cv=3).fit(X, y)


class _FromModel(SelectFromModel):
    """``SelectFromModel`` that also orders the columns by importance."""

    @property
    def order_(self) -> Subset:
        """All columns, the most important first."""
        fitted = self.estimator_
        has_coefficients = hasattr(fitted, "coef_")
        found = fitted.coef_ if has_coefficients else fitted.feature_importances_
        return _best(np.abs(np.atleast_2d(found)).sum(axis=0))


def lasso(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Any:
    """Rank by the coefficients of a linear model with an L1 penalty, and keep the nonzero ones."""
    model = LassoCV(cv=3, random_state=draw_seed(rng))
    if _is_classes(y):
        model = LinearSVC(penalty="l1", dual=False, C=0.1, random_state=draw_seed(rng))
    return _FromModel(model, threshold=1e-5).fit(X, y)


def _forest(y: NDArray[Any], rng: np.random.Generator, **options: Any) -> Any:
    forest = RandomForestClassifier if _is_classes(y) else RandomForestRegressor
    return forest(random_state=draw_seed(rng), **options)


def forest(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Any:
    """Rank by the impurity importances of a random forest, and keep those above the mean."""
    return _FromModel(_forest(y, rng)).fit(X, y)


def permutation(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by the permutation importances of a random forest on a held-out third of the rows."""
    seed = draw_seed(rng)
    train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, random_state=seed)
    fitted = _forest(y, rng).fit(X[train], y[train])
    return _best(permute(fitted, X[test], y[test], random_state=seed).importances_mean)


class _Recorded(SequentialFeatureSelector):
    """``SequentialFeatureSelector`` that records the order in which it selects columns."""

    def _get_best_new_feature_score(self, *args: Any) -> Any:
        found = super()._get_best_new_feature_score(*args)
        self.__dict__.setdefault("added", []).append(found[0])
        return found


def sequential(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Select forward by the cross-validated score of a ridge model."""
    k = min(k, X.shape[1] - 1)
    return np.array(_Recorded(_linear(y), n_features_to_select=k, cv=3).fit(X, y).added)


def mrmr_selection(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Select by mRMR with F-test and correlations, as in the package mrmr_selection."""
    from mrmr import mrmr_classif, mrmr_regression

    select = mrmr_classif if _is_classes(y) else mrmr_regression
    options = {"K": k, "show_progress": False, "n_jobs": 1}
    return np.array(select(X=pd.DataFrame(X), y=pd.Series(y), **options), dtype=int)


def boruta_py(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Any:
    """Select the columns that a forest finds better than shuffled ones (package boruta)."""
    from boruta import BorutaPy

    options = {"n_estimators": "auto", "random_state": draw_seed(rng)}
    return BorutaPy(_forest(y, rng, max_depth=5), **options).fit(X, y)


def fastcan(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Select columns one by one, by canonical correlation with target or class indicators."""
    from fastcan import FastCan

    target = np.eye(y.max() + 1)[:, np.unique(y)][y] if _is_classes(y) else y
    k = min(k, X.shape[1], len(y) - 2)
    return np.asarray(FastCan(k, verbose=0).fit(X, target).indices_)


def fast_select(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by MultiSURF, as in the package fast-select."""
    from fast_select import MultiSURF

    options = {"backend": "cpu", "n_jobs": 1, "verbose": False}
    fitted = MultiSURF(n_features_to_select=k, **options).fit(X, y)
    return _best(fitted.feature_importances_)


def _lightgbm(y: NDArray[Any], rng: np.random.Generator) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = LGBMClassifier if _is_classes(y) else LGBMRegressor
    options = {"importance_type": "gain", "n_jobs": 1, "verbose": -1}
    return model(random_state=draw_seed(rng), **options)


def lightgbm(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by the gain of LightGBM."""
    return _best(_lightgbm(y, rng).fit(X, y).feature_importances_)


def shap(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by the mean absolute SHAP value of LightGBM."""
    fitted = _lightgbm(y, rng).fit(X, y)
    values = np.abs(fitted.booster_.predict(X, pred_contrib=True)).mean(axis=0)
    return _best(values.reshape(-1, X.shape[1] + 1)[:, :-1].sum(axis=0))  # the last is the bias


def xgboost(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by the gain of XGBoost."""
    from xgboost import XGBClassifier, XGBRegressor

    model = (XGBClassifier if _is_classes(y) else XGBRegressor)(n_jobs=1)
    model.set_params(random_state=draw_seed(rng))
    return _best(model.fit(X, _codes(y)).feature_importances_)


def catboost(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by the importances of CatBoost with 200 trees."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    model = CatBoostClassifier if _is_classes(y) else CatBoostRegressor
    options = {"iterations": 200, "thread_count": 1, "allow_writing_files": False}
    fitted = model(random_seed=draw_seed(rng), verbose=0, **options).fit(X, y)
    return _best(fitted.feature_importances_)


def mlxtend(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Select by floating forward search with the cross-validated score of a ridge model."""
    from mlxtend.feature_selection import SequentialFeatureSelector as Floating

    fitted = Floating(_linear(y), k_features=k, floating=True, cv=3).fit(X, y)
    subsets = [fitted.subsets_[size]["feature_idx"] for size in sorted(fitted.subsets_)]
    return np.array(list(dict.fromkeys(j for subset in subsets for j in subset)))


def auto(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Any:
    """Select by tamis without naming a method."""
    return Auto(random_state=draw_seed(rng)).fit(X, _labels(y))


def scikit_rebate(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by MultiSURF, as in the package scikit-rebate."""
    from skrebate import MultiSURF

    return _best(MultiSURF().fit(X.copy(), y).feature_importances_)


def lasso_net(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by the penalty at which LassoNet drops a column."""
    from lassonet import LassoNetClassifier, LassoNetRegressor

    model = LassoNetClassifier if _is_classes(y) else LassoNetRegressor
    fitted = model(random_state=draw_seed(rng) % 2**31, verbose=0)
    fitted.path(X.astype("float32"), _codes(y) if _is_classes(y) else y.astype("float32"))
    return _best(fitted.feature_importances_)


def knockpy(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Subset:
    """Rank by the knockoff statistics of a ridge model."""
    from knockpy import KnockoffFilter

    knockoffs = KnockoffFilter(ksampler="gaussian", fstat="ridge")
    knockoffs.forward(X=X, y=y.astype(float), fdr=0.2)
    return _best(knockoffs.W)


PEERS = {
    "random": Method(random, "baseline"),
    "first columns": Method(first_columns, "baseline"),
    "all columns": Method(all_columns, "baseline"),
    "SelectKBest, F": Method(f_test, "filter"),
    "SelectKBest, mutual_info": Method(mutual_info, "filter"),
    "mrmr_selection": Method(mrmr_selection, "filter", "mrmr"),
    "fastcan": Method(fastcan, "filter", "fastcan"),
    "fast-select": Method(fast_select, "filter", "fast_select", frozenset({"classification"})),
    "scikit-rebate": Method(scikit_rebate, "slow", "skrebate"),
    "RFE": Method(rfe, "model"),
    "RFECV": Method(rfecv, "model"),
    "SelectFromModel, L1": Method(lasso, "model"),
    "SelectFromModel, forest": Method(forest, "model"),
    "permutation_importance": Method(permutation, "model"),
    "LightGBM gain": Method(lightgbm, "model", "lightgbm"),
    "LightGBM SHAP": Method(shap, "model", "lightgbm"),
    "XGBoost gain": Method(xgboost, "model", "xgboost"),
    "CatBoost": Method(catboost, "model", "catboost"),
    "SequentialFeatureSelector": Method(sequential, "slow"),
    "mlxtend": Method(mlxtend, "slow", "mlxtend"),
    "BorutaPy": Method(boruta_py, "slow", "boruta"),
    "LassoNet": Method(lasso_net, "slow", "lassonet"),
    "knockpy": Method(knockpy, "slow", "knockpy", frozenset({"regression"})),
    "Auto": Method(auto, "auto", "tamis"),
}
#: Recipes by group. Variants that only serve to reproduce publications are left out.
RECIPES = {
    "filter": (
        "correlation discriminant-ratio fisher-score kolmogorov-smirnov mutual-information "
        "relieff surf multisurf pair-scan cife cmim disr jmi mifs mifs-u mrmr nmifs "
        "mrmr-two-stage hsic-forward column-subset sfs-j3 sffs-j3 sfs-lda sfs-linear-regression"
    ),
    "model": (
        "svm-rfe svm-init svr-rfe ridge-rfe ridge-regression-rfe random-forest-rfe fspp2-rfe "
        "fspp3-rfe sd-l-rfe sd-g-rfe"
    ),
    "slow": (
        "forest-rfe forest-regression-rfe boosting-rfe boosting-regression-rfe boruta "
        "boruta-regression hsic-rfe mi-rsde mi-pw kwak fspp1-rfe fspp4-rfe grad-w2-rfe rmb-rfe "
        "rmb-regression-rfe span-rfe span-regression-rfe sd-g-init sbs-j3 sfbs-j3 "
        "bidirectional-j3 plus-l-minus-r-j3 branch-and-bound-j3 divergence-sffs "
        "divergence-parzen-sffs ga-knn sffs-knn sfs-knn annigma lasso-mlp mlp-fspp-rfe moi-rfe "
        "nnfs fsmlp-al-grc fsmlp-redundancy ufescor"
    ),
}
#: Recipes that eliminate columns. They run until one column is left, so that all are ranked.
_ELIMINATES = ("rfe", "sbs-j3", "sfbs-j3", "annigma", "lasso-mlp", "nnfs", "mi-pw", "mi-rsde")
#: Recipes that choose a number of columns themselves.
_CHOOSES = ("boruta", "boruta-regression", "mrmr-two-stage")


def recipe_method(name: str, group: str) -> Method:
    """Return a recipe of tamis as a method."""

    def select(X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Any:
        k = 1 if name.endswith(_ELIMINATES) else min(k, X.shape[1])
        selector = tamis.recipe(name, **({} if name in _CHOOSES else {"n_features_to_select": k}))
        if "random_state" in selector.get_params():
            selector.set_params(random_state=draw_seed(rng))
        fitted = selector.fit(X, _labels(y))
        return fitted if name in _CHOOSES else fitted.order_

    return Method(select, group, "tamis", BOOK[name].targets)


METHODS: dict[str, Method] = {
    **PEERS,
    **{
        name: recipe_method(name, group)
        for group, names in RECIPES.items()
        for name in names.split()
    },
}


def is_installed(method: Method) -> bool:
    """Return whether the package of a method is installed."""
    return find_spec(method.package) is not None


def find_method(name: str) -> list[str]:
    """Return the methods that a name stands for: a method, a group, or "tamis" or "peers".

    >>> "mrmr" in find_method("filter"), find_method("mrmr")
    (True, ['mrmr'])
    """
    if name in METHODS:
        return [name]
    groups = {one.group for one in METHODS.values()}
    if name in groups:
        return [key for key, one in METHODS.items() if one.group == name]
    if name in ("tamis", "peers"):
        ours = name == "tamis"
        return [key for key, one in METHODS.items() if (one.package == "tamis") == ours]
    known = [*METHODS, *groups, "tamis", "peers"]
    raise InvalidParameter(
        f"The benchmark needs names of methods or groups, got {name!r}.{did_you_mean(name, known)} "
        "Write one of the names that --list prints, or module:function for your own function."
    )
