"""Extreme tables and weights give a result or a clear error, in finite time."""

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.svm import SVC

from tamis.exceptions import (
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
    NotCertified,
    NotConverged,
    PathLost,
    TamisError,
    TamisWarning,
)
from tamis.svm import GradientC, GridC, SVCPath, SVCPathCV, SVRPath, SVRPathCV
from tamis.svm.curves.bounds import Bracketed, bound_errors
from tamis.svm.curves.certificate import find_fault
from tamis.svm.curves.errors import error_pieces, mean_curve
from tamis.svm.inputs import FARTHEST_DOUBT, FARTHEST_OUTPUT
from tamis.svm.path import follow, homotopy
from tamis.svm.path.programme import Line, Stuck
from tamis.svm.search.base import TuningRows
from tamis_book.objectives import SmoothError, SmoothObjective

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
def test_huge_columns_are_solved_or_refused(cls, options, scale, kernel):
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
def test_weights_may_have_very_different_sizes(cls, options, weight):
    X, y = classification(n=16, d=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        cls("linear", **options).fit(X, y, np.where(np.arange(16) % 3, 1.0, weight))


@pytest.mark.parametrize("cls", [SVRPath, SVRPathCV])
def test_a_regression_refuses_a_text_target(cls):
    X, _ = classification(n=12)
    with pytest.raises(InvalidTarget, match=f"{cls.__name__} needs a numeric target.*'low'"):
        cls("linear").fit(X, np.where(np.arange(12) < 6, "low", "high"))


def test_many_classes_cause_no_warning():
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


def test_an_svm_that_never_converges_is_bounded(monkeypatch):
    # SMO does not converge if bounds differ so much
    monkeypatch.setattr("tamis.svm.search.base.most_steps", lambda n_rows: 20)
    X, y = classification(n=40)
    with pytest.warns(NotConverged, match="did not converge"):
        SVCPathCV("linear", cv=2).fit(X, y)


def test_a_grid_of_svms_that_never_converge_is_bounded(monkeypatch):
    steps = []

    def watched(**options):
        steps.append(options["max_iter"])
        return SVC(**options)

    monkeypatch.setattr("tamis_book.comparators.SVC", watched)
    GridC("linear", cv=2, step=8.0).fit(*classification(n=20))
    assert 0 < max(steps) <= 1_000_000  # each takes a tenth of a second


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_few_rows_with_a_polynomial_kernel_terminate(scale):
    X = scale * np.random.default_rng(0).normal(size=(4, 5))
    assert GradientC("poly", cv=2).fit(X, [0, 1, 0, 1]).best_C_ > 0


def test_a_lost_path_is_not_followed_repeatedly(monkeypatch):
    # one column hides the others: lambda is below the precision of the kernel
    walks = []
    walk = follow._follow_once
    monkeypatch.setattr(follow, "_follow_once", lambda *args: walks.append(1) or walk(*args))
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 7)) * [1e8, 1, 1, 1, 1, 1, 1], rng.integers(0, 2, 30)
    with pytest.warns(NotCertified, match="a path"):
        search = SVCPathCV("linear", cv=2, refit=False).fit(X, y)
    assert not search.certificate_.closed
    assert len(walks) <= 2 * 2  # for each fold, with near duplicates separate and merged


def test_a_violation_that_cannot_be_repaired_ends_the_path():
    X, y = classification(n=20)
    path = SVCPath("linear").fit(X, y)._machines.paths[0].solution
    state = homotopy.SolverState(path.programme)
    homotopy.keep_to(state, 0.05, 1.0)
    for violation in (0.3, np.nan):
        with pytest.raises(Stuck):
            homotopy.keep_to(state, violation, 1.0)


def test_nan_bounds_of_the_intercept_end_the_path():
    X, y = classification(n=20)
    programme = SVCPath("linear").fit(X, y)._machines.paths[0].solution.programme
    state = homotopy.SolverState(programme)
    state.stand(np.zeros(len(programme.sign)), 0.0)
    state.x[:] = np.inf
    line = Line(np.zeros_like(programme.cost), programme.cost)
    with pytest.raises(Stuck), np.errstate(invalid="ignore"):
        homotopy._bounds(state, line)


def test_a_path_that_cannot_be_started_is_refused(monkeypatch):
    def stuck(*args):
        raise Stuck

    monkeypatch.setattr(follow, "start", stuck)
    X, y = classification(n=20)
    with pytest.raises(PathLost, match="A regularization path could not be started"):
        SVCPath("linear").fit(X, y)


