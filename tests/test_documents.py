"""What the README and CONTRIBUTING promise, run as it stands."""

import re
from pathlib import Path

import pytest

from tests.laws import search_laws as laws

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "n_blocks"), [("README.md", 2), ("CONTRIBUTING.md", 4), ("docs/svm.md", 5)]
)
def test_the_code_in_it_runs(name, n_blocks, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    assert len(blocks) == n_blocks
    scope = {"__name__": "document"}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    assert capsys.readouterr().out


def test_what_contributing_adds_obeys_the_laws():
    """Beam search is stopped, resumed, extended and explained like the searches of the tree."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    scope = {"__name__": "document"}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "CONTRIBUTING.md", "exec"), scope)
    for law in (
        laws.the_trace_tells_the_truth,
        laws.the_answer_is_what_was_asked,
        laws.stopped_anywhere_and_resumed_it_ends_the_same,
        laws.a_record_is_extended_to_another_size,
        laws.fitting_twice_gives_the_same,
    ):
        law(scope["BeamSearch"])


def test_the_commands_it_names_exist():
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert {"demo", "test", "bench", "docs"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
