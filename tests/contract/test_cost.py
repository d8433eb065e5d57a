"""Estimates of memory compared with measurements, and refusals."""

import gc
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis import _memory as costs
from tamis._memory import check_cost, free_memory
from tamis.contract import ForwardCriterion
from tamis.criteria import (
    CMIM,
    HSIC,
    JMI,
    MRMR,
    ColumnSubset,
    Correlation,
    CrossValidated,
    DensitySensitivity,
    DiscriminantRatio,
    Divergence,
    FisherScore,
    Importances,
    KolmogorovSmirnov,
    KwakInformation,
    MutualInformation,
    OutputInformation,
    ParzenInformation,
    Penalised,
    PosteriorSensitivity,
    PValue,
    RadiusMargin,
    ReducedParzenInformation,
    Remembered,
    Scatter,
    Scored,
    ScoreSensitivity,
    Span,
    WeightNorm,
)
from tamis.exceptions import NotEnoughMemory
from tamis.meta import ConditionalTest, HonestSize, Knockoffs, Probes, StabilitySelection
from tamis.neural import NetworkClassifier
from tamis.response.tuners import TunedSVC, TunedSVR
from tamis.search import Forward, Ranking
from tamis.svm.relative import RelativeSVC, RelativeSVR
from tests.laws.catalogue import name

FILTERS = [
    *(FisherScore(), DiscriminantRatio(), Correlation(), Correlation(task="regression"), PValue()),
    *(KolmogorovSmirnov(), MutualInformation(), MRMR(), CMIM(), JMI(), Scatter("J1")),
]
MATRICES = [
    *(Scatter("J2"), Scatter("J3"), Divergence(ridge=0.1), Divergence(ridge="auto")),
    *(ColumnSubset(), Remembered(Scatter("J3")), Penalised(Scatter("J3"))),
]
KERNELS = [
    *(ParzenInformation(), ParzenInformation(leave_one_out=True), KwakInformation(sigma=1.0)),
    *(HSIC(), HSIC(gamma="median"), ReducedParzenInformation()),
    *(ReducedParzenInformation(by="permutation"), ReducedParzenInformation(by="removal")),
]
WRAPPED = [CrossValidated(LinearDiscriminantAnalysis()), CrossValidated(KNeighborsClassifier())]
MACHINES = [
    *(WeightNorm(SVC()), WeightNorm(SVC(kernel="linear")), WeightNorm(SVC(), order=1)),
    RadiusMargin(SVC(), retrain=True, soft_margin=True),
    *(Span(SVC()), Span(SVC(), soft_margin=True), Span(SVC(), retrain=True), Span(SVC(), order=1)),
]
MOVED = [
    *(PosteriorSensitivity(SVC()), PosteriorSensitivity(SVC(), n_values=16)),
    *(PosteriorSensitivity(SVC(), by=by) for by in ("permutation", "zero", "derivative")),
    PosteriorSensitivity(SVC(), n_values=16, on="held-out"),
    PosteriorSensitivity(SVC(), n_values=16, output="decision"),
    PosteriorSensitivity(SVC(gamma=0.5), n_values=16),
    PosteriorSensitivity(SVC(kernel="poly"), n_values=16),
    PosteriorSensitivity(make_pipeline(StandardScaler(), SVC()), n_values=16),
    PosteriorSensitivity(MLPClassifier((10,), max_iter=30), n_values=16),
    PosteriorSensitivity(MLPClassifier((10,), solver="lbfgs", max_iter=100), n_values=16),
    PosteriorSensitivity(MLPClassifier((20, 10), max_iter=20), n_values=4),
    PosteriorSensitivity(NetworkClassifier(4, max_iter=50, validation=2), n_values=4),
    *(ScoreSensitivity(SVC(), n_values=16), ScoreSensitivity(RidgeClassifier())),
    *(DensitySensitivity(SVR()), DensitySensitivity(Ridge(), n_values=16)),
    DensitySensitivity(MLPRegressor(hidden_layer_sizes=(10,), max_iter=20), n_values=16),
    OutputInformation(),
    OutputInformation(RidgeClassifier(), credit="knockout"),
]
REMOVED = [
    PosteriorSensitivity(SVC(), by="removal"),
    ScoreSensitivity(RidgeClassifier(), n_values=2, scoring="balanced_accuracy"),
]
#: Two sizes each, the second several times the work of the first. One ball around 100 rows takes
#: less than the checks around it: of that criterion both are larger.
SIZES = {
    "filters": (FILTERS, (100, 3000), (200, 8000)),
    "long": (FILTERS, (5000, 20), (20000, 40)),
    "matrices": (MATRICES, (60, 600), (100, 1500)),
    "kernels": (KERNELS, (100, 20), (300, 60)),
    "machines": (MACHINES, (100, 20), (300, 60)),
    "ball": ([RadiusMargin(SVC())], (300, 60), (1000, 100)),
    "ridge": ([Importances(RidgeClassifier())], (200, 200), (600, 1500)),
    "moved": (MOVED, (100, 20), (300, 60)),
    "removed": (REMOVED, (60, 6), (150, 15)),
    "wrapped": (WRAPPED, (200, 200), (600, 500)),
}
#: The quick run measures the first criterion of each group, the slow run all of them.
CASES = [
    pytest.param(
        criterion,
        small,
        large,
        id=f"{name(criterion)}-{group}",
        marks=pytest.mark.slow if number else (),
    )
    for group, (criteria, small, large) in SIZES.items()
    for number, criterion in enumerate(criteria)
]


