"""The examples of the gallery run unchanged."""

import runpy
import tempfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
#: Examples with their own test below.
TESTED = ("plot_validation_curve", "plot_class_gates")


@pytest.mark.parametrize("name", sorted({p.stem for p in EXAMPLES.glob("plot_*.py")} - {*TESTED}))
def test_every_example_runs(name, monkeypatch):
    path = EXAMPLES / f"{name}.py"
    if "matplotlib" in path.read_text():
        plt = pytest.importorskip("matplotlib.pyplot")
        plt.switch_backend("agg")
        monkeypatch.setattr(plt, "show", lambda: None)
    scope = runpy.run_path(str(path))
    charts = [item for item in scope.values() if hasattr(item, "to_dict") and hasattr(item, "save")]
    for chart in charts:
        chart.to_dict()  # altair validates it
    assert charts or "matplotlib" in path.read_text()


def test_the_validation_curve_can_be_written_as_a_table(tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    pd = pytest.importorskip("pandas")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("TAMIS_DATA", raising=False)
    scope = runpy.run_path(str(EXAMPLES / "plot_validation_curve.py"))
    plt.close("all")
    written = pd.read_csv(tmp_path / "validation_curve.csv")
    assert len(written) == len(scope["search"].curve_.values) > 100
    assert written["value"].min() == pytest.approx(1 - scope["search"].best_score_)
    assert "is better: proved" in capsys.readouterr().out


def test_gates_by_class_select_the_pair_that_global_gates_lose(monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    scope = runpy.run_path(str(EXAMPLES / "plot_class_gates.py"))
    plt.close("all")
    assert 10 < scope["lost"] < 60
    said = capsys.readouterr().out
    assert "class {0: '5 of 5', 0.1: '5 of 5', 1: '5 of 5'" in said
    assert "global {0: '5 of 5', 0.1: '0 of 5', 1: '0 of 5'" in said


def test_the_charts_of_the_theory_agree_with_the_choice(monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    scope = runpy.run_path(str(EXAMPLES / "plot_theory.py"))
    drawn = [len(plt.figure(number).axes[0].lines) for number in plt.get_fignums()]
    plt.close("all")
    assert drawn == [7, 4, 4]
    assert scope["best"] == scope["search"].n_features_
    assert (scope["risk"] > scope["true"]).all()  # the bound holds
    assert f"kept {scope['best']}" in capsys.readouterr().out
