"""Facts that several files repeat (versions, addresses), workflows, and the site."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import tamis
from docs.site import add_pages

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXT = {".md", ".rst", ".toml", ".yml", ".yaml", ".cff", ".py", ".bib"}
MADE = {"_build", "gallery", "generated", "book", ".venv", ".nox", ".git", "build", "dist"}
FILES = [
    path
    for path in sorted(ROOT.rglob("*"))
    if path.suffix in TEXT and not MADE & set(path.relative_to(ROOT).parts)
]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("book/pyproject.toml", r'^version = "(.+)"'),
        ("CITATION.cff", r"^version: (.+)"),
        ("recipe/recipe.yaml", r'^  version: "(.+)"'),
        ("docs/index.rst", r"version = \{(.+)\}"),
        ("CHANGELOG.md", r"^## (\S+)"),
    ],
)
def test_every_file_states_the_same_version(name, pattern):
    assert re.search(pattern, read(name), flags=re.MULTILINE)[1] == tamis.__version__


def test_every_file_uses_the_same_address_of_the_repository():
    assert len(FILES) > 500
    home = PROJECT["urls"]["Source"]
    owner = home.split("/")[3]
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        owners = set(re.findall(r"github\.com/([\w-]+)/tamis\b", text))
        owners |= set(re.findall(r"https://([\w-]+)\.github\.io/tamis\b", text))
        assert owners <= {owner}, path


def test_the_conda_recipe_has_the_minimum_versions_of_the_library():
    recipe = read("recipe/recipe.yaml")
    for requirement in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["app"]]:
        assert f"- {requirement.replace('>=', ' >=')}\n" in recipe


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_limit_permissions_and_run_local_commands(path):
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert flow["permissions"] == {}
    steps = [step for job in flow["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40))
        run = step.get("run", "make")
        assert run.startswith(("make", "nox -s", "python -m", "git")), run
    runs = "\n".join(step.get("run", "") for step in steps)
    targets = set(re.findall(r"\bmake ([a-z-]+)", runs))
    named = " ".join(re.findall(r"nox -s ([\w. -]+)", runs)).split()
    sessions = {name.partition("-")[0] for name in named}
    assert all(re.search(rf"^{name}:", read("Makefile"), flags=re.MULTILINE) for name in targets)
    assert all(f"def {name}(" in read("noxfile.py") for name in sessions)


def opens_without_encoding(source):
    """Return the lines that open a text file without an encoding."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and "encoding" not in {word.arg for word in call.keywords}:
            name = ast.unparse(call.func)
            binary = any("b" in str(getattr(word, "value", "")) for word in call.args[1:2])
            if name.endswith((".read_text", ".write_text")) or (name == "open" and not binary):
                yield call.lineno


def test_text_files_are_opened_with_an_encoding():
    """Without one, Windows reads and writes the encoding of the system."""
    assert list(opens_without_encoding("Path(a).read_text()\nopen(a)\nopen(a, 'rb')")) == [1, 2]
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "book" / "src").rglob("*.py")]
    found = {path: [*opens_without_encoding(path.read_text(encoding="utf-8"))] for path in sources}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_site_lists_releases_and_leads_to_the_newest(tmp_path):
    build, site = tmp_path / "build", tmp_path / "site"
    build.mkdir()
    (build / "index.html").write_text("page", encoding="utf-8")
    site.mkdir()
    for ref in ("main", "v0.9.0", "v0.10.0", "v0.10.1"):
        add_pages(build, site, ref)
    versions = json.loads((site / "versions.json").read_text(encoding="utf-8"))
    assert [one["version"] for one in versions] == ["0.10", "0.9", "dev"]
    assert [one["preferred"] for one in versions] == [True, False, False]
    assert 'url=0.10/"' in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "0.10" / "index.html").read_text(encoding="utf-8") == "page"
