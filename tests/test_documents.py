"""Code, commands, links and figures of README, CONTRIBUTING and the documentation pages."""

import re
import sys
import tomllib
from pkgutil import resolve_name
from types import ModuleType
from unittest.mock import MagicMock

import pytest
from sklearn.datasets import load_breast_cancer
from typer.main import get_command

import tamis
from docs.course_pictures import FOLDER, pictures
from tamis.cli.app import app
from tamis_book import names
from tamis_book.benchmark.methods import METHODS
from tamis_book.benchmark.tables import table_names
from tamis_book.files import experiments
from tamis_book.result_files import stored_results
from tests.pages import PAGES, ROOT, code_blocks, commands, run_page

FIGURES = tomllib.loads((ROOT / "docs" / "figures.toml").read_text())


@pytest.fixture
def clusters(monkeypatch):
    """Replace clusters by this process. Dask has its own tests."""
    for module, name in (
        ("dask_jobqueue", "SLURMCluster"),
        ("dask_kubernetes.operator", "KubeCluster"),
    ):
        for part in {module.partition(".")[0], module}:
            monkeypatch.setitem(sys.modules, part, ModuleType(part))
        setattr(sys.modules[module], name, MagicMock())
    monkeypatch.setattr("dask.distributed.Client", lambda cluster: None)
    monkeypatch.setattr("tamis.blocks.ClusterBlocks", lambda source, client: source)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("clusters")
@pytest.mark.filterwarnings("ignore::tamis.exceptions.TableAlert")  # a page shows it
def test_the_code_of_every_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages write files
    run_page(name)


def test_the_first_result_that_pages_show_is_up_to_date():
    """The output on the first pages, and in the picture of the report, is that of Auto."""
    frame = load_breast_cancer(as_frame=True).frame
    result = tamis.select(frame, method="Auto()", target="target", random_state=0)
    lines = result.summary().splitlines()
    for name in ("README.md", "docs/start.rst"):
        blocks = [block for _, block in code_blocks(name, "text")]
        (shown,) = (block for block in blocks if " columns are kept:" in block)
        for line in shown.split("target diagnosis (2 classes)\n")[-1].splitlines():
            start = line.strip().removesuffix("...")
            assert any(found.startswith(start) for found in lines), f"{name}: {line}"
    for name in ("README.md", "docs/index.rst", "docs/start.rst"):
        assert f"{len(result.columns)} of 30 columns selected" in (ROOT / name).read_text(), name


@pytest.mark.parametrize("name", [name for name in PAGES if commands(name)])
def test_the_commands_of_every_page_are_valid(name):
    """Every command and option exists. Their effects are tested with the command line."""
    group = get_command(app)
    context = group.make_context("tamis", ["--version"], resilient_parsing=True)
    for command, *words in commands(name):
        if command == "reproduce" and not words[0].startswith("-"):
            assert words[0] in names() or words[0].endswith(".toml")
        if not command.startswith("-"):
            group.get_command(context, command).make_context(
                command, list(words), resilient_parsing=True
            )


def test_code_blocks_have_a_known_language():
    """Each block is Python, a console session, TOML or plain text."""
    for name in PAGES:
        text = (ROOT / name).read_text()
        named = re.findall(r"^```(\w+)$|^ *\.\. code-block:: (\w+)$", text, flags=re.MULTILINE)
        assert {one or other for one, other in named} <= {"python", "console", "toml", "text"}, name


