"""``tamis methods``, ``tamis demo``, the progress bar, and the command as other programs see it."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

import tamis as package
from tamis._parallel import listening
from tamis.cli import main
from tamis.cli.app import app
from tamis.cli.catalogue import list_methods
from tamis.cli.methods import read_index
from tamis.cli.progress import ProgressBar
from tamis.contract import Record
from tamis.criteria import CrossValidated
from tamis.datasets import load
from tamis.recipes import names, recipe
from tamis.report.units import chosen_units
from tamis.search import Exhaustive, Forward, Ranking, Then
from tamis.spec import catalogue, parse
from tamis.table import TableSelector

COMMAND = [sys.executable, "-m", "tamis.cli"]


def shell(*args, **options):
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(
        [*COMMAND, *map(str, args)], capture_output=True, text=True, env=environment, **options
    )


def test_version_and_help(tamis):
    assert tamis("--version").stdout == f"tamis {package.__version__}\n"
    for args in ([], ["--help"], ["-h"]):
        result = tamis(*args)
        assert result.exit_code == 0
        assert all(word in result.stdout for word in ("select", "methods", "demo"))
    shown = tamis("select", "--help").stdout
    assert "--target" in shown
    assert "estimated error and an" in " ".join(shown.split())
    assert not any(line.strip() == "estimated" for line in shown.splitlines())  # broken lines
    assert re.search(r"--dry-run +Describe", shown)  # a flag has no value


@pytest.mark.parametrize("args", [["--help"], ["select", "--help"], ["methods"], ["--version"]])
def test_help_imports_no_slow_packages(args):
    """Modules are counted, because other programs cannot change their number."""
    heavy = {"numpy", "scipy", "sklearn", "joblib", "numba", "pandas", "polars", "tamis.criteria"}
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('loaded', sorted({heavy!r} & set(sys.modules))))\n"
        f"sys.argv = ['tamis', *{args!r}]\n"
        "from tamis.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded []"


def test_a_filter_loads_neither_models_nor_pages(folder):
    code = (
        "import atexit, sys\n"
        "mine = lambda: sorted(name for name in sys.modules if name.startswith('tamis'))\n"
        "atexit.register(lambda: print(*mine()))\n"
        "sys.argv = ['tamis', 'select', 'wine.csv', '-t', 'kind', 'mrmr']\n"
        "from tamis.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert len(loaded) <= 170
    others = {
        "tamis.svm",
        "tamis.response",
        "tamis.auto",
        "tamis.evaluation",
        "tamis.report.charts",
    }
    assert not others & set(loaded)


@pytest.mark.parametrize("options", [["mrmr"], ["mrmr", "--report"], ["--budget", "1s"]], ids=str)
def test_a_small_table_needs_no_compiled_loop(options, tmp_path):
    """numpy finishes before numba is loaded, and compiling takes ten times as long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rows = zip(*X.T.round(3), np.where(X[:, 0] > 0, "yes", "no"), strict=True)
    lines = ["a,b,c,y", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "small.csv").write_text("\n".join(lines) + "\n")
    slow = {"numba", "sklearn.datasets", "scipy.cluster", "altair", "matplotlib", "torch", "dask"}
    code = (
        "import atexit, gc, sys\n"
        f"slow = lambda: sorted({slow!r} & set(sys.modules))\n"
        "atexit.register(lambda: print('loaded', slow(), gc.get_freeze_count() > 0))\n"
        f"sys.argv = ['tamis', 'select', 'small.csv', '-t', 'y', *{options!r}]\n"
        "from tamis.cli import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    # frozen objects are not scanned again when Python exits
    assert done.stdout.splitlines()[-1] == "loaded [] True"


def test_the_index_of_methods_is_up_to_date():
    """When this fails, write it again: python -m tamis.cli.catalogue."""
    assert read_index() == list_methods()


def test_methods_lists_everything(tamis):
    result = tamis("methods")
    assert result.exit_code == 0
    assert result.stderr == ""
    words = result.stdout.split()
    assert set(names()) <= set(words)
    assert all(name in words for group in catalogue().values() for name in group)
    assert ":class:" not in result.stdout


def test_methods_can_be_searched(tamis):
    found = tamis("methods", "floating", "j3").stdout
    assert "sffs-j3" in found
    assert "svm-rfe" not in found
    assert "Guyon" in tamis("methods", "guyon").stdout


@pytest.mark.parametrize("name", names())
def test_one_method_is_shown_with_its_expression(tamis, name):
    result = tamis("methods", name)
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    (expression,) = (told.split("expression ")[1].split(" command ")[0],)
    assert type(parse(expression.replace(" ", ""))) is type(recipe(name))


@pytest.mark.parametrize("name", ["boruta", "mrmr-two-stage", "gated-fsmlp-crc-open"])
def test_recipes_that_choose_the_number_are_shown_without_one(tamis, name):
    shown = tamis("methods", name).stdout
    assert f"tamis select data.csv --target y {name}\n" in shown
    assert "--features" not in shown
    assert "--features 10" in tamis("methods", "mrmr").stdout


def test_one_class_is_shown_with_its_parameters(tamis):
    result = tamis("methods", "Scatter")
    assert "Scatter(measure='J3', ridge=0.0, task='auto')" in result.stdout


def test_methods_that_do_not_exist(refused):
    assert "No method mentions 'svm-rff'. Did you mean svm-rfe" in refused("methods", "svm-rff")


def test_the_demo_prints_and_writes_its_results(tamis, folder):
    result = tamis("demo")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    *_, ranked, page = result.stdout.rstrip().splitlines()
    path = Path(ranked.split()[-1])
    assert path == Path("tamis-demo/ranking.csv")
    assert "Keep 6 of 30 columns" in Path(page.split()[-1]).read_text()
    ranking = pl.read_csv(path)
    assert ranking.height == 30
    assert ranking["kept"].sum() == 6
    assert result.stdout.count(" %") == 2
    assert "--rows" not in result.stdout  # not an option of the demo
    assert tamis("demo", "--folder", "elsewhere/deep").exit_code == 0
    assert (folder / "elsewhere/deep/ranking.csv").exists()


def test_demo_where_it_cannot_write(refused, folder):
    (folder / "taken").write_text("")
    assert "taken" in refused("demo", "--folder", "taken")


@pytest.fixture
def terminal(monkeypatch):
    """Have bars shown on a terminal that nobody reads."""
    with open(os.devnull, "w") as nowhere:
        console = Console(file=nowhere, force_terminal=True)
        monkeypatch.setattr("tamis.cli.progress.stderr", lambda: console)
        yield


def test_the_bar_follows_every_search(terminal):
    X, y, *_ = load("wine")
    shares = []

    class Watching(ProgressBar):
        def on_fit_task_end(self, estimator, context):
            if context.parent is not None:
                _, share, where = estimator.progress()
                assert (share is None) == where.startswith("part")  # of a composed search
                shares.append(share or 0)
            self.looked = 0.0
            return super().on_fit_task_end(estimator, context)

    for name in ("sfs-j3", "sbs-j3", "sffs-j3", "sfbs-j3", "svm-rfe", "fisher-score", "t-test-fdr"):
        shares.clear()
        with Watching() as bar:
            recipe(name, n_features_to_select=4).set_callbacks(bar).fit(X, y)
        assert all(0 <= share <= 1 for share in shares), name
        assert shares[-1] == 1, name


def test_a_long_step_has_a_line_of_its_own(monkeypatch, terminal):
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr("tamis.cli.progress.monotonic", lambda: float(next(clock)))
    shown = []

    class Watching(ProgressBar):
        def count_step(self, done, total):
            super().count_step(done, total)
            shown.extend(task.fields["state"] for task in self.display.tasks)

    X, y, *_ = load("wine")
    search = Forward(CrossValidated(GaussianNB()), n_features_to_select=1)
    bar = Watching()
    search.set_callbacks(bar)
    with listening(bar.count_step):
        search.fit(X[:, :4], y)
    assert {"1 of 4, 20/min", "2 of 4, 20/min"} <= set(shown)
    assert [task.description for task in bar.display.tasks] == ["Forward(CrossValidated)"]
    bar.stop = True  # Ctrl-C that compiled code took for an error of its own
    with pytest.raises(KeyboardInterrupt):
        bar.count_step(1, 2)


def test_long_traces_are_not_read_again_and_again(monkeypatch):
    """A ranking of 20 000 columns has as many steps; how far it is follows from two sizes."""
    X, y, *_ = load("wdbc")
    searches = [recipe(name).fit(X, y) for name in ("fisher-score", "sfs-j3", "svm-rfe")]
    looks = []
    for kind in {type(search.trace_) for search in searches}:
        for name in ("__getitem__", "__iter__"):  # moves are made once, and kept
            real = getattr(kind, name)
            monkeypatch.setattr(kind, name, lambda *args, real=real: looks.append(1) or real(*args))
    for search in searches:
        search.progress()
    assert looks == []
    for search in searches:
        chosen_units(search, [f"x{j}" for j in range(X.shape[1])])
    assert len(looks) <= len(searches)


def test_the_bar_of_genetic_exhaustive_and_branch_and_bound():
    X, y, *_ = load("iris")
    genetic = recipe("ga-knn", n_generations=2, population_size=4).fit(X, y)
    assert genetic.progress()[1:] == (1.0, "generation 2")
    exhaustive = Exhaustive(parse("Scatter()"), n_features_to_select=2).fit(X, y)
    assert exhaustive.progress()[1:] == (1.0, "6 subsets")
    bounded = recipe("branch-and-bound-j3").fit(X, y)
    assert bounded.progress()[1:] == (None, "within 0 of the optimum")
    probes = parse("Probes(Ranking(FisherScore()), n_rounds=3)")
    assert probes.fit(X, y).progress()[1:] == (1.0, "round 3 of 3")
    assert TableSelector(probes).fit(X, y).progress()[1:] == (1.0, "round 3 of 3")


def test_no_bar_is_printed_without_a_terminal(capsys):
    X, y, *_ = load("iris")
    search = Then(Ranking(parse("FisherScore()"), n_features_to_select=3), recipe("sfs-j3"))
    with ProgressBar() as bar:
        search.set_callbacks(bar).fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_a_missing_extra_is_reported_in_one_sentence(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "tamis: the command line needs typer, which is not installed: write "
        'pip install "tamis[app]".\n'
    )


def test_the_command_runs_as_a_process(folder):
    done = shell("select", "wine.csv", "--target", "kind", "sffs-j3", "-k", 2, cwd=folder)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "2 of 6 columns kept; the other 4 were never added." in done.stdout
    assert "\x1b" not in done.stdout


def test_output_is_ascii_on_an_ascii_terminal(folder, frame):
    frame.rename({"alcohol": "größe"}).write_csv("t.csv")
    args = ["select", "t.csv", "-t", "kind", "fisher-score"]
    done = CliRunner(charset="ascii").invoke(app, args)
    assert done.exit_code == 0
    assert done.stdout_bytes.isascii()
    assert b"####" in done.stdout_bytes


def full_disk():
    """Files of this process may not grow beyond a few bytes, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.mark.posix
@pytest.mark.parametrize(
    "option",
    [
        ["--save-record", "r.json"],
        # a process takes seconds to begin; without one they are among the bad inputs
        pytest.param(["-o", "r.csv"], marks=pytest.mark.slow),
        pytest.param(["-o", "r.json"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_the_error_of_a_full_disk_names_the_file(folder, option):
    args = ["select", "wine.csv", "-t", "kind", "fisher-score", *option]
    done = shell(*args, cwd=folder, preexec_fn=full_disk)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert option[1] in done.stderr
    assert "cannot be written" in done.stderr
    assert "File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["wine.csv"]


def test_as_a_process_that_fails(folder):
    done = shell("select", "none.csv", "--target", "kind", cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "tamis: There is no file none.csv. Did you mean wine.csv?\n"


@pytest.mark.posix
def test_control_c_at_a_terminal_keeps_the_record(folder):
    """The bar shows on a terminal; a search without end is stopped and keeps its record."""
    method = "Genetic(Scatter(), n_generations=100000, n_features_to_select=2)"
    args = ["select", "wine.csv", "-t", "kind", method, "-o", "r.csv", "--save-record", "r.json"]
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    running = subprocess.Popen(
        [*COMMAND, *args], cwd=folder, stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    seen = read_until(ours, "generation 1")
    running.send_signal(signal.SIGINT)
    seen += read_until(ours, "--resume")
    out, _ = running.communicate(timeout=60)
    os.close(ours)
    assert "Genetic(Scatter)" in seen
    assert running.returncode == 130, seen[-3000:]
    assert out == b""
    assert "tamis: stopped; " in seen
    assert sorted(p.name for p in folder.iterdir()) == ["r.json", "wine.csv"]
    record = Record.load(folder / "r.json")
    assert not record.finished
    assert len(record.trace) > 1


def read_until(terminal, words, seconds=60):
    """What a process writes to a terminal, up to some words."""
    seen, end = "", time.monotonic() + seconds
    while words not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            try:
                seen += os.read(terminal, 4096).decode(errors="replace")
            except OSError:  # the other side is closed
                break
    return seen
