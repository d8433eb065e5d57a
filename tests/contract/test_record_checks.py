"""Damaged records are refused with one sentence."""

import copy
import json

import numpy as np
import pytest

from tamis.contract import Record
from tamis.criteria import FisherScore, Scatter
from tamis.exceptions import InvalidTable, RecordMismatch
from tamis.search import (
    Bidirectional,
    BranchAndBound,
    Exhaustive,
    Forward,
    Genetic,
    PlusLMinusR,
    Ranking,
    Then,
)
from tamis.testing.problem import make_table as table
from tamis.testing.search_laws import Stop

X, Y = table()


def search():
    return Then(
        Ranking(FisherScore(), n_features_to_select=5), Forward(Scatter(), n_features_to_select=3)
    )


PLAIN = json.loads(json.dumps(search().fit(X, Y).record_.to_dict()))


def test_the_undamaged_record_is_accepted():
    assert Record.from_dict(PLAIN).to_dict() == PLAIN


@pytest.mark.parametrize(
    "damage",
    [
        {"format": 1},
        {"format": 3},  # of a later version
        {"format": None},
        {"n_samples": -1},
        {"n_samples": 1.5},
        {"chosen": 99},
        {"chosen": True},
        {"finished": "yes"},
        {"seeds": []},
        {"seeds": {"random_state": -1}},
        {"feature_names": ["a"]},
        {"feature_names": "abcdefg"},
        {"parts": None},
        {"parts": [{}]},
        {"trace": None},
        {"versions": None},
        {"more": 1},
        {"trace.n_units": 10**12},
        {"trace.n_units": 0},
        {"trace.n_units": None},
        {"trace.moved": [99, 1, 2]},
        {"trace.moved": [0]},
        {"trace.n_moved": [1, 1, 10**9]},
        {"trace.n_moved": [1, 1, -1]},
        {"trace.value": [None, "x", 1.0]},
        {"trace.value": [[], [], []]},
        {"trace.given": [0.0]},
        {"trace.given_at": [-5] * 7},
        {"trace.start": [7]},
        {"trace.params": {"99": {}}},
        {"trace.params": []},
        {"trace.state": None},
        {"trace.more": []},
    ],
    ids=str,
)
def test_damage_is_reported_by_name(damage):
    plain = copy.deepcopy(PLAIN)
    for where, value in damage.items():
        holder = plain
        *path, last = where.split(".")
        for name in path:
            holder = holder[name]
        holder[last] = value
    with pytest.raises(InvalidTable, match=r"not a record|cannot read|damaged record"):
        Record.from_dict(plain)


def test_an_edited_record_is_refused():
    plain = copy.deepcopy(PLAIN)
    plain["trace"]["value"][0] += 1
    with pytest.raises(InvalidTable, match="changed after it was written"):
        Record.from_dict(plain)
    del plain["checksum"]  # like records of early versions
    assert Record.from_dict(plain).trace.values[0] == PLAIN["trace"]["value"][0] + 1


@pytest.mark.parametrize("name", [n for n in PLAIN if n not in ("format", "checksum")])
def test_a_missing_entry_is_refused(name):
    with pytest.raises(InvalidTable, match=f"damaged record: its '{name}'"):
        Record.from_dict({n: value for n, value in PLAIN.items() if n != name})


@pytest.mark.parametrize("seed", range(300))
def test_damaged_text_is_refused_or_harmless(seed, tmp_path):
    """After a few characters are changed, the record is refused or is still the same."""
    draw = np.random.default_rng(seed)
    text = list(json.dumps(PLAIN))
    for _ in range(draw.integers(1, 4)):
        text[draw.integers(len(text))] = draw.choice(list('0123456789-[]{}",:.exnul '))
    (tmp_path / "r.json").write_text("".join(text))
    try:
        record = Record.load(tmp_path / "r.json")
        again = search().resume(X, Y, record=record)
    except (InvalidTable, RecordMismatch):
        return
    assert again.record_.to_dict() == PLAIN


def test_deep_nesting_is_refused(tmp_path):
    (tmp_path / "r.json").write_text("[" * 100_000)
    with pytest.raises(InvalidTable, match="not a record"):
        Record.load(tmp_path / "r.json")
    plain = copy.deepcopy(PLAIN)
    for _ in range(30):
        plain = {**copy.deepcopy(PLAIN), "parts": [plain]}
    with pytest.raises(InvalidTable, match="fewer levels"):
        Record.from_dict(plain)


def test_a_finished_record_of_a_different_table_is_refused():
    plain = copy.deepcopy(
        Ranking(FisherScore(), n_features_to_select=2).fit(X, Y).record_.to_dict()
    )
    small = Ranking(FisherScore(), n_features_to_select=2).fit(X[:, :5], Y).record_
    plain["data"] = small.data
    del plain["checksum"]
    with pytest.raises(RecordMismatch, match="other data"):
        Ranking(FisherScore(), n_features_to_select=2).resume(
            X[:, :5], Y, record=Record.from_dict(plain)
        )


@pytest.mark.parametrize("step", [-1, 0, 1])
@pytest.mark.parametrize("make", [search, lambda: Forward(Scatter(), n_features_to_select=3)])
def test_another_chosen_step_is_refused(make, step):
    plain = make().fit(X, Y).record_.to_dict()
    del plain["checksum"]
    damaged = Record.from_dict({**plain, "chosen": step})
    with pytest.raises(InvalidTable, match="its 'chosen' is not the step that this search selects"):
        make().resume(X, Y, record=damaged)
    assert make().resume(X, Y, record=Record.from_dict(plain)).support_.sum() == 3


def test_a_record_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    record = Record.from_dict(PLAIN)
    with pytest.raises(InvalidTable, match="cannot be written"):
        record.save(tmp_path / "nowhere" / "r.json")

    def full(draft, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InvalidTable, match=r"r\.json cannot be written: No space left"):
        record.save(tmp_path / "r.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "make",
    [
        lambda: BranchAndBound(Scatter(), n_features_to_select=3),
        lambda: Bidirectional(Scatter(), n_features_to_select=3),
        lambda: PlusLMinusR(Scatter(), n_features_to_select=3),
        lambda: Genetic(Scatter(), n_features_to_select=3, random_state=0),
        lambda: Exhaustive(Scatter(), n_features_to_select=3),
    ],
)
@pytest.mark.parametrize("state", [{}, {"open": 3, "gap": 1}, {"position": "x"}, {"bits": [["z"]]}])
def test_an_invalid_state_is_refused(make, state):
    plain = make().set_callbacks(Stop(1)).fit(X, Y).record_.to_dict()
    plain["trace"]["state"] = {**state, "valued": "many"}
    del plain["checksum"]
    with pytest.raises(InvalidTable, match="damaged record"):
        make().resume(X, Y, record=Record.from_dict(plain))
