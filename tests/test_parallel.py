"""Progress reports of parallel loops."""

import pytest
from joblib import parallel_config
from sklearn.svm import SVC

from tamis._parallel import in_flight, listening, parallel_map, progress_listener, report_progress
from tamis.criteria import CrossValidated, Scored
from tamis.datasets import load
from tamis.search import Forward


def heard_of(work):
    said = []
    with listening(lambda done, total: said.append((done, total))):
        work()
    return said


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_reported_for_every_item(n_jobs):
    with parallel_config(backend="threading"):  # processes take long to start
        said = heard_of(lambda: parallel_map(abs, [(-1,), (-2,), (-3,)], n_jobs))
    assert said == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_only_the_outermost_of_nested_loops_reports_progress():
    def inner(x):
        assert progress_listener() is None
        return sum(parallel_map(abs, [(x,), (x,)]))

    assert heard_of(lambda: parallel_map(inner, [(1,), (2,)])) == [(0, 2), (1, 2), (2, 2)]


def test_an_error_ends_the_progress_reports():
    def wrong(x):
        raise ValueError(x)

    said = []
    with listening(lambda done, total: said.append((done, total))):
        with pytest.raises(ValueError, match="1"):
            parallel_map(wrong, [(1,), (2,)])
        parallel_map(abs, [(1,)])
    assert said == [(0, 2), (0, 1), (1, 1)]
    assert progress_listener() is None
    assert list(report_progress([1, 2], 2)) == [1, 2]


def test_a_long_step_of_a_search_counts_its_candidates():
    wine = load("wine")
    search = Forward(Scored(lambda X, y: X.mean()), n_features_to_select=1)
    said = heard_of(lambda: search.fit(wine.X, wine.y))
    assert (5, wine.X.shape[1] + 1) in said  # and the empty subset
    said = heard_of(
        lambda: Forward(CrossValidated(SVC()), n_features_to_select=1).fit(wine.X[:, :4], wine.y)
    )
    assert (4, 4) in said


@pytest.mark.parametrize("n_threads", [1, 3])
def test_only_as_many_items_are_taken_as_there_are_threads(n_threads):
    taken = []

    def items():
        for item in range(8):
            taken.append(item)
            yield item

    for n_had, answer in enumerate(in_flight(lambda item: -item, items(), n_threads)):
        assert answer == -n_had
        assert len(taken) <= n_had + n_threads + 1
    assert len(taken) == 8