@pytest.mark.parametrize("scoring", ["mse", "mae"])
@pytest.mark.parametrize("gamma", [1e-12, 0.1])
def test_error_bounds_that_overflow_leave_the_certificate_open(gamma, scoring):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 3))
    X[5, 1] = -1e150
    search = SVRPathCV(gamma=gamma, cv=2, scoring=scoring)
    with pytest.warns(NotCertified):
        search.fit(X, X[:, 0])
    proof = search.certificate_
    assert np.isfinite([search.best_score_, proof.lower, proof.upper]).all()
    assert proof.lower <= search.best_score_ <= proof.upper
    for curve in (proof.optimistic, proof.pessimistic):
        assert np.isfinite(curve.values).all()
        assert np.isfinite(curve(np.geomspace(1e-3, 1e3, 50))).all()


@pytest.mark.parametrize("scoring", ["mse", "mae"])
def test_infinite_error_bounds_are_passed_through_the_curve(scoring):
    lam, h = np.array([4.0, 2.0, 1.0]), np.array([[1.0, -1.0], [2.0, 0.0], [1.0, 1e308]])
    error = np.array([[0.0, 0.0], [np.inf, 0.0], [1e200, np.nan]])
    outputs = Bracketed(lam, h, np.zeros((3, 2)), error)
    pieces = error_pieces(outputs, np.array([1.0, -1.0]), scoring)
    curve, slack = mean_curve([pieces, pieces], np.ones(2))
    assert np.isfinite(curve.values).all()
    assert np.isfinite(slack).all()
    assert (slack > 1e299).all()  # nothing is known anywhere


def test_labels_with_infinite_error_bounds_are_uncertain():
    X, y = classification(n=24, d=4)
    rows = TuningRows(X, y, y, np.ones(24))
    fold = SVCPathCV("linear")._fold("scale", rows, (np.arange(16), np.arange(16, 24)))
    (path,), (gram,) = fold.machines.paths, fold.machines.grams
    rows = gram.rows(fold.X)
    blocks = path.outputs(rows)
    # the kernel of points with themselves is infinite: their distance is unknown
    doubt = bound_errors(path.solution, blocks, gram, fold.X, rows, np.full(8, np.inf))
    assert doubt.zone.min() == doubt.bound.min() == FARTHEST_DOUBT
    assert doubt.unsure().all()
    for scoring in ("error", "roc_auc"):
        bracket = doubt.bracketed(np.ones(len(doubt.zone), bool))
        best, worst = (fold.count_right([bracket], scoring, way) for way in (1, -1))
        assert (best.first == best.total).all()
        assert (worst.first == 0).all()
        assert not len(best.lam)
        assert not len(worst.lam)


def test_outputs_that_overflow_are_clipped_and_uncertain():
    X, y = classification(n=16, d=4)
    path = SVCPath("linear").fit(X, y)._machines.paths[0]
    for size in (1e307, np.inf):
        rows = np.where(np.arange(16) < 8, size, -size) * np.ones((2, 1))
        found = path.outputs(rows)
        assert np.isfinite(found.h).all()
        assert np.isfinite(found.band).all()
        assert (found.rounding[np.abs(found.h) >= FARTHEST_OUTPUT] == FARTHEST_OUTPUT).all()


def test_a_nan_violation_is_treated_as_infinite():
    X, y = classification(n=20)
    path = SVCPath("linear").fit(X, y)._machines.paths[0].solution
    path.segments[-1].violation[0] = np.nan
    fresh = dataclasses.replace(path)
    assert fresh.violation == np.inf
    assert find_fault([fresh], 1.0).startswith("a path violates")


class Sized:
    """A path whose outputs are multiplied by a factor."""

    def __init__(self, path, size):
        self.path, self.size, self.solution = path, size, path.solution

    def weights(self, lam):
        return tuple(self.size * part for part in self.path.weights(lam))

    def slopes(self, lam):
        return tuple(self.size * part for part in self.path.slopes(lam))


def test_the_smoothed_error_works_for_outputs_of_any_size():
    X, y = classification(n=24, d=4)
    rows = TuningRows(X, y, y, np.ones(24))
    fold = SVCPathCV("linear")._fold("scale", rows, (np.arange(16), np.arange(16, 24)))
    smooth = SmoothError([fold])
    ((path, rows, signs),) = smooth.folds
    expected = smooth.value(0.5)
    for size in (1e-250, 1e200, 1e300):
        smooth.folds = [(Sized(path, size), rows, signs)]
        np.testing.assert_allclose(smooth.value(0.5), expected, rtol=1e-9)