def test_the_make_targets_that_pages_name_exist():
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert {"demo", "test", "bench", "docs"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def quotes(text, figure):
    """Return whether a text contains a figure, for any line breaks."""
    return figure in " ".join(text.split())


@pytest.mark.parametrize("name", ["speed_lda", "speed_mrmr", "speed_sensitivity"])
def test_readme_quotes_the_stored_figure(name):
    assert quotes((ROOT / "README.md").read_text(), f"{FIGURES[name]} times as fast")


def test_ratios_agree_with_the_table_of_peers():
    table = (ROOT / "docs" / "peers.rst").read_text()
    for name in ("speed_lda", "speed_mrmr", "speed_sensitivity"):
        for ratio in FIGURES[name].split(" to "):
            assert re.search(rf"(?<![\d.]){ratio.replace(' ', ' ?')}(?![\d.])", table), name


def cells(page, row):
    """Return the cells of a row of a table, from its first cell."""
    (line,) = re.findall(rf"^{re.escape(row)}  .*", (ROOT / page).read_text(), flags=re.MULTILINE)
    return re.split(r"  +", line.strip())


def number(text):
    return float(text.replace(" ", "").strip("*"))


#: Rows of peers.rst whose last cell has the ratios of these tasks in benchmarks/ratios.toml.
STORED = {
    "forward, 10 of 30 by 5-fold LDA, 569 rows": ["forward, 10 of 30 by 5-fold LDA, 569 rows"],
    "forward, 10 of 30 by 5-fold 5-NN": ["forward, 10 of 30 by 5-fold 5-NN, 569 rows"],
    **{
        f"mRMR, 50 of 20 000 {shown}, {rows} rows": [
            f"mRMR, 50 of 20000 {kind}, {rows.replace(' ', '')} rows, against mrmr_selection"
        ]
        for shown, kind in (("floats", "floats"), ("(three levels)", "in three levels"))
        for rows in ("100", "2 000")
    },
    **{
        f"30 of 20 000 floats, {rows} rows": [
            f"mRMR, 30 of 20000 floats, {rows.replace(' ', '')} rows, against fastcan"
        ]
        for rows in ("100", "2 000")
    },
    **{
        row: [
            f"{method}, {size}, against fast-select"
            for size in ("500 x 500", "1000 x 200", "200 x 2000")
        ]
        for row, method in (
            ("MultiSURF, 500 x 500; 1 000 x 200; 200 x 2 000", "MultiSURF"),
            ("ReliefF, the same tables", "ReliefF"),
        )
    },
}


@pytest.mark.parametrize("row", STORED)
def test_peers_quote_the_stored_ratios(row):
    rows = tomllib.loads((ROOT / "benchmarks" / "ratios.toml").read_text())["ratio"]
    stored = {one["task"]: one["ratio"] for one in rows}
    shown = [number(text) for text in cells("docs/peers.rst", row)[-1].split(";")]
    # one digit of 0.8 is within 7 %
    assert shown == pytest.approx([stored[task] for task in STORED[row]], rel=0.07)


def test_the_medians_of_paths_are_the_stored_ratios():
    """The page has the time of tamis divided by that of the grid, the file its inverse."""
    rows = tomllib.loads((ROOT / "benchmarks" / "ratios.toml").read_text())["ratio"]
    stored = {one["task"]: one["ratio"] for one in rows}
    text = (ROOT / "docs" / "peers.rst").read_text()
    medians = re.findall(
        r"^(exact|best C).*  (RBF|linear) .*\(median ([\d.]+)\)", text, re.MULTILINE
    )
    assert len(medians) == 4
    for what, kernel, shown in medians:
        task = "path / 18 points" if what == "exact" else "5-fold / 18 points 5-fold"
        prefix = "rbf n<=1300" if kernel == "RBF" else "linear"
        ratio = stored[f"{prefix}: {task}, median of 14 tables"]
        assert float(shown) == pytest.approx(1 / ratio, rel=0.05)


@pytest.mark.parametrize(
    ("peers", "trees", "column"),
    [
        ("random forest, 2 000 x 500: all values of each column", "random forest, 2000 × 500", 2),
        ("LightGBM, 20 000 x 200: all values of each column", "LightGBM, 20000 × 200", 2),
        ("LightGBM, 20 000 x 200", "LightGBM, 20000 × 200", 5),
        ("random forest, 500 x 2 000", "random forest, 500 × 2000", 5),
    ],
)
def test_peers_and_trees_state_the_same_times(peers, trees, column):
    *_, theirs, ours, ratio = cells("docs/peers.rst", peers)
    row = cells("docs/trees.rst", trees)
    assert (theirs, ours) == (row[column].split(",")[0], row[4])
    assert number(ratio) == pytest.approx(float(theirs) / float(ours), rel=0.03)


def test_the_figures_that_pages_quote_agree_with_the_stored_ones():
    texts = [(ROOT / name).read_text() for name in PAGES if name.endswith(".rst")]
    quoted = {name for text in texts for name in re.findall(r"\|([a-z]+_\w+)\|", text)}
    assert quoted == set(FIGURES)


def test_the_size_of_the_benchmark_agrees_with_its_lists():
    methods, tables = FIGURES["field_methods"], FIGURES["field_tables"]
    assert (int(methods), int(tables)) == (len(METHODS), len(table_names()))
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert quotes(
        changes, f"{methods} methods of tamis and other packages on {tables} public tables"
    )


def cells_of(*wanted):
    """Return the stored cells of experiments, by part, method and size."""
    stored = [stored_results(one) for one in experiments() if one.name in wanted]
    return {(c.part, c.method, c.size): c for one in stored for c in one.found.cells}


def test_the_page_about_auto_has_the_stored_stabilities():
    text = (ROOT / "docs" / "auto_evidence.rst").read_text()
    found = cells_of("stability-1")
    for (part, _, size), _ in found.items():
        row = [found[part, method, size] for method in ("mRMR", "JMI", "FSPP2-RFE")]
        shown = [f"{cell.ours:.2f} [{cell.low:.2f}, {cell.high:.2f}]" for cell in row]
        assert [part, str(size), *shown] in [re.split(r"  +", line) for line in text.splitlines()]
        assert f"on {row[0].n_realizations} random samples" in text


def test_the_page_about_auto_has_the_stored_errors():
    """The regression tables have SVR in place of SVM, and 5 columns in place of 10 or 20."""
    found = cells_of("auto-1", "auto-2")
    text = (ROOT / "docs" / "auto_evidence.rst").read_text().split("Compared with fixed")[1]
    for part in {part for part, *_ in found}:
        svm, k, most = ("SVM", 10, 20) if (part, "all: SVM", None) in found else ("SVR", 5, 5)
        methods = f"AUTO;all: ridge;all: {svm};all: trees;mRMR {k}, {svm};JMI {most}, {svm};"
        methods += f"forest-rfe {k}, trees;RFECV;Boruta, trees"
        shown = re.search(rf"^{part} +(.*)", text, flags=re.MULTILINE)[1].split()
        for method, error in zip(methods.split(";"), shown, strict=True):
            if error != "\\":
                assert float(error) == pytest.approx(found[part, method, None].ours, abs=0.06)


@pytest.mark.slow
def test_the_counts_of_the_book_agree_with_its_results():
    pages = pytest.importorskip("book.pages")
    total = pages.total_tally(map(stored_results, experiments()))
    compared = total["="] + total["+"] + total["-"]
    wins = {word: total[word] for word in ("kept", "lost", "reversed")}
    found = {
        "compared": compared,
        "agree": total["="],
        "share": round(100 * total["="] / compared),
        "placebo": round(100 * total["placebos ="] / total["placebos"]),
        "lower": total["+"],
        "higher": total["-"],
        "wins": sum(wins.values()),
        **wins,
    }
    assert {name: int(FIGURES[f"book_{name}"].replace(" ", "")) for name in found} == found


def test_every_formula_can_be_rendered(monkeypatch):
    """A formula that cannot be rendered would stop `make docs`, which the tests do not run."""
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from mathml import _mathml

    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / name for name in PAGES)]
    pattern = re.compile(r"^( *)\.\. math::(.*)\n((?:\1 +.*\n|\n)*)", flags=re.MULTILINE)
    found = [match for path in sources for match in pattern.finditer(path.read_text())]
    assert len(found) > 40
    for match in found:
        assert _mathml(match[2] + "\n" + match[3], True).startswith("<math")


def test_every_object_and_experiment_that_a_page_links_to_exists():
    for name in PAGES:
        text = (ROOT / name).read_text()
        for path in re.findall(r":(?:class|func|meth|mod):`~?([\w.]+)`", text):
            assert resolve_name(path) is not None, f"{path} in {name}"
        linked = set(re.findall(r":doc:`[^`]*<book/([\w.-]+)>`", text))
        assert linked <= set(names()) | {"index"}, name


def test_the_pictures_of_the_course_show_what_the_searches_do():
    for name, svg in pictures():
        assert (FOLDER / f"{name}.svg").read_text(encoding="utf8") == svg, name
