"""Find retired words in the project's prose: ``python -m docs.prose [--count] [path ...]``.

Prose is the text of the pages outside code blocks, and the docstrings, comments and messages of the
Python sources. Each hit is printed with the word to use instead. ``--count`` prints totals only.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
PLACES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "GOVERNANCE.md",
    "SECURITY.md",
    "SUPPORT.md",
    "benchmarks",
    "book",
    "docs",
    "examples",
    "fuzz",
    "paper",
    "src",
)
TEXT = {".md", ".rst", ".j2", ".jinja", ".html"}
#: Folders and pages that are made from other sources.
MADE = {"_build", "gallery", "generated", "__pycache__", "build", "dist"}
CATALOGUE = ("docs", "catalogue.rst")

#: Pattern of a retired word, and what to write instead.
RETIRED = {
    r"anew": "again, from scratch",
    r"beside": "next to, compared with",
    r"told|tells?|telling": "report, return, print; informative",
    r"spoken|speaks?|speaking": "report, return, print",
    r"says?|said|saying": "report, return, print, state",
    r"so many(?! \w+ that)|so often|as often as": "number of, count",
    r"(?:took|takes?|taking) no part|(?:took|takes) part": "held-out rows",
    r"rows (?:it has|they have) not seen|rows left out|unseen rows": "held-out rows",
    r"a guess|guess without": "baseline",
    r"flatter\w*": "is optimistic",
    r"(?<!there )is no(?! longer| more| need)": "is not a",
    r"walks?|walked": "search path, step",
    r"(?<!duality )(?<!optimality )(?<!certified )gaps?": "missing value",
    r"likeness": "similarity",
    r"elsewhere": "on another device",
    r"whatever it likes|who asks|what else there is|at the door": "(rephrase)",
    r"dear": "expensive",
    r"deal[st]?|dealt": "split, draw",
    r"(?<!vector )(?<!virtual )(?<!one )(?<!two )(?<!several )(?<!many )(?<!this )(?<!that )"
    r"(?<!other )(?<!another )(?<!each )(?<!quiet )(?<!fresh )machines?(?! learning| code|-)":
        "SVM, model (a computer is 'this machine', 'several machines')",
    r"tell classes apart|told apart": "separate classes",
    r"in words": "as text",
    r"at home in": "works with, suited to",
    r"goes on|go on": "continue",
    r"learners?": "model, classifier, regressor",
    r"folds? agrees?": "stability across folds",
    r"(?:of|among|its) equals": "ties",
    r"rounds of (?:resampling|cross-validation)": "resamples, repeats",
    r"thrice|whence|thereof|hitherto|whereof": "(rephrase)",
}  # fmt: skip
FOUND = [
    (re.compile(rf"(?i)(?<![\w`./-])(?:{word})(?![\w`(=-])"), use) for word, use in RETIRED.items()
]


def prose_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and text of comments, docstrings and messages, without code examples."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for number, line in enumerate(node.value.split("\n"), node.lineno):
                if not line.lstrip().startswith((">>>", "...")):
                    yield number, line


def prose_of_page(source: str) -> Iterator[tuple[int, str]]:
    """Yield numbers and text of the lines outside code blocks."""
    fence, indent = False, None
    for number, line in enumerate(source.split("\n"), 1):
        margin = len(line) - len(line.lstrip())
        if line.startswith("```"):
            fence = not fence
        elif indent is not None and (not line.strip() or margin > indent):
            continue
        elif re.match(r"\s*\.\. (code-block|math)::", line):
            indent = margin
        else:
            indent = None
            if not fence:
                yield number, line


def hits(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line number, retired word and replacement for every hit in a file."""
    source = path.read_text(encoding="utf8")
    lines = prose_of_python(source) if path.suffix == ".py" else prose_of_page(source)
    for number, line in sorted(set(lines)):  # without names of parameters and code
        shown = re.sub(r"^\s*[\w, ]+ : |`+[^`]*`+|\{[^}]*\}", "", line)
        for word, use in FOUND:
            for match in word.finditer(shown):
                yield number, match.group(0), use


def files(places: list[str]) -> Iterator[Path]:
    """Yield the pages and Python sources in the places, without generated ones."""
    for place in places:
        path = ROOT / place
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            inside = one.relative_to(ROOT)
            made = MADE & set(inside.parts) or inside.parts[:2] in (("docs", "book"), CATALOGUE)
            if one.is_file() and not made and one.suffix in TEXT | {".py"} and one != HERE:
                yield one


def main(arguments: list[str]) -> int:
    """Print the hits and return 1 if there are any."""
    places = [one for one in arguments if not one.startswith("-")] or list(PLACES)
    counts: Counter[str] = Counter()
    for path in files(places):
        for number, word, use in hits(path):
            counts[word.lower()] += 1
            if "--count" not in arguments:
                print(f"{path.relative_to(ROOT)}:{number}: {word!r}: write {use}")
    print(
        f"{counts.total()} retired words", *(f"{w} {n}" for w, n in counts.most_common()), sep="; "
    )
    return int(bool(counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
