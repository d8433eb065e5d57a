"""The benchmark of the field: tables, methods, judges, cells, rankings, pages and the command."""

import re
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from sklearn.feature_selection import SelectFpr, SelectKBest
from sklearn.utils import Bunch

from tamis.exceptions import InvalidParameter, InvalidStore, InvalidTable
from tamis_book.benchmark import METHODS, Method, load_results, load_table, rank_kind, run
from tamis_book.benchmark import tables as tables_module
from tamis_book.benchmark.__main__ import main
from tamis_book.benchmark.contestant import CapReached, MethodSelector
from tamis_book.benchmark.judges import JUDGES, CachedJudge, judges_of
from tamis_book.benchmark.methods import PEERS, is_installed
from tamis_book.benchmark.pages import write_pages
from tamis_book.benchmark.ranking import failures, habits, own_sizes, split_losses
from tamis_book.benchmark.result_files import CellResult, TableResults, open_results
from tamis_book.benchmark.runner import order_tasks, prepare_split
from tamis_book.benchmark.tables import (
    BenchmarkTable,
    add_noise,
    omitted,
    prepare,
    read_table,
    sizes_of,
    table_names,
)


@pytest.fixture
def mixed():
    """Return a table of numbers and categories with missing values."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(60) < 0.1, np.nan, y + rng.normal(size=60)),
            "useful": np.array(["a", "b", "c"], dtype=object)[y],
            "missing": np.where(rng.random(60) < 0.3, None, "x"),
            "noise": rng.normal(size=60),
        }
    )
    return BenchmarkTable("mixed", frame, y)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Set the variables of the tables to an empty folder, which has two small tables."""
    rng = np.random.default_rng(1)
    for name, n in (("first", 45), ("second", 60)):
        y = np.arange(n) % 2
        X = rng.normal(size=(n, 7))
        X[:, 4] += 3 * y
        np.savez_compressed(tmp_path / f"{name}.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "real.npz", X=X, y=X[:, 2] + 0.1 * X[:, 0])
    monkeypatch.setenv("TAMIS_BENCH", str(tmp_path))
    monkeypatch.delenv("TAMIS_DATA", raising=False)
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """Leave only the linear judge."""
    monkeypatch.setattr(
        "tamis_book.benchmark.runner.judges_of", lambda y: {"linear": judges_of(y)["linear"]}
    )


def by_correlation(X, y, k, rng):
    return np.argsort(-np.abs(np.corrcoef(X.T, y)[-1, :-1]))


def fails(X, y, k, rng):
    raise ValueError("this table is not supported")


BOTH = {"random": METHODS["random"], "best": Method(by_correlation, "filter")}


# tables


def test_sizes_follow_the_rule_of_the_protocol():
    assert sizes_of(12) == [2, 4, 6, 8, 10]
    assert sizes_of(100) == [17, 34, 50, 67, 84]
    assert sizes_of(4**6) == [4, 16, 64, 256, 1024]
    assert all(1 <= k <= d for d in range(1, 300) for k in sizes_of(d))


def test_two_classes_are_coded_by_the_shrunken_mean_of_the_training_rows():
    y = np.array([0, 1, 1, 1, 0, 0])
    table = BenchmarkTable("t", pd.DataFrame({"c": list("aabbab")}, dtype=object), y.astype(float))
    train = np.arange(4)
    found = prepare(table, train)[4:, 0]
    mean = 0.75  # of the training rows: a has 0, 1 and b has 1, 1
    a, b = ((1 - 2 * mean) / 12, (2 - 2 * mean) / 12)
    np.testing.assert_allclose(found, [a, b])


def test_identifiers_do_not_reveal_the_target_of_the_training_rows():
    frame = pd.DataFrame({"id": [f"row {i}" for i in range(40)]}, dtype=object)
    for y in (np.arange(40) % 4, np.arange(40.0)):
        assert not prepare(BenchmarkTable("t", frame, y), np.arange(30)).any()


def test_preparation_ignores_the_test_rows(mixed):
    train = np.arange(40)
    changed = mixed.X.copy()
    changed.loc[40:, "number"] = 1e9
    changed.loc[40:, "useful"] = "new"
    other = BenchmarkTable("mixed", changed, np.where(np.arange(60) < 40, mixed.y, 0))
    found, expected = prepare(other, train)[train], prepare(mixed, train)[train]
    np.testing.assert_array_equal(found, expected)
    assert np.isfinite(prepare(other, train)).all()


def test_several_classes_are_separated_by_the_codes_of_a_category(mixed):
    train = np.arange(30)
    codes = prepare(mixed, train)[30:, 1]
    assert len(np.unique(codes.round(9))) == 3
    assert all(len(np.unique(codes[mixed.y[30:] == k])) == 1 for k in range(3))
    shown = prepare(mixed, train)[:30, 1]
    assert all(np.ptp(shown[mixed.y[:30] == k]) < 0.1 for k in range(3))


def test_noise_is_a_fifth_of_the_columns_with_permuted_rows(mixed):
    noisy = add_noise(mixed, seed=0)
    (name,) = noisy.X.columns[4:]
    original = noisy.X[name.removeprefix("permuted ")]
    assert sorted(map(str, noisy.X[name])) == sorted(map(str, original))
    assert noisy.X[name].astype(str).tolist() != original.astype(str).tolist()


def test_tables_have_several_kinds(mixed):
    assert mixed.kinds() == ["classes", "few rows", "categories"]
    wide = BenchmarkTable("wide", pd.DataFrame(np.zeros((10, 20))), np.array([0] * 9 + [1]))
    assert wide.kinds() == ["classes", "wide", "few rows"]
    assert BenchmarkTable("r", wide.X, np.zeros(10)).kinds() == ["numeric target"]


def test_parquet_files_and_archives_are_read(tmp_path, mixed):
    frame = mixed.X.assign(target=np.array(["x", "y", "z"])[mixed.y])
    frame.to_parquet(tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert found.y.tolist() == mixed.y.tolist()
    assert found.n_categories == 2
    assert found.facts()["columns"] == 4
    mixed.X.assign(target=np.arange(60)).to_parquet(tmp_path / "w.parquet")
    assert not read_table(tmp_path / "w.parquet").is_classes  # classes are texts
    mixed.X.to_parquet(tmp_path / "u.parquet")
    with pytest.raises(InvalidTable, match="needs the column 'target'"):
        read_table(tmp_path / "u.parquet")
    np.savez(tmp_path / "v.npz", X=np.zeros((3, 2)))
    with pytest.raises(InvalidTable, match="needs the arrays X and y"):
        read_table(tmp_path / "v.npz")


def test_scikit_feature_files_are_downloaded_once(tmp_path, monkeypatch):
    source, cache = tmp_path / "source", tmp_path / "cache"
    source.mkdir()
    savemat(source / "ALLAML.mat", {"X": np.eye(4), "Y": np.array([[1], [2], [1], [2]])})
    monkeypatch.setattr(tables_module, "SCIKIT_FEATURE", source.as_uri() + "/")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(cache))
    for variable in tables_module.FOLDERS:
        monkeypatch.delenv(variable, raising=False)
    assert load_table("allaml").y.tolist() == [0, 1, 0, 1]
    (source / "ALLAML.mat").unlink()
    assert load_table("allaml").X.shape == (4, 4)
    with pytest.raises(InvalidTable, match="could not download Yale"):
        load_table("yale")


def test_openml_tables_keep_categories_and_the_kind_of_target(monkeypatch):
    for variable in tables_module.FOLDERS:
        monkeypatch.delenv(variable, raising=False)
    asked = []

    def fetch(name, **options):
        asked.append((name, options["version"]))
        frame = pd.DataFrame({"c": pd.Categorical(["u", "v", None]), "n": [1, 2, 3]})
        target = pd.Series([3, 4, 5]) if name == "pollution" else pd.Categorical(["p", "q", "p"])
        return Bunch(data=frame, target=pd.Series(target))

    monkeypatch.setattr(tables_module, "fetch_openml", fetch)
    anneal, pollution = load_table("anneal"), load_table("pollution")
    assert asked == [("anneal", 1), ("pollution", 1)]
    assert (anneal.y.tolist(), anneal.n_categories) == ([0, 1, 0], 1)
    assert pollution.y.dtype == np.float64

    def broken(name, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(tables_module, "fetch_openml", broken)
    with pytest.raises(InvalidTable, match=r"could not download anneal .*no route to host"):
        load_table("anneal")


def test_an_unknown_table_is_refused_with_a_suggestion(folder):
    with pytest.raises(InvalidTable, match="Did you mean anneal"):
        load_table("aneal")


def test_tables_are_either_listed_or_omitted():
    assert not set(table_names()) & set(omitted())
    assert load_table("iris").X.shape == (150, 4)  # without folders, too


# methods


@pytest.mark.parametrize("name", [name for name, one in PEERS.items() if one.group != "auto"])
@pytest.mark.parametrize("target", ["classification", "regression"])
@pytest.mark.filterwarnings("ignore")  # other packages warn about small tables
def test_adapters_rank_an_informative_column_first(name, target):
    method = PEERS[name]
    if not is_installed(method) or target not in method.targets or method.group == "slow":
        pytest.skip("not installed, slow, or for another target")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    y = X[:, 3] + 0.1 * rng.normal(size=90)
    y = (y > 0).astype(int) if target == "classification" else y
    found = MethodSelector(method.select, (1, 2, 3, 4, 5), random_state=0).fit(X, y)
    assert [len(step.subset) for step in found.trace_[:5]] in ([1, 2, 3, 4, 5], [6] * 5)
    if method.group != "baseline":
        assert found.trace_[0].subset.tolist() == [3]


def test_selectors_are_methods_with_a_number_of_columns_of_their_own():
    X = np.random.default_rng(0).normal(size=(30, 4))
    found = MethodSelector(SelectKBest(k=2), (1, 3)).fit(X, (X[:, 2] > 0).astype(int))
    assert [len(step.subset) for step in found.trace_] == [1, 3, 2]
    assert MethodSelector.chooses


def test_ties_do_not_favour_the_first_columns():
    def constant(X, y, k, rng):
        return np.arange(X.shape[1])

    X, y = np.random.default_rng(0).normal(size=(20, 50)), np.arange(20) % 2
    orders = [MethodSelector(constant, (1,), random_state=i).fit(X, y).order_ for i in range(20)]
    assert len({int(order[0]) for order in orders}) > 10
    kept = MethodSelector(METHODS["first columns"].select, (1,), random_state=0).fit(X, y)
    assert kept.order_.tolist() == list(range(50))


@pytest.mark.parametrize("answer", [[0, 0], [9], [0.5], [[0, 1]], "text"])
def test_methods_that_do_not_return_columns_are_refused(answer):
    with pytest.raises(InvalidParameter, match="distinct column indices from 0 to 2, best first"):
        MethodSelector(lambda X, y, k, rng: answer, (1,)).fit(np.zeros((4, 3)), np.arange(4))


@pytest.mark.posix
def test_a_selection_that_takes_too_long_is_stopped():
    def endless(X, y, k, rng):
        for _ in count():
            pass

    with pytest.raises(CapReached, match=r"more than 0.05 s"):
        MethodSelector(endless, (1,), cap=0.05).fit(np.zeros((4, 3)), np.arange(4))


# judges


@pytest.mark.parametrize("name", judges_of(np.arange(100)))
@pytest.mark.parametrize("target", ["two classes", "three classes", "number"])
def test_judges_predict_like_the_model_that_they_cache(name, target):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] if target == "number" else np.digitize(X[:, 0], [0, 0.8][: 1 + ("three" in target)])
    judge = CachedJudge(name, 0).fit(X[:60], y[:60])
    expected = JUDGES[name](X[:60], y[:60], 0).predict(X[60:])
    np.testing.assert_array_equal(judge.predict(X[60:]), expected)
    np.testing.assert_array_equal(judge.predict(X[60:]), expected)
    assert (judge.outputs(X[60:])[1] is not None) == (target == "two classes")
    assert np.corrcoef(expected, X[60:, 0])[0, 1] > 0.6


def test_judges_without_columns_predict_one_of_many_classes(folder, quick):
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = np.arange(300) % 30
    np.savez_compressed(folder / "many.npz", X=X, y=y)

    def nothing(X, y, k, rng):
        return SelectFpr(alpha=0.0).fit(X, y)

    (found,) = run({"nothing": Method(nothing, "filter", "x")}, ["many"], folder / "out", splits=1)
    cell = found.cells["error/0/nothing"]
    assert not cell.failure
    assert cell.sizes[-1] == 0


# cells


def test_a_run_continues_after_an_interruption(folder, quick):
    calls = []

    def stops(X, y, k, rng):
        calls.append(len(X))
        if len(calls) == 3:  # the first call is the warm-up
            raise KeyboardInterrupt
        return by_correlation(X, y, k, rng)

    several = {**BOTH, "stops": Method(stops, "model")}
    tables, place = ["first", "second"], folder / "results"
    with pytest.raises(KeyboardInterrupt):
        run(several, tables, place, splits=1)
    done = [load_results(place / f"{name}.json.gz").cells for name in tables]
    assert 0 < sum(map(len, done)) < 18
    run(several, tables, place, splits=1)
    run({**BOTH, "stops": Method(by_correlation, "model")}, tables, folder / "whole", splits=1)
    for name in tables:
        found, whole = (load_results(folder / f / f"{name}.json.gz") for f in ("results", "whole"))
        assert found.cells.keys() == whole.cells.keys()
        for key, cell in found.cells.items():
            other = whole.cells[key]
            assert (cell.scores, cell.values) == (other.scores, other.values), key
    n_calls = len(calls)
    run(several, tables, place, splits=1)
    assert len(calls) == n_calls


def test_cells_have_errors_validity_and_stability(folder, quick):
    several = {
        **BOTH,
        "all columns": METHODS["all columns"],
        "own": Method(SelectKBest(k=1), "model"),
    }
    (found,) = run(several, ["first"], folder / "results", splits=1)
    cells = found.cells
    assert cells["error/0/best"].sizes == [2, 3, 4, 5, 6]
    assert cells["error/0/own"].sizes == [2, 3, 4, 5, 6, 1]
    assert cells["error/0/all columns"].sizes == [7] * 5
    errors = {name: np.mean([row[0] for row in cells[f"error/0/{name}"].scores["linear"]])
              for name in ("best", "random")}  # fmt: skip
    assert errors["best"] <= errors["random"]
    assert cells["noise/0/all columns"].values == [0.0] * 5
    assert cells["noise/0/own"].values[-1] == 1.0
    assert cells["bootstrap/0/own"].values[-1] == 1.0


def test_numeric_targets_are_measured_by_r2(folder, quick):
    (found,) = run(BOTH, ["real"], folder / "results", kinds=["error"], splits=1)
    assert found.cells["error/0/best"].scores["linear"][0][0] > 0.9


def test_methods_for_another_target_are_not_run(folder, quick):
    several = {**BOTH, "mrmr": METHODS["mrmr"], "svr-rfe": METHODS["svr-rfe"]}
    (found,) = run(several, ["first"], folder / "results", kinds=["error"], splits=1)
    assert {key.split("/")[2] for key in found.cells} == {"random", "best", "mrmr"}


def test_a_failure_counts_as_random_selection_and_is_listed(folder, quick):
    several = {**BOTH, "fails": Method(fails, "model")}
    results = run(several, ["first", "second"], folder / "results", kinds=["error"], splits=2)
    for losses in split_losses(results, "error").values():
        assert losses["fails"] == losses["random"]
    reason = "ValueError: this table is not supported"
    assert failures(results) == {("fails", reason): ["first", "second"]}


def test_a_method_that_reaches_the_cap_fails_on_all_splits_until_the_cap_is_raised(folder, quick):
    calls = []

    def slow(X, y, k, rng):
        calls.append(len(X))
        for _ in range(10**9 if len(calls) == 2 else 0):
            pass
        return by_correlation(X, y, k, rng)

    several = {"random": BOTH["random"], "slow": Method(slow, "model")}
    how = {"kinds": ["error"], "splits": 3}
    (found,) = run(several, ["first"], folder / "results", cap=0.2, **how)
    assert len(calls) == 2
    assert all(found.cells[f"error/{i}/slow"].is_capped for i in range(3))
    (found,) = run(several, ["first"], folder / "results", cap=50, **how)
    assert not any(found.cells[f"error/{i}/slow"].failure for i in range(3))


def test_results_of_another_version_of_a_table_are_refused(folder, quick):
    run(BOTH, ["first"], folder / "results", kinds=["error"], splits=1)
    facts = load_table("second").facts()
    with pytest.raises(InvalidStore, match="another version of first"):
        open_results("first", facts, folder / "results")
    (folder / "results" / "first.json.gz").write_bytes(b"damaged")
    with pytest.raises(InvalidStore, match="not a result file"):
        load_results(folder / "results" / "first.json.gz")


def test_short_cells_come_first():
    several = {"random": METHODS["random"], "boruta": METHODS["boruta"]}
    tasks = order_tasks({"large": 10_000, "small": 100}, several)
    assert tasks[0] == ("error", 0, "small", "random")
    assert tasks[-1] == ("noise", 4, "large", "boruta")
    position = {task: i for i, task in enumerate(tasks)}
    assert position["error", 4, "small", "random"] < position["error", 4, "large", "random"]
    assert len(position) == 2 * 2 * 11


def test_splits_are_the_same_for_all_kinds_of_cells(folder):
    table = load_table("first")
    error, noise = (prepare_split(table, kind, 1) for kind in ("error", "noise"))
    np.testing.assert_array_equal(error.train, noise.train)
    assert noise.X.shape[1] == error.X.shape[1] + 2
    assert len(error.train) == 30


# rankings


def stored(name, losses, kinds=("classes",), splits=1):
    """Return results with the given losses of each method in all judges and sizes."""
    facts = {"rows": 9, "columns": 10, "categories": 0, "classes": 2, "kinds": list(kinds)}
    cells = {
        f"error/{i}/{method}": CellResult(1.0, [2, 4, 5, 7, 9], {"linear": [[loss, loss, 1.0]] * 5})
        for method, loss in losses.items()
        for i in range(splits)
    }
    return TableResults(name, facts, Path("nowhere"), cells, {})


def test_the_ranking_has_relative_losses_and_intervals():
    results = [
        stored("a", {"random": 0.4, "good": 0.1, "fair": 0.2}),
        stored("b", {"random": 0.2, "good": 0.1, "fair": 0.1, "rare": 0.0}),
        stored("c", {"random": 0.5, "good": 0.1, "fair": 0.4}),
    ]
    found = rank_kind(results, "classes")
    assert [row.method for row in found.rows] == ["good", "fair", "random"]
    assert [row.rank for row in found.rows] == [7 / 6, 11 / 6, 3]
    assert found.rows[0].loss == pytest.approx((0.25 + 0.5 + 0.2) / 3)
    assert found.rows[1].behind.estimate == pytest.approx((0.25 + 0 + 0.6) / 3)
    assert found.missing == ("rare",)
    assert all(row.is_level for row in found.rows)  # three tables are too few for intervals
    several = [stored(str(i), {"random": 0.4, "good": 0.1, "fair": 0.1 + i / 99}) for i in range(9)]
    assert [row.is_level for row in rank_kind(several, "classes").rows] == [True, False, False]


def test_methods_are_compared_with_the_first_that_selects_columns():
    losses = {"random": 0.4, "all columns": 0.1, "good": 0.2, "fair": 0.3}
    found = rank_kind([stored(str(i), losses) for i in range(6)], "classes")
    assert [row.method for row in found.rows] == ["all columns", "good", "fair", "random"]
    assert [row.is_level for row in found.rows] == [False, True, False, False]
    assert found.rows[0].behind.estimate == pytest.approx(-0.25)
    assert found.rows[1].behind is None


def test_a_ranking_needs_two_complete_tables():
    assert rank_kind([stored("a", {"random": 0.4, "good": 0.1})], "classes") is None
    assert rank_kind([], "wide") is None


def test_only_splits_that_all_ranked_methods_share_are_used():
    whole = stored("a", {"random": 0.4, "good": 0.1}, splits=5)
    part = stored("b", {"random": 0.4, "good": 0.1}, splits=5)
    del part.cells["error/3/good"]
    found = rank_kind([whole, part], "classes")
    assert found.n_splits == 9


# pages and the command


def test_pages_are_written_from_the_results(folder, quick, tmp_path):
    several = {**BOTH, "fails": Method(fails, "model"), "own": Method(SelectKBest(k=1), "model"),
               "all columns": METHODS["all columns"]}  # fmt: skip
    results = run(several, ["first", "second", "real"], folder / "results", splits=1)
    rows, n_tables = habits(results)
    assert n_tables == 3
    assert {row.method for row in rows} == {"random", "best", "all columns", "own"}
    assert [row.method for row in own_sizes(results)] == ["own"]
    write_pages(tmp_path / "pages", folder / "results")
    text = (tmp_path / "pages" / "results.rst").read_text(encoding="utf-8")
    assert "2 tables, 2 splits, by error rate" in text
    assert "nothing follows from this order" in text
    assert "this table is not supported" in text
    assert (tmp_path / "pages" / "pictures" / "time.svg").is_file()
    assert "first" in (tmp_path / "pages" / "tables.rst").read_text(encoding="utf-8")
    titles = re.findall(r"^(.+)\n([=^-]+)$", text, flags=re.MULTILINE)
    assert all(len(title) == len(line) for title, line in titles)


def test_the_first_methods_of_each_kind_are_summarised(tmp_path):
    losses = {"random": 0.5, "all columns": 0.1, "RFE": 0.2, "jmi": 0.25, "mifs": 0.3, "cife": 0.4}
    for i in range(5):
        one = stored(str(i), losses)
        one.folder = tmp_path
        one.facts["hash"] = ""
        one.save()
    write_pages(tmp_path / "pages", tmp_path)
    text = (tmp_path / "pages" / "best.inc").read_text(encoding="utf-8")
    cells = re.findall(r"^   (?:\* -|  -) (.+)$", text, flags=re.MULTILINE)
    assert cells[4:] == ["All tables with classes", "5", "RFE; jmi; mifs", "jmi; mifs; cife"]
    assert text.rstrip().endswith("in which they occur: cife, mifs.")


def test_pages_without_results_state_so(tmp_path):
    write_pages(tmp_path / "pages", tmp_path / "none")
    assert "Not computed yet" in (tmp_path / "pages" / "best.inc").read_text(encoding="utf-8")
    assert "Not computed yet" in (tmp_path / "pages" / "results.rst").read_text(encoding="utf-8")


def test_the_command_runs_methods_of_a_file(folder, quick, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "my_module.py").write_text(
        "import numpy as np\n\ndef mine(X, y, k, rng):\n    return np.arange(X.shape[1])\n",
        encoding="utf-8",
    )
    words = "--methods my_module:mine random --tables first --splits 1 --kinds error --folder out"
    assert main([*words.split(), "--pages", "pages"]) == 0
    assert "mine" in capsys.readouterr().out
    assert set(load_results(folder / "out" / "first.json.gz").cells) == {
        "error/0/mine",
        "error/0/random",
    }
    assert (folder / "pages" / "results.rst").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--methods mrmmr --tables first", "Did you mean mrmr"),
        ("--methods no_module:name --tables first", "cannot be imported"),
        ("--methods random --tables fist", "neither in the folders"),
    ],
)
def test_the_command_refuses_unknown_names(folder, words, message, capsys):
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err


def test_the_command_lists_methods_and_tables(capsys):
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert set(METHODS) <= {line[:30].strip() for line in printed.splitlines()}
    assert "anneal" in printed


@pytest.mark.parametrize("name", ["fisher-score", "mutual-information", "sfs-lda"])
def test_integers_of_many_classes_are_classes_for_recipes(name):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 6)
    X = rng.normal(size=(len(y), 8))
    X[:, 5] += rng.permutation(30)[y]  # only the means of the classes differ
    (first, *_) = METHODS[name].select(X, y, 1, rng)
    assert first == 5
