"""Records are written, read and refused, but never written partially."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis.contract import Entries, Record, Scores, Trace
from tamis.criteria import Scatter, Scored
from tamis.exceptions import InvalidTable, RecordMismatch
from tamis.search import Forward, RecursiveElimination
from tamis.testing.problem import make_table as table


def test_a_record_describes_the_search_and_its_data():
    X, y = table()
    record = Forward(Scatter("J2"), n_features_to_select=2).fit(X, y).record_
    assert record.expression == "Forward(Scatter(measure='J2'), n_features_to_select=2)"
    assert record.n_samples == 60
    assert record.finished
    assert set(record.versions) == {"python", "tamis", "numpy", "scipy", "scikit-learn"}
    assert record.seconds >= 0
    assert "2 steps, finished" in repr(record)


def test_a_record_can_be_saved_and_loaded(tmp_path):
    X, y = table()
    record = RecursiveElimination(Scatter(), n_features_to_select=2).fit(X, y).record_
    record.save(tmp_path / "r.json")
    again = Record.load(tmp_path / "r.json")
    assert again.to_dict() == record.to_dict()
    assert_array_equal(again.trace[-1].scores.values, record.trace[-1].scores.values)
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '{"format": 99}', "\x00\xff"])
def test_a_file_that_is_not_a_record_is_refused(tmp_path, text):
    (tmp_path / "r.json").write_bytes(text.encode("latin1"))
    with pytest.raises(InvalidTable, match=r"not a record|cannot read"):
        Record.load(tmp_path / "r.json")


def test_a_record_of_a_different_search_or_different_data_is_refused():
    X, y = table()
    record = Forward(Scatter(), n_features_to_select=2).fit(X, y).record_
    with pytest.raises(RecordMismatch, match="belongs to"):
        Forward(Scatter("J2"), n_features_to_select=2).resume(X, y, record=record)
    with pytest.raises(RecordMismatch, match="other data"):
        Forward(Scatter(), n_features_to_select=2).resume(X + 1e-9, y, record=record)
    with pytest.raises(RecordMismatch, match="other data"):
        Forward(Scatter(), n_features_to_select=2).resume(X, 2 - y, record=record)


def test_finished_steps_survive_an_exception():
    X, y = table()
    asked = []

    def flaky(columns, target):
        asked.append(columns.shape[1])
        if columns.shape[1] == 3:
            raise KeyboardInterrupt
        return float(np.abs(columns.T @ target).sum())

    search = Forward(Scored(flaky), n_features_to_select=4)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert len(search.trace_) == len(search.record_.trace) == 2
    assert not search.record_.finished
    assert not hasattr(search, "support_")  # an unfinished fit has no result


def test_seeds_are_stored_and_restored():
    from sklearn.ensemble import ExtraTreesClassifier

    from tamis.criteria import Importances
    from tamis.testing.search_laws import Stop, outcome

    X, y = table()
    make = lambda: RecursiveElimination(  # noqa: E731
        Importances(ExtraTreesClassifier(10)), n_features_to_select=1
    )
    stopped = make().set_callbacks(Stop(3)).fit(X, y)
    assert list(stopped.record_.seeds) == ["criterion__estimator__random_state"]
    one = make().resume(X, y, record=stopped.record_)
    two = make().resume(X, y, record=stopped.record_)
    assert outcome(one) == outcome(two)


def test_a_trace_stores_moves_instead_of_subsets():
    """Ranking a hundred thousand columns stores a hundred thousand moves."""
    d = 100_000
    order = np.random.default_rng(0).permutation(d)
    trace = Trace(d)
    scores = np.random.default_rng(1).random(d)
    trace.extend(Entries(order, Scores(np.arange(d), scores)))
    assert len(json.dumps(trace.to_dict())) < 100 * d
    assert trace.sizes[-1] == d
    assert_array_equal(trace[4].subset, np.sort(order[:5]))


def test_a_trace_supports_slices_and_negative_indices():
    X, y = table()
    trace = Forward(Scatter(), n_features_to_select=4).fit(X, y).trace_
    assert [len(step.subset) for step in trace[1:3]] == [2, 3]
    assert [len(step.subset) for step in trace[::-2]] == [4, 2]
    assert_array_equal(trace[-1].subset, trace[3].subset)
    with pytest.raises(IndexError):
        trace[4]
    assert json.dumps(trace.to_dict())


@pytest.mark.parametrize("name", [".", "none.json"])
def test_an_unreadable_file_is_refused(name, tmp_path):
    with pytest.raises(InvalidTable, match=r"cannot be read: .*Give a file"):
        Record.load(tmp_path / name)


def test_an_interrupted_save_leaves_no_partial_record(tmp_path, monkeypatch):
    record = Forward(Scatter()).fit(*table()).record_

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tamis.contract.record.os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record.save(tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []
