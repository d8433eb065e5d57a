"""``tamis select``: what it prints and writes, and every way it refuses."""

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tamis.cli import select as command
from tamis.cli.folder import replace_file
from tamis.cli.options import SelectOptions
from tamis.contract import Record
from tamis.criteria import Scatter
from tamis.recipes import select
from tamis.report.sheets import to_plain
from tamis.search import Forward

GENETIC = "ga-knn(n_generations=2, population_size=6)"


def kept(result):
    """Columns marked as kept in a printed table."""
    rows = [line.split() for line in result.stdout.splitlines()]
    return [row[1] for row in rows if row and row[0].isdigit() and row[-1] == "yes"]


def test_the_printed_table_describes_the_selection(tamis, frame):
    result = tamis("select", "wine.csv", "--target", "kind")
    assert result.exit_code == 0, result.output
    assert result.stderr == (
        "tamis: the report is tamis-wine/report.html; see also selected.csv, ranking.csv and "
        "record.json.\n"
    )
    first, _, *others = result.stdout.rstrip().splitlines()
    assert first == "wine.csv: 178 rows, 6 columns, target kind (3 classes)"
    chosen = select(frame.drop("kind"), frame["kind"].to_numpy(), random_state=0)
    assert f"{chosen.n_features_} of 6 columns kept." in others
    assert any("held-out rows: " in line for line in others)
    assert sorted(kept(result)) == sorted(chosen.get_feature_names_out())


@pytest.mark.parametrize(
    "method", ["fisher-score", 'Forward(Scatter("J3"))', "sffs-j3(ridge=0.01)", GENETIC]
)
def test_recipes_and_expressions_select(tamis, method):
    result = tamis("select", "wine.csv", method, "--target", "kind", "--features", 2)
    assert result.exit_code == 0, result.output
    assert len(kept(result)) == 2
    assert tamis("select", "wine.csv", method, "-t", "kind", "-k", 2).stdout == result.stdout


@pytest.mark.parametrize(
    ("features", "number"), [("1", 1), ("0.5", 3), ("best", 6), ("Threshold(0.5)", 2)]
)
def test_the_number_of_features_may_be_a_number_a_share_or_a_rule(tamis, features, number):
    result = tamis("select", "wine.csv", "fisher-score", "-t", "kind", "-k", features)
    assert result.exit_code == 0, result.output
    assert len(kept(result)) == number


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("Probes(Ranking(FisherScore()), n_rounds=3)", "is expected to be unrelated to the target"),
        ("Ranking(FisherScore(), n_features_to_select=Knee())", "describes the curve"),
        ("fisher-score", None),
    ],
)
def test_the_reason_is_printed_if_no_number_was_given(tamis, method, reason):
    result = tamis("select", "wine.csv", method, "-t", "kind")
    above = " ".join(result.stdout.partition("rank")[0].split())
    assert reason is None or reason in above
    assert "kept" not in above


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arff", "svm"])
def test_every_format_gives_the_same_result(tamis, frame, libsvm, ending):
    expected = tamis("select", "wine.csv", "fisher-score", "-t", "kind", "-o", "expected.csv")
    assert expected.exit_code == 0
    target = ["--target", "kind"]
    if ending == "tsv":
        frame.write_csv("t.tsv", separator="\t")
    elif ending == "parquet":
        frame.write_parquet("t.parquet")
    elif ending == "arff":
        write_arff(frame, "t.arff")
    elif ending == "svm":
        libsvm("t.svm", 1)
        target = []
    else:
        frame.write_csv("t.csv", separator=";")
    result = tamis("select", f"t.{ending}", "fisher-score", *target, "-o", "found.csv")
    assert result.exit_code == 0, result.output
    ours, theirs = pl.read_csv("found.csv"), pl.read_csv("expected.csv")
    np.testing.assert_allclose(ours["score"], theirs["score"], rtol=1e-5)
    if ending != "svm":
        assert ours["column"].to_list() == theirs["column"].to_list()


def write_arff(frame, path):
    lines = ["@relation wine"]
    lines += [f"@attribute {name} real" for name in frame.columns[:-1]]
    lines += ["@attribute kind {class_0,class_1,class_2}", "@data"]
    lines += [",".join(map(str, row)) for row in frame.rows()]
    with open(path, "w") as stream:
        stream.write("\n".join(lines))


