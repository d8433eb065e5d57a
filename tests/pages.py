"""Pages of the documentation as programs: what they show is found, and run in its order."""

import doctest
import re
import shlex
import sys
import textwrap
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
#: Pages that are written by hand: ``docs/catalogue.rst``, the gallery and the reference are made.
MADE = ("catalogue.rst", "sg_execution_times.rst")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(
        str(path.relative_to(ROOT))
        for folder in ("docs", "docs/methods")
        for path in (ROOT / folder).iterdir()
        if path.suffix in {".rst", ".md"} and path.name not in MADE
    ),
]
#: Numbers that a reader waits for and a test does not: page, as printed, as run.
SHORTER = {
    "docs/compare.rst": ("Realizations(20", "Realizations(3"),
    "docs/experiments.rst": ("Realizations(30", "Realizations(2"),
}


def code_blocks(name, language):
    """Line and text of every block of a language, in the order of the page."""
    text = (ROOT / name).read_text()
    pattern = rf"^ *\.\. code-block:: {language}\n(?: +:.*\n)*\n((?: +.*(?:\n|\Z)|\n)+)"
    if name.endswith(".md"):
        pattern = rf"^```{language}\n((?s:.*?))^```"
    found = re.finditer(pattern, text, flags=re.MULTILINE)
    return [(text.count("\n", 0, m.start(1)), textwrap.dedent(m.group(1))) for m in found]


def sessions(name):
    """Line and example of every ``>>>`` outside of the blocks of other languages."""
    examples = doctest.DocTestParser().get_examples((ROOT / name).read_text(), name)
    return [(example.lineno, example) for example in examples]


def commands(name):
    """Every ``$ tamis ...`` of a page, as words."""
    lines = [line for _, block in code_blocks(name, "console") for line in block.splitlines()]
    return [
        shlex.split(line.removeprefix("$ tamis "), comments=True)
        for line in lines
        if line.startswith("$ tamis ")
    ]


def run_page(name):
    """Run blocks of Python and sessions in one scope, as a reader would; the scope comes back."""
    # a module of that name, so that the classes of a page can be pickled as those of a program
    sys.modules["document"] = module = ModuleType("document")
    scope = module.__dict__
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    steps = [*code_blocks(name, "python"), *sessions(name)]
    for line, step in sorted(steps, key=lambda found: found[0]):
        if isinstance(step, str):
            source = "\n" * line + step.replace(*SHORTER.get(name, ("", "")))
            exec(compile(source, name, "exec"), scope)
        else:
            test = doctest.DocTest([step], scope, name, name, 0, None)
            said = []
            runner.run(test, out=said.append, clear_globs=False)
            assert not said, "".join(said)
            scope = test.globs
    return scope
