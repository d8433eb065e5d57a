"""Classes and recipes of other packages, found by their entry points."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tamis import recipes, spec
from tamis.contract import Record
from tamis.exceptions import InvalidSpec
from tamis.recipes.book import BOOK
from tamis.spec import plugins

MODULE = '''
import numpy as np
from sklearn.base import BaseEstimator
from tamis.contract.choice import Choice, Chosen
from tamis.criteria import FisherScore
from tamis.search import Ranking


class AlwaysTwo(Choice):
    """Keeps two columns."""

    def pick(self, trace, context=None):
        return Chosen(int(np.flatnonzero(trace.sizes == 2)[0]), "always two")


class Nothing(BaseEstimator):
    """An estimator."""

    def __init__(self, size=1):
        self.size = size


def two_best(**options):
    """Keep the two columns of greatest Fisher score."""
    return Ranking(FisherScore(), **{"n_features_to_select": 2} | options)
'''
POINTS = """
[tamis.parts]
AlwaysTwo = strange_parts:AlwaysTwo
Nothing = strange_parts:Nothing
Forward = strange_parts:Nothing
Broken = strange_parts:Missing
two-best = strange_parts:two_best
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a package with several parts, one of which cannot be imported."""
    (tmp_path / "strange_parts.py").write_text(MODULE)
    about = tmp_path / "strange-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.find_plugins.cache_clear()
    yield
    plugins.find_plugins.cache_clear()
    BOOK.pop("two-best", None)


def test_class_is_read_and_written() -> None:
    text = "Ranking(FisherScore(), n_features_to_select=AlwaysTwo())"
    search = spec.parse(text)
    assert spec.write(search) == text
    assert search.fit(*load_iris(return_X_y=True)).support_.sum() == 2
    assert spec.parse("Nothing(size=3)").size == 3


def test_name_of_tamis_takes_precedence() -> None:
    assert spec.parse("Forward(FisherScore())").__module__.startswith("tamis.")


def test_recipe_is_listed_and_made() -> None:
    assert "two-best" in recipes.names()
    (found,) = recipes.find("two greatest fisher")
    assert (found.name, found.reference) == ("two-best", "package strange")
    assert found.targets == {"classification"}
    assert recipes.recipe("two-best", n_features_to_select=3).n_features_to_select == 3
    assert recipes.method("two-best(n_features_to_select=1)").n_features_to_select == 1


def test_recipe_selects() -> None:
    X, y = load_iris(return_X_y=True)
    chosen = recipes.select(X, y, "two-best")
    assert np.flatnonzero(chosen.support_).tolist() == [2, 3]
    assert isinstance(chosen.record_, Record)


def test_broken_part_is_named() -> None:
    with pytest.raises(InvalidSpec, match=r"Broken of strange cannot be imported: .*Missing"):
        spec.parse("Broken()")
    with pytest.warns(UserWarning, match="Broken of strange"):
        groups = spec.catalogue()
    assert "AlwaysTwo" in groups["choices"]
    assert "Nothing" not in {name for kinds in groups.values() for name in kinds}


def test_similar_names_are_suggested() -> None:
    with pytest.raises(InvalidSpec, match="AlwaysTwo"):
        spec.parse("AlwaysTow()")
