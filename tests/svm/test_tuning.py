"""The certified best C compared with brute force and with scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm import SVCPath, SVCPathCV

from .problems import classification

GRID = 2 ** np.linspace(-9, 8, 1_702)[1:-1]


def brute(X, y, kernel, gamma, cv, grid=GRID):
    errors = np.zeros((len(cv), len(grid)))
    for k, (train, test) in enumerate(cv):
        path = SVCPath(kernel, gamma=gamma).fit(X[train], y[train])
        errors[k] = [(path.predict(X[test], C) != y[test]).mean() for C in grid]
    return errors


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_curve_over_folds_is_the_mean_of_the_folds(kernel):
    X, y = classification()
    cv = list(StratifiedKFold(5).split(X, y))
    search = SVCPathCV(kernel, gamma=0.2).fit(X, y)
    errors = brute(X, y, kernel, 0.2, cv)
    np.testing.assert_allclose(search.curve_(GRID), errors.mean(axis=0), atol=1e-12)
    assert search.best_score_ >= 1 - errors.mean(axis=0).min() - 1e-12
    assert search.best_score_ == pytest.approx(1 - search.curve_.best)
    assert search.certificate_.closed
    assert search.certificate_.lower == search.certificate_.upper == search.curve_.best


def test_pooled_samples_weight_folds_by_size():
    X, y = classification(n=53)
    cv = list(KFold(4).split(X))
    search = SVCPathCV("linear", cv=cv, pool="samples").fit(X, y)
    errors = brute(X, y, "linear", "scale", cv, GRID[::20])
    sizes = [len(test) for _, test in cv]
    np.testing.assert_allclose(
        search.curve_(GRID[::20]), np.average(errors, axis=0, weights=sizes), atol=1e-12
    )


def test_svc_with_the_best_C_has_the_error_of_the_curve():
    X, y = classification(seed=3)
    cv = list(StratifiedKFold(5).split(X, y))
    search = SVCPathCV("rbf", gamma=0.2, cv=cv, rule="widest").fit(X, y)
    errors = [
        1 - SVC(C=search.best_C_, gamma=0.2, tol=1e-9).fit(X[a], y[a]).score(X[b], y[b])
        for a, b in cv
    ]
    assert np.mean(errors) == pytest.approx(1 - search.best_score_)
    assert isinstance(search.best_estimator_, SVC)
    assert search.best_C_ == search.best_estimator_.C
    assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_rules_select_among_the_best_intervals():
    X, y = classification(n=80, seed=5)
    found = {
        rule: SVCPathCV("rbf", gamma=0.3, rule=rule).fit(X, y)
        for rule in ("first", "largest-lambda", "widest", "one-standard-error")
    }
    intervals = found["widest"].curve_.argmin
    assert found["first"].best_interval_ == intervals[0]
    assert found["largest-lambda"].best_interval_ == intervals[0]
    assert found["widest"].best_interval_.width == max(i.width for i in intervals)
    loose = found["one-standard-error"]
    assert loose.best_interval_.width >= found["widest"].best_interval_.width
    assert loose.best_score_ <= found["widest"].best_score_


def test_a_grid_of_gammas_has_an_exact_C_for_each():
    X, y = classification(seed=4)
    search = SVCPathCV("rbf", gamma=[0.01, 0.3], cv=3).fit(X, y)
    alone = [SVCPathCV("rbf", gamma=g, cv=3).fit(X, y).best_score_ for g in (0.01, 0.3)]
    assert search.best_score_ == max(alone)
    assert search.best_gamma_ == [0.01, 0.3][int(np.argmax(alone))]
    assert len(search.curves_) == 2


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "balanced_error", "matthews_corrcoef"])
def test_other_functions_are_certified_too(scoring):
    X, y = classification(weights=[0.7])
    search = SVCPathCV("rbf", gamma=0.2, scoring=scoring).fit(X, y)
    assert search.certificate_.closed
    assert search.curve_(search.best_C_) == pytest.approx(search.curve_.best)


def test_several_classes_share_one_C():
    X, y = load_iris(return_X_y=True)
    search = SVCPathCV("linear", cv=3, rule="widest").fit(X, y)
    cv = StratifiedKFold(3).split(X, y)
    errors = [
        1 - SVC(C=search.best_C_, kernel="linear", tol=1e-8).fit(X[a], y[a]).score(X[b], y[b])
        for a, b in cv
    ]
    assert np.mean(errors) == pytest.approx(1 - search.best_score_)
    assert search.certificate_.closed


def test_a_precomputed_kernel_gives_the_same_result():
    X, y = classification()
    direct = SVCPathCV("linear").fit(X, y)
    given = SVCPathCV("precomputed").fit(X @ X.T, y)
    assert given.best_score_ == direct.best_score_
    assert given.best_C_ == pytest.approx(direct.best_C_)
    assert given.certificate_.closed


def test_the_bounds_contain_the_curve():
    X, y = classification(n=60)
    search = SVCPathCV("rbf", gamma=0.5, cv=3).fit(X, y)
    found = search.certificate_
    assert (found.optimistic(GRID) <= search.curve_(GRID)).all()
    assert (found.pessimistic(GRID) >= search.curve_(GRID)).all()
    # both bounds are equal if the labels are certain
    assert (found.optimistic(GRID) == found.pessimistic(GRID)).mean() > 0.99


def test_an_open_certificate_is_reported():
    X, y = classification(n=60)
    search = SVCPathCV("rbf", gamma=0.5, cv=3).fit(X, y)
    from tamis.svm.curves.certificate import certify

    found = search.certificate_
    worse = certify(search.curve_, float(GRID[0]), found.optimistic, found.pessimistic, [], 1.0)
    assert not worse.closed
    assert "cannot be excluded" in worse.reason


def test_invalid_parameters_are_refused():
    X, y = classification(n=40)
    with pytest.raises(InvalidParameter, match="rule to be 'first'"):
        SVCPathCV(rule="smallest").fit(X, y)
    with pytest.raises(InvalidParameter, match="pool to be 'folds'"):
        SVCPathCV(pool="all").fit(X, y)
    with pytest.raises(InvalidTarget, match="every training fold"):
        SVCPathCV(cv=KFold(2)).fit(X, np.repeat([0, 1], 20))
    search = SVCPathCV(cv=[(np.arange(5, 40), np.arange(2))], scoring="roc_auc")
    with pytest.raises(InvalidTarget, match="both classes in every test fold"):
        search.fit(X, np.repeat([0, 1], 20))


def test_without_refit_there_is_no_estimator():
    X, y = classification(n=40)
    search = SVCPathCV(refit=False).fit(X, y)
    with pytest.raises(AttributeError, match="refit"):
        search.predict(X)


def test_scikit_learn_conventions():
    why = "LIBSVM stops at a tolerance, and folds are split by samples, not by weight"
    check_estimator(
        SVCPathCV(cv=3),
        expected_failed_checks={"check_sample_weight_equivalence_on_dense_data": why},
        on_fail="raise",
        on_skip=None,
    )