def test_csv_output_has_every_column(tamis, frame, folder):
    result = tamis("select", "wine.csv", "svm-rfe", "-t", "kind", "-o", "r.csv", "--rows", 2)
    assert result.exit_code == 0, result.output
    assert result.stderr == "tamis: the ranking is in r.csv.\n"
    assert "the first 2 are shown" in result.stdout
    with open("r.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["rank"] for row in rows] == [str(j) for j in range(1, 7)]
    assert sorted(row["column"] for row in rows) == sorted(frame.columns[:-1])
    assert [row["kept"] for row in rows] == ["true"] * 3 + ["false"] * 3
    assert all(float(row["score"]) >= 0 for row in rows)
    assert sorted(p.name for p in folder.iterdir()) == ["r.csv", "wine.csv"]


@pytest.mark.parametrize("method", ["svm-rfe", "fisher-score", GENETIC, "t-test-fdr"])
def test_json_output_has_the_record(tamis, method):
    result = tamis("select", "wine.csv", method, "-t", "kind", "-k", "2", "-o", "r.json")
    assert result.exit_code == 0, result.output
    with open("r.json") as stream:
        found = json.load(stream, parse_constant=pytest.fail)  # no NaN: any program can read it
    assert set(found["selected"]) == {r["column"] for r in found["ranking"] if r["kept"]}
    assert found["target"] == "kind"
    assert found["task"] == "classification"
    record = Record.from_dict(found["record"])
    assert record.finished
    assert record.expression == found["method"]


def test_an_output_is_replaced_only_by_a_complete_one(tamis, folder, monkeypatch):
    (folder / "r.csv").write_text("old")
    monkeypatch.setattr("tamis._files.os.replace", failing)
    result = tamis("select", "wine.csv", "fisher-score", "-t", "kind", "-o", "r.csv")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert (folder / "r.csv").read_text() == "old"
    assert sorted(p.name for p in folder.iterdir()) == ["r.csv", "wine.csv"]


def failing(*args):
    raise OSError(28, "No space left on device", "r.csv")


def test_a_draft_is_readable_like_any_file(folder):
    replace_file(folder / "a.txt", "text")
    (folder / "b.txt").write_text("text")
    assert (folder / "a.txt").stat().st_mode == (folder / "b.txt").stat().st_mode


def test_a_numeric_target_can_be_read_as_classes(tamis, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rating = np.clip(np.rint(3 + X[:, 0]), 1, 5).astype(int)
    pl.DataFrame(X, schema=list("abc")).with_columns(pl.Series("rating", rating)).write_csv("r.csv")
    auto = tamis("select", "r.csv", "-t", "rating")
    assert "(5 classes)" in auto.stdout
    real = tamis("select", "r.csv", "-t", "rating", "--task", "regression", "--force")
    assert "target rating (numbers)" in real.stdout
    assert "root mean square" in real.stdout
    assert "a" in kept(real)
    by_correlation = tamis("select", "r.csv", "correlation", "-t", "rating", "--task", "regression")
    assert "Correlation(task='regression')" in by_correlation.stdout


def test_the_first_line_reads_the_target_as_the_automatic_selection_does(tamis, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    stars = np.clip(np.rint(3 + X[:, 0]), 1, 5)
    pl.DataFrame(X, schema=list("abc")).with_columns(pl.Series("stars", stars)).write_csv("s.csv")
    given = "select", "s.csv", "-t", "stars"
    found = tamis(*given, "-o", "s.json")
    first = found.stdout.splitlines()[0]
    assert first == "s.csv: 60 rows, 3 columns, target stars (numbers)"
    assert "target: numbers (regression); task='classification' reads them as" in found.stdout
    assert json.loads((folder / "s.json").read_text())["task"] == "regression"
    classes = tamis(*given, "--task", "classification", "--force", "--save-record", "r.json")
    assert "(5 classes)" in classes.stdout.splitlines()[0]
    resumed = tamis("select", "s.csv", "-t", "stars", "--resume", "r.json", "--force")
    assert "(5 classes)" in resumed.stdout.splitlines()[0]
    assert "(5 classes)" in tamis("select", "s.csv", "correlation", "-t", "stars").stdout
    assert tamis("select", "s.csv", "--dry-run").exit_code == 0


def test_booleans_and_integers_are_numbers(tamis, folder):
    (folder / "t.csv").write_text("a,b,y\ntrue,1,yes\nfalse,2,no\ntrue,4,yes\nfalse,3,no\n")
    result = tamis("select", "t.csv", "fisher-score", "-t", "y")
    assert result.exit_code == 0, result.output
    assert kept(result) == ["a"]


def test_infinite_scores_are_shown_and_written(tamis, folder):
    (folder / "t.csv").write_text("a,b,y\n1,1,u\n1,2,u\n2,1,v\n2,2.5,v\n")
    result = tamis("select", "t.csv", "fisher-score", "-t", "y", "-o", "r.json")
    assert result.exit_code == 0, result.output
    assert "inf" in result.stdout
    assert json.loads((folder / "r.json").read_text())["selected"] == ["a"]


def test_dropped_columns_are_not_selected(tamis, folder, frame):
    named = frame.with_columns(pl.Series("id", [f"w{j}" for j in range(178)]))
    named.write_csv("named.csv")
    result = tamis("select", "named.csv", "-t", "kind", "--drop", "id", "--drop", "alcohol")
    assert result.exit_code == 0, result.output
    assert "5 columns" in result.stdout
    again = tamis("select", "named.csv", "-t", "kind", "--id-columns", "id", "--force")
    assert again.exit_code == 0


def test_without_header(tamis, folder, frame):
    frame.write_csv("plain.csv", include_header=False)
    result = tamis("select", "plain.csv", "--no-header", "-t", "x7")
    assert result.exit_code == 0, result.output
    assert set(kept(result)) <= {f"x{j}" for j in range(1, 7)}


def test_warnings_are_printed_on_one_line_each(tamis):
    method = "Ranking(Importances(LogisticRegression(max_iter=1)))"
    result = tamis("select", "wine.csv", method, "-t", "kind")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("tamis: warning: A model did not converge: lbfgs failed")
    assert result.stderr.count("\n") == 1


def test_a_finished_record_can_be_gone_on_from(tamis, folder):
    first = tamis("select", "wine.csv", GENETIC, "-t", "kind", "--save-record", "g.json")
    assert first.exit_code == 0, first.output
    assert first.stderr == "tamis: the record is in g.json.\n"
    again = tamis("select", "wine.csv", "-t", "kind", "--resume", "g.json")
    assert again.exit_code == 0, again.output
    assert kept(again) == kept(first)
    named = tamis("select", "wine.csv", GENETIC, "-t", "kind", "--resume", "g.json")
    assert named.stdout == first.stdout


def test_an_interrupted_search_is_resumed_with_the_same_result(tamis, folder, monkeypatch):
    whole = tamis("select", "wine.csv", "sfs-j3", "-t", "kind", "-k", 5, "-o", "whole.csv")
    assert whole.exit_code == 0
    walk = Forward._steps

    def interrupted(self, *args):
        for number, step in enumerate(walk(self, *args)):
            if number == 2:
                raise KeyboardInterrupt
            yield step

    monkeypatch.setattr(Forward, "_steps", interrupted)
    args = ["select", "wine.csv", "sfs-j3", "-t", "kind", "-k", 5, "-o", "r.csv"]
    stopped = tamis(*args, "--save-record", "half.json")
    assert stopped.exit_code == 130
    assert stopped.stdout == ""
    assert stopped.stderr == (
        "tamis: stopped; 2 steps are in half.json. To continue, write: tamis select wine.csv "
        "sfs-j3 --target kind --features 5 --output r.csv --save-record half.json "
        "--resume half.json\n"
    )
    assert not (folder / "r.csv").exists()
    assert not Record.load("half.json").finished
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    resumed = tamis("select", "wine.csv", "-t", "kind", "--resume", "half.json", "-o", "r.csv")
    assert resumed.exit_code == 0, resumed.output
    assert (folder / "r.csv").read_text() == (folder / "whole.csv").read_text()


def test_interrupt_without_a_record_writes_nothing(tamis, folder, monkeypatch):
    monkeypatch.setattr(Forward, "fit", interrupt)
    stopped = tamis("select", "wine.csv", "sfs-j3", "-t", "kind", "--save-record", "r.json")
    assert stopped.exit_code == 130
    assert stopped.stderr == "tamis: stopped; nothing was written.\n"
    assert sorted(p.name for p in folder.iterdir()) == ["wine.csv"]
    monkeypatch.setattr(command, "read_file", interrupt)
    assert tamis("select", "wine.csv", "-t", "kind").exit_code == 130


def test_an_interrupt_in_the_first_step_leaves_no_record(tamis, folder, monkeypatch):
    monkeypatch.setattr(Scatter, "values", interrupt)
    monkeypatch.setattr(Scatter, "gain", interrupt)
    stopped = tamis("select", "wine.csv", "sfs-j3", "-t", "kind")
    assert stopped.exit_code == 130
    assert stopped.stderr == "tamis: stopped; nothing was written.\n"
    assert sorted(p.name for p in folder.iterdir()) == ["wine.csv"]


def interrupt(*args, **options):
    raise KeyboardInterrupt


def test_an_error_of_ours_is_not_hidden(tamis, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("a bug")

    monkeypatch.setattr(command, "read_file", broken)
    result = tamis("select", "wine.csv", "-t", "kind")
    assert isinstance(result.exception, RuntimeError)


def test_an_error_of_the_model_is_reported_in_one_sentence(tamis):
    model = "Forward(CrossValidated(OneVsRestClassifier(StandardScaler())))"
    result = tamis("select", "wine.csv", "-t", "kind", model)
    assert result.exit_code == 2
    assert "OneVsRestClassifier failed in fold 0 on column(s) [0]: 'StandardSca" in result.stderr
    assert "Traceback" not in result.stderr


REFUSED = [
    (["--target", "knd"], "There is no column 'knd'. Did you mean kind?"),
    ([], "Which column is the target? Write --target with one of 'kind'"),
    (["-t", "kind", "-k", "0"], "between 1 and 6, the number of columns of X, not 0"),
    (["-t", "kind", "-k", "7"], "between 1 and 6, the number of columns of X, not 7"),
    (["-t", "kind", "-k", "-1"], "not -1"),
    (["-t", "kind", "-k", "1.5"], "fraction in (0, 1], not 1.5"),
    (["-t", "kind", "-k", "many"], "--features needs a number of columns"),
    (["-t", "kind", "-k", "SVC()"], "needs n_features_to_select as an int"),
    (["-t", "kind", "svm-rf"], "No method is called 'svm-rf'. Did you mean svm-rfe"),
    (["-t", "kind", "Forward(Scater())"], "is called Scater at character 9. Did you mean Scatter?"),
    (["-t", "kind", "Forward("], "'(' was never closed"),
    (["-t", "kind", "__import__('os')"], "is called __import__"),
    (["-t", "kind", "Scatter()"], "is a criterion, and a method needs a search around it"),
    (["-t", "kind", "Forward(SVC())"], "Wrap an estimator as Forward(CrossValidated(estimator))"),
    (["-t", "kind", "FloatingForward(Importances(SVC()))"], "FloatingForward needs the value"),
    (["-t", "kind", "Forward(CrossValidated(SVC(C=-1)))"], "'C' parameter of SVC"),
    (["-t", "kind", "svr-rfe"], "svr-rfe needs a numeric target, but y is read as classes"),
    (["-t", "kind", "svr-rfe", "--task", "classification"], "svr-rfe needs a numeric target"),
    (["-t", "kind", "--task", "regression"], "Regression needs a numeric target, but 'kind' holds"),
    (["-t", "kind", "--task", "cluster"], "Invalid value for '--task'"),
    (["-t", "kind", "--drop", "alcool"], "There is no column 'alcool'. Did you mean alcohol?"),
    (["-t", "kind", "--drop", "kind"], "The target 'kind' cannot be dropped"),
    (["-t", "kind", "-o", "r.txt"], "r.txt needs the ending .csv or .json"),
    (["-t", "kind", "-o", "r"], "r needs the ending .csv or .json"),
    (["-t", "kind", "-o", "no/r.csv"], "no/r.csv cannot be written: there is no folder no"),
    (["-t", "kind", "-o", "wine.csv"], "wine.csv holds the data"),
    (["-t", "kind", "--save-record", "r.csv"], "r.csv needs the ending .json"),
    (["-t", "kind", "--resume", "none.json"], "The record none.json cannot be read: No such file"),
    (["-t", "kind", "--resume", "wine.csv"], "wine.csv is not a record"),
    (["-t", "kind", "--format", "xml"], "There is no format 'xml'"),
    (["-t", "kind", "--rows", "0"], "Invalid value for '--rows'"),
    (["-t", "kind", "--jobs", "0"], "-1 for all cores, not 0"),
    (["-t", "kind", "--nonsense"], "No such option: --nonsense"),
    (["-t", "kind", "a", "b"], "unexpected extra argument"),
]


@pytest.mark.parametrize(("args", "sentence"), REFUSED, ids=[" ".join(a) for a, _ in REFUSED])
def test_invalid_arguments_are_refused(refused, args, sentence):
    assert sentence in refused("select", "wine.csv", *args)


TABLES = {
    "inf": ("a,b,y\n1,2,u\ninf,3,v\n", "The column 'a' has 1 infinite value."),
    "identifiers": (
        "n,a b,y\nx,bob,u\nz,eve,v\n",
        "No column is left besides the target 'y': 'n', 'a b' left out. Write keep=['n', 'a b'] "
        '(--keep n --keep "a b") to use them, or give a table with features.',
    ),
    "constants": (
        "a,b,y\n1,,u\n1,,v\n",
        "No column is left besides the target 'y': 'a', 'b' with one value, or none, in all rows. "
        "Give a table with columns that vary.",
    ),
    "inf and text": ("a,b,y\n1,r,u\ninf,s,v\n2,r,v\n", "The column 'a' has 1 infinite value."),
    "one class": ("a,b,y\n1,2,u\n2,3,u\n", "The target 'y' has the same value, u, in every row"),
    "missing target": ("a,b,y\n1,2,u\n2,3,\n", "The column 'y' has 1 missing value in 2 rows"),
    "target only": ("y\nu\nv\n", "No column is left besides the target 'y'"),
    "one row": ("a,b,y\n1,2,u\n", "has the same value"),
    "duplicates": ("a,a,y\n1,2,u\n2,3,v\n", "more than one column called 'a'"),
    "no header": ("1,2,3\n2,3,4\n", "Write --no-header"),
    "empty": ("", "is empty"),
    "header only": ("a,b,y\n", "has no rows below its header"),
}


@pytest.mark.parametrize("name", TABLES)
def test_unusable_tables_are_refused(refused, folder, name):
    text, sentence = TABLES[name]
    (folder / "t.csv").write_text(text)
    assert sentence in refused("select", "t.csv", "--target", "y", "-o", "r.csv")


def test_unreadable_files_are_refused(refused, folder):
    assert "There is no file wines.csv. Did you mean wine.csv?" in refused("select", "wines.csv")
    assert "is a folder" in refused("select", folder, "--format", "csv")
    (folder / "table").write_text("a")
    assert "no extension" in refused("select", "table")
    assert "Missing argument 'FILE'" in refused("select")
    assert "No such command 'selct'" in refused("selct")


def test_a_parquet_target_of_lists_is_refused(refused):
    frame = pl.DataFrame({"a": [1, 2], "l": [[1], [2]], "y": ["u", "v"]})
    frame.write_parquet("t.parquet")
    args = ["select", "t.parquet", "--target"]
    assert "The target 'l' holds List" in refused(*args, "l")


def test_the_odd_text_among_numbers_is_shown(tamis, folder):
    (folder / "t.csv").write_text("b,a,y\n4,1,u\n5,2,v\n6,three,v\n9,2,v\n")
    result = tamis("select", "t.csv", "-t", "y", "fisher-score")
    assert result.exit_code == 0, result.output
    assert "'a' mixes numbers and text, such as 'three' in 'a': read as text" in result.stderr


def test_damaged_records_are_refused(refused, folder):
    for text in ('{"format": 1}', "[1]", "{", '{"format": 9}', "null", "[" * 100_000):
        (folder / "r.json").write_text(text)
        assert "record" in refused("select", "wine.csv", "-t", "kind", "--resume", "r.json")


def test_a_libsvm_file_has_its_own_target(refused, libsvm):
    libsvm("w.svm", 1)
    assert "Leave --target out" in refused("select", "w.svm", "--target", "kind")


def test_a_record_of_other_data_is_refused(tamis, refused, frame):
    tamis("select", "wine.csv", "sfs-j3", "-t", "kind", "--save-record", "r.json")
    frame.head(150).write_csv("other.csv")
    args = ["-t", "kind", "--resume", "r.json"]
    assert "other data" in refused("select", "other.csv", *args)
    assert "belongs to" in refused("select", "wine.csv", "fisher-score", *args)
    assert "belongs to" in refused("select", "wine.csv", "svm-rfe", "-k", "2", *args)


def test_a_record_is_extended_to_another_number_of_columns(tamis, folder):
    tamis("select", "wine.csv", "sfs-j3", "-t", "kind", "-k", "2", "--save-record", "r.json")
    args = ["select", "wine.csv", "sfs-j3", "-t", "kind", "-k", "4"]
    longer = tamis(*args, "--resume", "r.json")
    assert longer.exit_code == 0, longer.output
    assert kept(longer) == kept(tamis(*args))


def test_numbers_that_json_does_not_know():
    held = {"a": float("nan"), "b": [1.0, float("nan"), float("-inf")], "c": np.float64(2)}
    assert to_plain(held) == {"b": [1.0, None, None], "c": 2.0}


def test_embedded_selectors_can_be_resumed(tamis, folder):
    method = "GateSelector(scope='class', mu=1, lam=1, network=NetworkClassifier(3))"
    first = tamis(
        "select", "wine.csv", "-t", "kind", method, "-k", "PerClass(1)", "--save-record", "r.json"
    )
    assert first.exit_code == 0, first.output
    again = tamis("select", "wine.csv", "-t", "kind", "--resume", "r.json")
    assert again.exit_code == 0, again.output
    assert kept(again) == kept(first) != []


def test_the_strongest_pairs_are_printed(tamis, folder):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 4))
    kind = np.where((X[:, 1] - 0.5) * (X[:, 3] - 0.5) > 0, "yes", "no")
    frame = pl.DataFrame({name: X[:, j] for j, name in enumerate("abcd")} | {"kind": kind})
    frame.write_csv(folder / "pairs.csv")
    found = tamis("select", "pairs.csv", "-t", "kind", "pair-scan", "-k", 2)
    first = found.stdout.partition("strongest interactions")[2].splitlines()[1]
    assert first.endswith("b and d")
    asked = "pair-scan(n_permutations=19)"
    tested = tamis("select", "pairs.csv", "-t", "kind", asked, "-k", 2)
    assert "p 0.05" in tested.stdout.partition("strongest interactions")[2].splitlines()[1]
    assert "strongest interactions" not in tamis("select", "pairs.csv", "-t", "kind", "mrmr").stdout


def test_the_command_to_continue_has_every_option():
    asked = SelectOptions(file=Path("a.csv"))
    assert asked.command_line() == "tamis select a.csv"
    others = {"rows": 3, "safe_csv": False, "force": True, "quiet": True, "json": True}
    told = asked.command_line(**others)
    assert told == "tamis select a.csv --rows 3 --json --quiet --no-safe-csv --force"


@pytest.mark.slow
@pytest.mark.parametrize("method", [(), ("Probes(Ranking(FisherScore()), n_rounds=2)",)])
def test_several_processes_give_the_same_result(tamis, method):
    budget = () if method else ("--budget", "0.2s")
    asked = ("select", "wine.csv", *method, "-t", "kind", *budget, "--json", "--quiet")
    one, two = tamis(*asked, "--folder", "a"), tamis(*asked, "--jobs", 2, "--folder", "b")
    assert (two.exit_code, two.stderr) == (0, "")
    answers = [json.loads(result.stdout) for result in (one, two)]
    assert answers[0]["selected"] == answers[1]["selected"]
    assert answers[0]["summary"] == answers[1]["summary"]
