"""What the README, CONTRIBUTING and every page of the documentation show, run as it stands."""

import re
import sys
from types import ModuleType
from unittest.mock import MagicMock

import pytest
from typer.main import get_command

from tamis.cli.app import app
from tests.pages import PAGES, ROOT, commands, run_page


@pytest.fixture
def clusters(monkeypatch):
    """Clusters that are not at hand: this process stands for each. Dask has tests of its own."""
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
@pytest.mark.filterwarnings("ignore::tamis.exceptions.TableAlert")  # which a page speaks of
def test_the_code_in_it_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what a page writes is written there
    run_page(name)


@pytest.mark.parametrize("name", [name for name in PAGES if commands(name)])
def test_the_commands_in_it_are_understood(name):
    """Every command and option exists; what they do is tested with the command line."""
    group = get_command(app)
    context = group.make_context("tamis", ["--version"], resilient_parsing=True)
    for command, *words in commands(name):
        if not command.startswith("-"):
            group.get_command(context, command).make_context(
                command, list(words), resilient_parsing=True
            )


def test_pages_have_no_code_of_which_nobody_knows_the_language():
    """Blocks are of languages that are run or checked, or plain text."""
    for name in PAGES:
        text = (ROOT / name).read_text()
        named = re.findall(r"^```(\w+)$|^ *\.\. code-block:: (\w+)$", text, flags=re.MULTILINE)
        assert {one or other for one, other in named} <= {"python", "console", "toml", "text"}, name


def test_the_commands_it_names_exist():
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert {"demo", "test", "bench", "docs"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_every_formula_can_be_drawn(monkeypatch):
    """Of pages and descriptions; the pages are built elsewhere, and a formula would stop that."""
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from mathml import _mathml

    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / name for name in PAGES)]
    pattern = re.compile(r"^( *)\.\. math::(.*)\n((?:\1 +.*\n|\n)*)", flags=re.MULTILINE)
    found = [match for path in sources for match in pattern.finditer(path.read_text())]
    assert len(found) > 40
    for match in found:
        assert _mathml(match[2] + "\n" + match[3], True).startswith("<math")
