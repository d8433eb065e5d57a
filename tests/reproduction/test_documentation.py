"""The page on experiments, run as it stands but for fewer realizations."""

import re
import textwrap
from pathlib import Path

from tamis.reproduction import reproduce

PAGE = Path(__file__).parents[2] / "docs" / "experiments.rst"


def blocks(language):
    pattern = rf"\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)"
    return [textwrap.dedent(block) for block in re.findall(pattern, PAGE.read_text())]


def test_the_first_example_runs():
    scope = {}
    exec(blocks("python")[0].replace("Realizations(30", "Realizations(2"), scope)
    assert len(scope["results"].tasks) == 6


def test_the_experiment_file_runs(tmp_path):
    (text,) = blocks("toml")
    path = tmp_path / "page.toml"
    path.write_text(text.replace("10000", "200"))
    found = reproduce(str(path), realizations=1)
    assert not found.missing
    assert {cell.method for cell in found.cells} == {"Fisher", "wrapper"}
