"""Tables and weights out of all proportion: an answer, or a sentence, and never for ever."""

import warnings

import numpy as np
import pytest

from tamis.exceptions import (
    InvalidTarget,
    NotCertified,
    NotConverged,
    PathLost,
    TamisError,
    TamisWarning,
)
from tamis.svm import GradientC, GridC, SVCPath, SVCPathCV, SVRPath, SVRPathCV
from tamis.svm.path import follow, homotopy
from tamis.svm.path.programme import Line, Stuck

from .problems import classification

ALL = [
    (SVCPath, {}),
    (SVCPathCV, {"cv": 2}),
    (SVRPath, {}),
    (SVRPathCV, {"cv": 2}),
    (GridC, {"cv": 2, "step": 8.0}),
    (GridC, {"cv": 2, "step": 8.0, "solver": "path"}),
    (GradientC, {"cv": 2}),
]


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("scale", [1e100, 1e200, 1.7e308])
@pytest.mark.parametrize(("cls", "options"), ALL)
def test_huge_columns_are_an_answer_or_a_sentence(cls, options, scale, kernel):
    X, y = classification(n=16, d=5)
    X = X / np.abs(X).max() * scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        try:
            found = cls(kernel, **options).fit(X, y).predict(X)
        except TamisError:
            return
    assert np.isfinite(found).all()


@pytest.mark.parametrize("weight", [1e-200, 1e200])
@pytest.mark.parametrize(("cls", "options"), [(SVCPathCV, {"cv": 2}), (SVRPath, {})])
def test_weights_out_of_proportion(cls, options, weight):
    X, y = classification(n=16, d=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        cls("linear", **options).fit(X, y, np.where(np.arange(16) % 3, 1.0, weight))


@pytest.mark.parametrize("cls", [SVRPath, SVRPathCV])
def test_a_regression_refuses_a_text_target(cls):
    X, _ = classification(n=12)
    with pytest.raises(InvalidTarget, match=f"{cls.__name__} needs a target of numbers.*'low'"):
        cls("linear").fit(X, np.where(np.arange(12) < 6, "low", "high"))


def test_many_classes_are_no_cause_for_doubt():
    X, _ = classification(n=8)
    assert len(SVCPath("linear").fit(X, [0, 1, 2, 3, 4, 5, 6, 6]).classes_) == 7


@pytest.mark.parametrize("cls", [SVCPathCV, GridC])
def test_a_fold_without_weight_for_a_class_is_refused(cls, capfd):
    X, y = classification(n=24)
    weight = np.where(y == 1, 0.0, 1.0)
    weight[np.flatnonzero(y)[:2]] = 1.0
    with pytest.raises(InvalidTarget, match="fold 0 trains without class '1', or without a weight"):
        cls("linear", cv=3).fit(X, y, weight)
    assert capfd.readouterr() == ("", "")  # LIBSVM would print


def test_a_machine_that_never_comes_to_rest_is_bounded(monkeypatch):
    # training by pairs does not end where bounds differ by so much
    monkeypatch.setattr("tamis.svm.tuning.MOST_STEPS", 20)
    X, y = classification(n=40)
    with pytest.warns(NotConverged, match="did not come to rest"):
        SVCPathCV("linear", cv=2).fit(X, y)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_few_rows_with_a_polynomial_kernel_come_to_an_end(scale):
    X = scale * np.random.default_rng(0).normal(size=(4, 5))
    assert GradientC("poly", cv=2).fit(X, [0, 1, 0, 1]).best_C_ > 0


def test_a_path_that_is_lost_is_not_walked_again_and_again(monkeypatch):
    # one column hides the others: lambda is below what the kernel is known to
    walks = []
    walk = follow._walk
    monkeypatch.setattr(follow, "_walk", lambda *args: walks.append(1) or walk(*args))
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 7)) * [1e8, 1, 1, 1, 1, 1, 1], rng.integers(0, 2, 30)
    with pytest.warns(NotCertified, match="a path"):
        search = SVCPathCV("linear", cv=2, refit=False).fit(X, y)
    assert not search.certificate_.closed
    assert len(walks) <= 2 * 2  # of each fold, with near copies apart and as one


def test_a_violation_that_no_repair_helps_ends_the_walk():
    X, y = classification(n=20)
    path = SVCPath("linear").fit(X, y)._machines.paths[0].solution
    state = homotopy.SolverState(path.programme)
    homotopy.keep_to(state, 0.05, 1.0)
    for violation in (0.3, np.nan):
        with pytest.raises(Stuck):
            homotopy.keep_to(state, violation, 1.0)


def test_bounds_of_the_intercept_that_are_no_numbers_end_the_walk():
    X, y = classification(n=20)
    programme = SVCPath("linear").fit(X, y)._machines.paths[0].solution.programme
    state = homotopy.SolverState(programme)
    state.stand(np.zeros(len(programme.sign)), 0.0)
    state.x[:] = np.inf
    line = Line(np.zeros_like(programme.cost), programme.cost)
    with pytest.raises(Stuck), np.errstate(invalid="ignore"):
        homotopy._bounds(state, line)


def test_a_path_that_cannot_be_begun_is_a_sentence(monkeypatch):
    def stuck(*args):
        raise Stuck

    monkeypatch.setattr(follow, "start", stuck)
    X, y = classification(n=20)
    with pytest.raises(PathLost, match="A regularization path could not be begun"):
        SVCPath("linear").fit(X, y)
