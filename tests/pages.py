"""The code on the pages of the documentation, collected and run in order."""

import doctest
import re
import shlex
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
#: Pages that the build of the documentation writes.
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
#: Libraries that a page may use although the tests do not install them: such blocks are skipped.
OPTIONAL = (
    "autogluon", "boruta", "lightgbm", "mlxtend", "mrmr", "optuna", "skl2onnx", "skops", "tabpfn",
)  # fmt: skip
#: Replacements that save time: page, as printed, as run.
SHORTER = {
    "README.md": ("load_breast_cancer", "load_wine"),
    "docs/index.rst": ("load_breast_cancer", "load_wine"),
    "docs/compare.rst": ("Realizations(20", "Realizations(3"),
    "docs/experiments.rst": ("Realizations(30", "Realizations(2"),
}


def code_blocks(name, language):
    """Return line and text of every block of a language, in the order of the page."""
    text = (ROOT / name).read_text()
    pattern = rf"^( *)\.\. code-block:: {language}\n(?: +:.*\n)*\n((?:\1 +.*(?:\n|\Z)|\n)+)"
    if name.endswith(".md"):
        pattern = rf"^()```{language}\n((?s:.*?))^```"
    found = re.finditer(pattern, text, flags=re.MULTILINE)
    return [(text.count("\n", 0, m.start(2)), textwrap.dedent(m.group(2))) for m in found]


def sessions(name):
    """Return line and example of every ``>>>`` on the page."""
    examples = doctest.DocTestParser().get_examples((ROOT / name).read_text(), name)
    return [(example.lineno, example) for example in examples]


def commands(name):
    """Return the arguments of every ``$ tamis ...`` on the page."""
    lines = [line for _, block in code_blocks(name, "console") for line in block.splitlines()]
    return [
        shlex.split(line.removeprefix("$ tamis "), comments=True)
        for line in lines
        if line.startswith("$ tamis ")
    ]


def is_runnable(source):
    """Whether all optional libraries that a block imports are installed."""
    imported = re.findall(r"^(?:from|import) (\w+)", source, flags=re.MULTILINE)
    return all(find_spec(name) for name in imported if name in OPTIONAL)


def run_page(name):
    """Run all Python blocks and ``>>>`` examples in one scope, and return the scope."""
    # a real module, so that classes defined on a page can be pickled
    sys.modules["document"] = module = ModuleType("document")
    scope = module.__dict__
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    steps = [*code_blocks(name, "python"), *sessions(name)]
    for line, step in sorted(steps, key=lambda found: found[0]):
        if isinstance(step, str) and not is_runnable(step):
            continue
        if isinstance(step, str):
            source = "\n" * line + step.replace(*SHORTER.get(name, ("", "")))
            exec(compile(source, name, "exec"), scope)
        else:
            test = doctest.DocTest([step], scope, name, name, 0, None)
            failures = []
            runner.run(test, out=failures.append, clear_globs=False)
            assert not failures, "".join(failures)
            scope = test.globs
    return scope
