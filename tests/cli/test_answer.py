"""What ``tamis select`` writes where no method is named, or a page is asked for."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tamis.auto import Auto
from tamis.cli import folder as results
from tamis.cli.options import SelectOptions
from tamis.contract import Record
from tamis.recipes import select
from tamis.search import Ranking
from tamis.table.target import LabelledTable

FILES = ["ranking.csv", "record.json", "report.html", "selected.csv"]


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_output_folder_holds_the_ranking_and_the_selected_columns(tamis, folder, frame):
    result = tamis("select", "wine.csv", "-t", "kind")
    assert result.exit_code == 0, result.output
    assert listed(folder / "tamis-wine") == FILES
    ranking = pl.read_csv(folder / "tamis-wine" / "ranking.csv")
    kept = ranking.filter("kept")["column"].to_list()
    selected = pl.read_csv(folder / "tamis-wine" / "selected.csv")
    assert selected.equals(frame.select([c for c in frame.columns if c in kept] + ["kind"]))
    assert Record.load(folder / "tamis-wine" / "record.json").finished
    page = (folder / "tamis-wine" / "report.html").read_text()
    assert f"Keep {len(kept)} of 6 columns" in page
    assert "tamis select wine.csv --target kind" in page


def test_results_are_not_replaced_without_force(tamis, refused, folder):
    assert tamis("select", "wine.csv", "-t", "kind").exit_code == 0
    before = (folder / "tamis-wine" / "report.html").read_bytes()
    said = refused("select", "wine.csv", "-t", "kind")
    assert said == (
        "tamis-wine already exists. Write --force to replace the results in it, or --folder with "
        "another name."
    )
    assert (folder / "tamis-wine" / "report.html").read_bytes() == before
    (folder / "tamis-wine" / "mine.txt").write_text("mine")
    assert tamis("select", "wine.csv", "-t", "kind", "--force").exit_code == 0
    assert listed(folder / "tamis-wine") == sorted([*FILES, "mine.txt"])
    assert tamis("select", "wine.csv", "-t", "kind", "--folder", "other").exit_code == 0
    assert listed(folder / "other") == FILES


def test_a_method_writes_no_folder_unless_a_page_is_asked_for(tamis, folder):
    assert tamis("select", "wine.csv", "fisher-score", "-t", "kind").exit_code == 0
    assert listed(folder) == ["wine.csv"]
    result = tamis("select", "wine.csv", "fisher-score", "-t", "kind", "--report", "--resamples", 3)
    assert result.exit_code == 0, result.output
    assert listed(folder / "tamis-wine") == FILES
    page = (folder / "tamis-wine" / "report.html").read_text()
    assert "A random forest was trained on the kept columns. " in page
    assert "Could be replaced by" in page


def test_substitutes_and_models_of_a_report_have_bounds(frame, monkeypatch):
    data = LabelledTable(frame.drop("kind"), frame["kind"].to_numpy(), "kind", "classification")
    chosen = select(data.X, data.y, "fisher-score", n_features_to_select=3)
    assert set(results.try_out(chosen, data.X, data)) == {"substitutes", "model"}
    monkeypatch.setattr(results, "MOST_WORK", 1e3)
    assert set(results.try_out(chosen, data.X, data)) == {"model"}
    monkeypatch.setattr(results, "MOST_SHOWN", 2)
    assert results.try_out(chosen, data.X, data) == {}
    monkeypatch.undo()
    monkeypatch.setattr(results, "MOST_TRIED", 10)
    assert results.try_out(chosen, data.X, data) == {}


def test_a_small_table_is_fitted_again_without_each_column(tamis, folder, monkeypatch):
    asked = ("select", "wine.csv", "-t", "kind", "--budget", "1")
    assert tamis(*asked).exit_code == 0
    kept = (folder / "tamis-wine" / "selected.csv").read_text().splitlines()[0].split(",")[:-1]
    assert '"omitted":[]' in (folder / "tamis-wine" / "report.html").read_text()
    monkeypatch.setattr(results, "REFITS", 10.0)
    assert tamis(*asked, "--force").exit_code == 0
    page = (folder / "tamis-wine" / "report.html").read_text()
    found = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert {name for name, _ in found["explorer"]["omitted"]} == set(kept)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "long"), "--budget needs a time such as 60s, 5m or 1h, not 'long'."),
        (("mrmr", "--budget", "5m"), "--budget is for the automatic selection"),
        (("mrmr", "--resamples", "5"), "--resamples is for the HTML report"),
        (("--folder", "wine.csv"), "wine.csv is a file"),
        (("--folder", "wine.csv/answer"), "wine.csv is a file"),
    ],
)
def test_impossible_options_are_refused(refused, words, said):
    assert said in refused("select", "wine.csv", *words, "-t", "kind")


def test_folders_above_the_output_folder_are_created(tamis, folder):
    asked = ("select", "wine.csv", "-t", "kind", "fisher-score", "-k", 2, "--resamples", 0, "-q")
    result = tamis(*asked, "--folder", "new/answers/wine")
    assert result.exit_code == 0, result.output
    assert listed(folder / "new" / "answers" / "wine") == FILES
    assert listed(folder / "new" / "answers") == ["wine"]


def test_a_page_that_cannot_be_written_leaves_nothing(tamis, folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results, "ranking_sheet", full)
    result = tamis("select", "wine.csv", "-t", "kind")
    assert result.exit_code == 2
    assert "tamis-wine cannot be written: No space left on device" in result.stderr
    assert listed(folder) == ["wine.csv"]


def test_an_interrupt_leaves_a_record_and_the_command_to_continue(tamis, folder, monkeypatch):
    work = Auto._round

    def interrupted(self, X, y, seed, index):
        if index == 4:
            raise KeyboardInterrupt
        return work(self, X, y, seed, index)

    monkeypatch.setattr(Auto, "_round", interrupted)
    stopped = tamis("select", "wine.csv", "-t", "kind")
    assert stopped.exit_code == 130
    assert "the state after round 4 of" in stopped.stderr
    assert listed(folder / "tamis-wine") == ["record.json"]
    monkeypatch.setattr(Auto, "_round", work)
    command = stopped.stderr.partition("write: ")[2].strip()
    resumed = tamis(*shlex.split(command)[1:])
    assert resumed.exit_code == 0, resumed.output
    whole = tamis("select", "wine.csv", "-t", "kind", "--folder", "whole")
    assert resumed.stdout == whole.stdout
    assert listed(folder / "tamis-wine") == FILES
    same = [(folder / name / "ranking.csv").read_text() for name in ("tamis-wine", "whole")]
    assert same[0] == same[1]


def test_names_that_an_apostrophe_makes_equal_are_both_there(tamis, folder):
    rows = [f"{i % 7},{-(i % 13)},{i * i % 5},{'ab'[i % 2]}" for i in range(60)]
    (folder / "t.csv").write_text('=x,\'=x,"a,b",y\n' + "\n".join(rows))
    result = tamis("select", "t.csv", "-t", "y", "-k", 3)
    assert result.exit_code == 0, result.output
    lines = (folder / "tamis-t" / "selected.csv").read_text().splitlines()
    assert lines[:2] == ["'=x,'=x,\"a,b\",y", "0,0,0,a"]


def test_a_censored_target_does_not_replace_a_column_of_its_name(tamis, folder):
    rows = [f"{i % 9},{i % 7},{1 + i % 11},{i % 2}" for i in range(60)]
    (folder / "t.csv").write_text("time,other,days,died\n" + "\n".join(rows))
    result = tamis("select", "t.csv", "--time", "days", "--event", "died", "-k", 2)
    assert result.exit_code == 0, result.output
    head, first, *_ = (folder / "tamis-t" / "selected.csv").read_text().splitlines()
    assert head == "time,other,event,time (target)"
    assert first == "0,0,false,1"


def test_json_output_is_complete_and_quiet(tamis, folder):
    result = tamis("select", "wine.csv", "fisher-score", "-t", "kind", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert told["selected"]
    assert "record" not in told
    assert told["summary"][0].startswith("3 of 6 columns are kept")


@pytest.mark.posix
def test_the_command_is_what_a_shell_takes():
    words = {"target": "it's", "drop": ["x", "$y"], "force": True, "report": False}
    line = SelectOptions(file=Path("a b.csv"), **words).command_line()
    printed = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True)
    assert printed.stdout.splitlines() == [
        "tamis", "select", "a b.csv", "--target", "it's", "--drop", "x", "--drop", "$y", "--force",
    ]  # fmt: skip


def test_integers_and_missing_values_stay_unchanged(tamis, folder):
    rows = [f"{i % 7},{i / 8},{'' if i % 9 == 0 else i % 3},{'ab'[i % 2]}" for i in range(60)]
    (folder / "t.csv").write_text("whole,part,=gap,y\n" + "\n".join(rows))
    result = tamis("select", "t.csv", "-t", "y", "-k", 3, "--report")
    assert result.exit_code == 0, result.output
    lines = (folder / "tamis-t" / "selected.csv").read_text().splitlines()
    assert lines[0] == "whole,part,'=gap,y"
    assert lines[1:3] == ["0,0.0,,a", "1,0.125,1,b"]


def test_ctrl_c_while_the_page_is_made_leaves_the_results(tamis, folder, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    args = ("select", "wine.csv", "-t", "kind", "fisher-score", "--report", "--resamples", 0)
    with monkeypatch.context() as patched:
        patched.setattr("tamis.report.write_report", interrupted)
        result = tamis(*args)
    assert result.exit_code == 130
    assert listed(folder / "tamis-wine") == ["ranking.csv", "record.json", "selected.csv"]
    command = result.stderr.splitlines()[-1].partition("write: ")[2]
    assert tamis(*shlex.split(command)[1:]).exit_code == 0
    assert (folder / "tamis-wine" / "report.html").exists()


def test_results_are_written_before_the_page(tamis, folder, monkeypatch):
    args = ("select", "wine.csv", "-t", "kind", "fisher-score", "--report", "--resamples", 0)
    assert tamis(*args).exit_code == 0

    def killed(*args, **options):
        raise SystemExit(133)

    monkeypatch.setattr("tamis.report.write_report", killed)
    assert tamis(*args, "--force", "-k", 1).exit_code == 133
    assert listed(folder / "tamis-wine") == ["ranking.csv", "record.json", "selected.csv"]
    assert pl.read_csv(folder / "tamis-wine" / "selected.csv").width == 2


@pytest.mark.parametrize(("words", "mark"), [((), "'"), (("--no-safe-csv",), "")])
def test_values_that_a_spreadsheet_would_run_are_quoted(tamis, folder, words, mark):
    rows = [f"{i % 7},{('=cmd()', 'x', 'z')[i % 3]},{('@no', 'yes')[i % 2]}" for i in range(60)]
    (folder / "t.csv").write_text("a,b,y\n" + "\n".join(rows))
    args = ("select", "t.csv", "-t", "y", "-k", 2, "mrmr", "--report", "--resamples", 0)
    result = tamis(*args, *words)
    assert result.exit_code == 0, result.output
    lines = (folder / "tamis-t" / "selected.csv").read_text().splitlines()
    assert lines[:3] == ["a,b,y", f"0,{mark}=cmd(),{mark}@no", "1,x,yes"]


def test_a_long_value_is_quoted_in_part(tamis, folder):
    rows = [f"{i},{i % 3 if i else 'x' * 200_000},{i % 2}" for i in range(30)]
    (folder / "t.csv").write_text("a,b,y\n" + "\n".join(rows))
    result = tamis("select", "t.csv", "-t", "y", "mrmr", "--report", "--resamples", 0)
    assert result.exit_code == 0, result.output
    assert "such as 'xxx" in result.stderr
    assert len(result.output) < 10_000
    assert (folder / "tamis-t" / "report.html").stat().st_size < 3_000_000


def test_who_waits_at_a_terminal_reads_the_notes_first(tamis, folder, frame, monkeypatch):
    frame.with_columns(one=pl.lit(1)).write_csv("noted.csv")
    monkeypatch.setattr("tamis.cli.select.is_watched", lambda quiet: not quiet)
    fit = Ranking.fit
    monkeypatch.setattr(Ranking, "fit", lambda *args: sys.stderr.write("fitted\n") and fit(*args))
    result = tamis("select", "noted.csv", "-t", "kind", "fisher-score")
    read, note, fitted, *_ = result.stderr.splitlines()
    assert read.startswith("tamis: noted.csv: 178 rows, ")
    assert note.startswith("tamis: note: 'one' is left out: it has one value")
    assert fitted == "fitted"