class Explodes(SmoothObjective):
    def value(self, lam):
        return lam * np.float64(1e308) * 100, np.float64(-np.inf) * 0


def test_a_smooth_function_that_overflows_is_clipped():
    value, slope = Explodes().in_log_lambda(np.zeros(1))
    assert value == slope[0] == FARTHEST_OUTPUT


@pytest.mark.filterwarnings("ignore::tamis.exceptions.NotCertified")  # as weights are so large
def test_a_prediction_that_overflows_is_refused():
    X, y = classification(n=20, d=4)
    path = SVRPath("linear").fit(X, 1e90 * y, np.full(20, 1e100))
    with pytest.raises(InvalidTable, match="prediction for row 1 at C = 1 exceeds"):
        path.predict(np.vstack([X[:1], np.full((1, 4), 1e250)]))
    decided = SVCPath("linear").fit(X, y).decision_function(1e306 * X[:2], C=100.0)
    assert np.isfinite(decided).all()


def test_a_huge_tube_is_refused():
    X, y = classification(n=12)
    with pytest.raises(InvalidParameter, match="lambda = 1 / C of about the size of the kernel"):
        SVRPath("linear", epsilon=1e100).fit(1e-150 * X, 1.0 * y)


@pytest.mark.parametrize("cls", [SVCPath, SVRPath])
def test_weights_too_large_to_be_added_are_refused(cls):
    X, y = classification(n=12)
    with pytest.raises(InvalidParameter, match=r"weight up to 1e\+250.* they reach 1\.7e\+308"):
        cls("linear").fit(X, y, np.full(12, 1.7e308))


@pytest.mark.parametrize("cls", [SVRPath, SVRPathCV])
def test_a_target_too_large_to_be_subtracted_is_refused(cls):
    X, y = classification(n=12)
    with pytest.raises(InvalidTarget, match=r"target up to 1e\+300"):
        cls("linear").fit(X, np.where(y > 0, 1.7e308, -1.7e308))


def test_a_target_too_small_for_the_kernel_is_refused():
    X, y = classification(n=12)
    with pytest.raises(InvalidParameter, match="and a target of 2"):
        SVRPath("linear", epsilon=0.0).fit(1e10 * X, 2e-310 * y)


@pytest.mark.parametrize(("scale", "middle"), [(1e-90, 1e181), (1e-150, 1e301)])
def test_the_best_C_of_tiny_columns_is_finite(scale, middle):
    X, y = classification(n=24)
    span = (0.01 / middle, 100 / middle)
    search = SVCPathCV("linear", cv=2, refit=False, lambda_range=span).fit(scale * X, y)
    plain = SVCPathCV("linear", cv=2, refit=False, lambda_range=tuple(s / scale**2 for s in span))
    assert 0.01 * middle <= search.best_C_ <= 100 * middle
    assert search.best_score_ == plain.fit(X, y).best_score_
    with pytest.raises(InvalidParameter, match="needs lambda_range"):
        SVCPathCV("linear", lambda_range=(1e-310, 1.0)).fit(X, y)


def test_a_duality_gap_of_nan_is_treated_as_infinite(monkeypatch):
    X, y = classification(n=20)
    programme = SVCPath("linear").fit(X, y)._machines.paths[0].solution.programme
    state = homotopy.SolverState(programme)
    state.stand(np.zeros(len(programme.sign)), 0.0)
    monkeypatch.setattr(state, "violation", lambda g: 0.0)
    # 0 times an infinite residual
    monkeypatch.setattr(state, "residuals", lambda g: np.full(len(g), np.inf))
    with np.errstate(invalid="ignore"):
        check = follow._check(state, 1.0, [], 1.0)
    assert (check.violation, check.gap) == (0.0, np.inf)


def test_a_violated_constraint_is_reported():
    X, y = classification(n=20)
    path = SVCPath("linear").fit(1e-9 * X, y)._machines.paths[0].solution
    assert path.violation < 1e-9
    variable = int(np.flatnonzero(path.segments[-1].start > 0)[0])
    segment = path.segments[-1]
    if variable in segment.variables:
        segment.x[:, list(segment.variables).index(variable)] = 0.0
    segment.start[variable] = 0.0
    assert dataclasses.replace(path).violation > 1e-3


@pytest.mark.parametrize("number", [9721, 11922, 14249])
def test_a_cycling_path_is_refused_and_large_errors_have_a_spread(number):
    """Found by fuzz tests: scaled duplicate columns, and errors whose squares overflow."""
    from fuzz.verdict import Case

    assert Case(701, number, "path").run()[1] is None