#: Networks are trained for a few iterations, and the target of a table is unrelated to its rows.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def drawn(n_samples, n_features, criterion=None):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(n_samples, n_features)))
    if isinstance(criterion, DensitySensitivity):
        return X, rng.normal(size=n_samples)
    return X, rng.integers(0, 2, n_samples)


def one_round(criterion, X, y):
    """Fit the criterion, and score every column once."""
    fitted, n_features = clone(criterion).fit(X, y), X.shape[1]
    if isinstance(fitted, ForwardCriterion):
        fitted.gain(np.array([0]), np.arange(1, n_features))
    else:
        fitted.loss(np.arange(n_features))


def peak(criterion, shape):
    table = drawn(*shape, criterion)
    one_round(criterion, *table)  # compiled code is loaded now, and not counted
    gc.collect()
    tracemalloc.start()
    try:
        one_round(criterion, *table)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("criterion", "small", "large"), CASES)
def test_memory_estimates_are_right_within_a_factor_of_three(criterion, small, large):
    for shape in (small, large):
        assert 1 / 3 < peak(criterion, shape) / criterion.cost(*shape) < 3


def test_unknown_memory_estimates_are_none():
    assert Scored(np.sum).cost(100, 10) is None
    assert CrossValidated(LogisticRegression()).cost(100, 10) is None
    assert CrossValidated(KNeighborsClassifier(), scoring="f1").cost(100, 10) is None
    assert Importances(LogisticRegression()).cost(100, 10) is None
    assert WeightNorm(GridSearchCV(SVC(), {"C": [1, 2]})).cost(100, 10) is None
    assert check_cost("Scored", Scored(np.sum).cost, 10**6, 10**6) is None


SPOKEN_FOR = [PosteriorSensitivity, ScoreSensitivity]


@pytest.mark.parametrize("kind", SPOKEN_FOR)
def test_the_memory_of_sensitivities_is_unknown_for_other_models(kind):
    for estimator in (LogisticRegression(), LinearDiscriminantAnalysis(), SVC(kernel="sigmoid")):
        assert kind(estimator).cost(100, 10) is None
        assert kind(GridSearchCV(estimator, {"tol": [0.1]})).cost(100, 10) is None
        assert kind(make_pipeline(PCA(), SVC())).cost(100, 10) is None


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf, np.nan, 1e300, "x"])
def test_an_invalid_width_is_left_to_the_training(gamma):
    for machine in (SVC(gamma=gamma), RelativeSVC(scale=gamma)):
        assert np.isfinite(PosteriorSensitivity(machine).cost(60, 6))


def test_invalid_layers_are_left_to_the_training():
    assert PosteriorSensitivity(MLPClassifier("x")).cost(60, 6) > 0


@pytest.mark.parametrize(
    ("tuner", "inner", "kind"),
    [
        (TunedSVC(), RelativeSVC(), PosteriorSensitivity),
        (TunedSVR(), RelativeSVR(), DensitySensitivity),
        (GridSearchCV(SVC(), {"C": [1, 2, 4]}), SVC(), PosteriorSensitivity),
    ],
)
def test_a_search_over_parameters_needs_the_memory_of_its_model(tuner, inner, kind):
    for shape in ((200, 20), (400, 100)):
        assert kind(tuner).cost(*shape) == kind(inner).cost(*shape)


def test_kernel_matrices_that_cannot_be_split_are_refused():
    criterion = PosteriorSensitivity(SVC(), by="derivative")
    with pytest.raises(NotEnoughMemory, match=r"needs about 3\d\d GiB.*rows would fit"):
        check_cost("PosteriorSensitivity", criterion.cost, 100_000, 10, free=8 * 2**30)
    # engines work in blocks, which take a few gigabytes for any number of rows
    assert PosteriorSensitivity(SVC(), n_values=16).cost(10**6, 10) < 8 * 2**30


