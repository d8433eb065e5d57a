"""Real data: errors below a limit, and differences between methods on the same splits.

The limits are about two standard errors from the results of an independent program. The splits of
the published tables are not known. Each figure is a mean over the realizations of an experiment
file.
"""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import ttest_rel
from sklearn.svm import SVR

from tamis.criteria import DensitySensitivity, RelativeSVR
from tamis.datasets import load
from tamis.evaluation import Realizations, evaluate
from tamis.search import RecursiveElimination
from tamis_book import read, reproduce

pytestmark = [
    pytest.mark.experiment,
    pytest.mark.skipif("TAMIS_DATA" not in os.environ, reason="tables are read from TAMIS_DATA"),
]


@cache
def scores(name, methods, realizations):
    """Return the scores of all realizations for each method and number of columns."""
    experiment = read(name)
    asked = {method: experiment.methods[method] for method in methods}
    found = reproduce(replace(experiment, methods=asked), realizations=realizations)
    assert not found.missing
    (results,) = found.results.values()
    values = {
        (cell.method, cell.size): experiment.scale
        * np.array(list(results.values(experiment.metric, cell.method, size=cell.size).values()))
        for cell in found.cells
    }
    for (method, size), each in values.items():  # shown by pytest -rP
        print(f"{name} {method} k={size}: {each.mean():.3f} +- {each.std(ddof=1):.3f}")
    return values


SD = ("SD-L-RFE", "SD-G-RFE")
FSPP = ("FSPP1-RFE", "FSPP2-RFE", "FSPP3-RFE")
EXPERIMENTS = {
    "abalone": ("thesis-4.4", (*SD, "mRMR", "HSIC-RFE"), 10),
    "cpusmall": ("thesis-4.5", ("SD-L-RFE", "delta-norm-RFE"), 10),
    "housing": ("thesis-4.6", ("SD-L-RFE",), 30),
    "mpg": ("thesis-4.3", ("SD-L-RFE", "HSIC-RFE"), 30),
    "wine": ("thesis-3.6", ("MLP-FSPP-RFE", "FisherS"), 30),
    "wbcd": ("thesis-3.5", ("MLP-FSPP-RFE",), 30),
    "waveform": ("thesis-3.9", ("MLP-FSPP-RFE", "FisherS"), 15),
    "segment": ("thesis-3.8", ("MLP-FSPP-RFE", "FisherS"), 10),
    "heart": ("fspp-fig4", (*FSPP, "delta-norm-RFE"), 10),
}


@pytest.mark.parametrize(
    ("data", "method", "bars"),
    [
        ("abalone", "SD-L-RFE", {2: 5.10, 4: 4.80, 8: 4.65}),
        ("abalone", "SD-G-RFE", {2: 5.10, 4: 4.80, 8: 4.65}),
        ("cpusmall", "SD-L-RFE", {2: 55, 4: 23, 6: 23, 12: 28}),
        ("housing", "SD-L-RFE", {2: 24, 6: 19, 10: 14, 13: 13}),
        ("mpg", "SD-L-RFE", {2: 10, 3: 9.2, 7: 7.8}),
        ("wine", "MLP-FSPP-RFE", {4: 6.5, 9: 2.3}),
        ("wbcd", "MLP-FSPP-RFE", {3: 4.8, 9: 4.0}),
        ("waveform", "MLP-FSPP-RFE", {3: 27.5, 6: 21.5, 21: 16.5}),
        ("segment", "MLP-FSPP-RFE", {4: 9.5, 6: 7.8, 19: 9.5}),
        *(("heart", method, {5: 20.5, 13: 19.5}) for method in FSPP),
    ],
)
def test_errors_stay_below_the_bar(data, method, bars):
    found = scores(*EXPERIMENTS[data])
    means = {size: found[method, size].mean() for size in bars}
    assert all(means[size] <= bar for size, bar in bars.items()), means


MISSED = pytest.mark.xfail(
    reason="with bins of equal frequency the fourth column of mRMR is a good one", strict=True
)


@pytest.mark.parametrize(
    ("other", "size"),
    [
        *(("HSIC-RFE", k) for k in (2, 3, 4, 5)),
        *(("mRMR", k) for k in (2, 3)),
        pytest.param("mRMR", 4, marks=MISSED),  # 4.72 against 4.78
        pytest.param("mRMR", 5, marks=MISSED),  # 4.71 against 4.81
    ],
)
def test_abalone_by_densities_and_by_filters(other, size):
    found = scores(*EXPERIMENTS["abalone"])
    ours, theirs = found["SD-L-RFE", size], found[other, size]
    assert (ours - theirs).mean() <= -0.25
    assert ttest_rel(ours, theirs).pvalue < 0.01


def test_densities_beat_the_norm_on_cpusmall():
    found = scores(*EXPERIMENTS["cpusmall"])
    assert found["SD-L-RFE", 4].mean() <= found["delta-norm-RFE", 4].mean() / 2


def test_densities_beat_dependence_on_mpg():
    found = scores(*EXPERIMENTS["mpg"])
    assert found["HSIC-RFE", 2].mean() >= 1.6 * found["SD-L-RFE", 2].mean()


def test_housing_with_a_width_that_follows_the_number_of_columns():
    """gamma times the number of columns constant, against gamma fixed; sizes 3 to 8."""
    X, y, *_ = load("boston")
    fixed = SVR(C=64, gamma=1 / 16, epsilon=2)
    spread = y.std()  # C and epsilon are relative to it, so that the SVMs are equal at size 13
    following = RelativeSVR(64 / spread, tube=2 / spread, scale=13 / 16)
    machines = {"fixed": fixed, "following": following}
    methods = {
        name: RecursiveElimination(DensitySensitivity(machine), n_features_to_select=1)
        for name, machine in machines.items()
    }
    plan, sizes = Realizations(10, train=456, test=50), range(3, 9)
    found = evaluate(
        methods, {"housing": (X, y)}, plan, "mse", estimators=machines, sizes=tuple(sizes)
    )
    means = {
        name: np.mean(
            [list(found.values("mse", name, estimator=name, size=k).values()) for k in sizes]
        )
        for name in machines
    }
    print(means)
    assert means["following"] < means["fixed"]


@pytest.mark.parametrize("size", [8, 9, 10, 11])
def test_a_network_beats_fisher_on_wine(size):
    found = scores(*EXPERIMENTS["wine"])
    ours, theirs = found["MLP-FSPP-RFE", size], found["FisherS", size]
    assert ours.mean() < theirs.mean()
    assert ttest_rel(ours, theirs).pvalue < 0.05


@pytest.mark.parametrize(
    ("data", "size", "points"),
    [("waveform", k, 4) for k in (2, 3, 4, 5)] + [("segment", k, 8) for k in (4, 5, 6)],
)
def test_points_below_fisher(data, size, points):
    found = scores(*EXPERIMENTS[data])
    assert found["MLP-FSPP-RFE", size].mean() <= found["FisherS", size].mean() - points


@pytest.mark.parametrize("method", FSPP)
def test_posteriors_are_not_worse_than_the_norm_on_heart(method):
    """Shen et al. (2008), figure 4b: not worse than delta-norm on average over the sizes."""
    found = scores(*EXPERIMENTS["heart"])
    sizes = range(1, 14)
    differences = [(found[method, k] - found["delta-norm-RFE", k]).mean() for k in sizes]
    print(method, np.mean(differences))
    assert np.mean(differences) <= 0.7
