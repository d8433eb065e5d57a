"""The file of typical use runs, and type checkers accept it if they are installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from tests.typical_use import compared, first_steps, parts, tuned

FILE = Path(__file__).with_name("typical_use.py")


@pytest.mark.filterwarnings("ignore::tamis.exceptions.TamisWarning")
def test_typical_use_runs(tmp_path):
    X, y = load_wine(return_X_y=True)
    two = y < 2
    assert all(isinstance(sentence, str) for sentence in first_steps(X, y, tmp_path))
    sizes = parts(X, y)
    assert sizes["floating"] == 5
    assert sizes["own"] == 2
    assert set(map(type, sizes.values())) == {int}
    assert compared(X, y, tmp_path) == [6, 6]
    assert {"report.html", "ranking.svg"} <= {path.name for path in tmp_path.iterdir()}
    assert tuned(scale(X[two]), y[two]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [("mypy", "--strict"), ("pyright",)], ids=lambda w: w[0])
def test_type_checkers_accept_typical_use(words):
    tool = shutil.which(words[0], path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run([tool, *words[1:], str(FILE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