class TestCheck:
    def test_small_tables_pass(self):
        assert check_cost("Scatter", Scatter("J3").cost, 100, 50) is None

    def test_too_much_memory_is_refused_with_a_size_that_would_fit(self):
        with pytest.raises(
            NotEnoughMemory, match=r"Scatter needs about 2\d\d GiB.*but 8 GiB"
        ) as said:
            check_cost("Scatter", Scatter("J3").cost, 60, 100_000, free=8 * 2**30)
        assert isinstance(said.value, MemoryError)
        columns = int(str(said.value).split("About ")[1].split()[0])
        assert Scatter("J3").cost(60, columns) <= 8 * 2**30
        assert Scatter("J3").cost(60, columns + 1000) > 8 * 2**30
        assert f"n_features_to_select={columns})" in str(said.value)

    def test_too_many_rows_for_any_column_are_refused(self):
        with pytest.raises(NotEnoughMemory, match=r"About 5[0-9]00 of the rows would fit"):
            check_cost("HSIC", lambda n, d: 32.0 * n**2, 10**5, 3, free=2**30)
        with pytest.raises(NotEnoughMemory, match=r"free. Use the recipe"):
            check_cost("X", lambda n, d: 2.0**40, 10, 10, free=2**30)


class TestFreeMemory:
    def test_free_memory_is_known_or_none(self):
        assert free_memory() is None or free_memory() > 2**20

    def test_the_limit_of_a_control_group_is_used(self, tmp_path):
        assert costs._of_group(tmp_path) is None
        (tmp_path / "memory.max").write_text("max\n")
        (tmp_path / "memory.current").write_text("1000\n")
        assert costs._of_group(tmp_path) is None
        (tmp_path / "memory.max").write_text("5000\n")
        assert costs._of_group(tmp_path) == 4000
        (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 300\n")
        assert costs._of_group(tmp_path) == 4300

    def test_available_memory_is_read_from_the_kernel(self, tmp_path):
        assert costs._of_machine(tmp_path / "none") is None
        (tmp_path / "meminfo").write_text("MemTotal:  9 kB\nMemAvailable:     8 kB\n")
        assert costs._of_machine(tmp_path / "meminfo") == 8192

    def test_unknown_memory_refuses_nothing(self, monkeypatch):
        monkeypatch.setattr(costs, "free_memory", lambda: None)
        assert check_cost("It", lambda n, d: 1e18, 10, 10) is None


FISHER, GREEDY = Ranking(FisherScore()), Forward(Scatter("J3"))
AROUND = [
    *(Probes(FISHER, n_rounds=3), Probes(GREEDY, n_rounds=2)),
    *(StabilitySelection(FISHER, n_pairs=3), StabilitySelection(GREEDY, n_pairs=2)),
    *(HonestSize(FISHER), HonestSize(GREEDY), ConditionalTest(FISHER)),
    *(Knockoffs(FISHER), Knockoffs(FISHER, strengths="sdp"), Knockoffs(GREEDY)),
]


@pytest.mark.filterwarnings("ignore::tamis.exceptions.TamisWarning")
class TestRounds:
    """Memory estimates of meta-selectors."""

    @staticmethod
    def table(n_samples, n_features):
        X, _ = drawn(n_samples, n_features)
        return X, (X[:, :3].sum(axis=1) > 0).astype(int)

    @pytest.mark.parametrize("selection", AROUND, ids=name)
    def test_memory_estimates_are_right(self, selection):
        selection = clone(selection).set_params(random_state=0)
        clone(selection).fit(*self.table(300, 20))  # modules are loaded from disk now
        # tables are large enough that the interpreter's 0.4 to 0.7 MB do not matter
        for shape in ((600, 60), (900, 90)):
            X, y = self.table(*shape)
            gc.collect()
            tracemalloc.start()
            try:
                clone(selection).fit(X, y)
                held = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert 1 / 3 < held / selection.cost(*shape) < 3

    def test_parallel_rounds_need_memory_at_the_same_time(self):
        one, two = (Probes(GREEDY, n_jobs=n_jobs).cost(500, 50) for n_jobs in (None, 2))
        assert two == 2 * one
        assert Knockoffs(GREEDY, n_jobs=2).cost(500, 50) == Knockoffs(GREEDY).cost(500, 50)

    def test_too_much_memory_is_refused_before_the_first_round(self, monkeypatch):
        monkeypatch.setattr(costs, "free_memory", lambda: 2.0**20)
        with pytest.raises(NotEnoughMemory, match="Probes needs about"):
            Probes(GREEDY).fit(*self.table(50, 2000))
