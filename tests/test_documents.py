"""What the README and CONTRIBUTING promise, run as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_code_in_it_runs(name, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    scope = {"__name__": "document"}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    assert capsys.readouterr().out


def test_the_commands_it_names_exist():
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert {"demo", "test", "bench", "docs"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
