"""Stored records of every format that must stay readable (docs/policy.rst).

``python -m tests.contract.test_record_formats`` writes records of the current format. Run it when
the format changes, and keep the files of the older formats.
"""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

import tamis
from tamis.contract import Record
from tamis.contract.record import FORMAT
from tamis.criteria import FisherScore, Scatter
from tamis.meta import Probes
from tamis.search import FloatingForward, Forward, Ranking, Then

FOLDER = Path(__file__).parent / "records"
#: Formats that the current version must read: those of the last two minor releases.
FORMATS = [2]
#: For each stored record, the selector as a function of its number of columns.
METHODS = {
    "mrmr": lambda size=3: tamis.recipe("mrmr", n_features_to_select=size),
    "floating": lambda size=3: FloatingForward(Scatter("J3"), n_features_to_select=size),
    "groups": lambda size=3: Forward(
        Scatter("J3"),
        n_features_to_select=size,
        feature_groups={"pair": [0, 1]},
        fixed_features=[4],
    ),
    "pairs": lambda size=3: tamis.recipe("pair-scan", n_features_to_select=size),
    "then": lambda size=3: Then(
        Ranking(FisherScore(), n_features_to_select=6),
        Forward(Scatter("J3"), n_features_to_select=size),
    ),
    "probes": lambda: Probes(Ranking(FisherScore()), random_state=0),
}


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize("name", METHODS)
def test_a_stored_record_is_read_and_describes_the_same_selection(name, number):
    stored = Record.load(FOLDER / f"{name}-{number}.json")
    X, y = load_wine(return_X_y=True)
    fitted = METHODS[name]().fit(X, y)
    np.testing.assert_array_equal(stored.kept, fitted.record_.kept)
    np.testing.assert_allclose(stored.trace.values, fitted.trace_.values, rtol=1e-8)
    assert stored.identity == fitted.record_.identity
    assert stored.finished
    assert str(stored) == str(fitted.record_)


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize("name", [name for name in METHODS if name != "probes"])
def test_a_stored_record_can_be_extended_to_more_columns(name, number):
    X, y = load_wine(return_X_y=True)
    record = str(FOLDER / f"{name}-{number}.json")
    resumed = METHODS[name](5).resume(X, y, record=record)
    assert resumed.columns == METHODS[name](5).fit(X, y).columns
    assert resumed.n_features_ > len(Record.load(record).kept)


def test_the_current_format_has_stored_records():
    assert FORMAT in FORMATS
    assert {path.name for path in FOLDER.iterdir()} == {
        f"{name}-{number}.json" for name in METHODS for number in FORMATS
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in METHODS.items():
        record = make().fit(*load_wine(return_X_y=True)).record_
        record.save(FOLDER / f"{name}-{FORMAT}.json")
