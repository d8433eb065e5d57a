"""The sdist and the wheel: contents, size, metadata, and use without optional packages.

The module does not import tamis, so that ``nox -s wheel`` can run it where tamis is not installed.
"""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = (ROOT / "src/tamis/_version.py").read_text(encoding="utf-8")
VERSION = re.search(r'__version__ = "(.+)"', SOURCE)[1]
#: Packages that the library must not need.
OPTIONAL = ("altair", "dask", "jinja2", "matplotlib", "pandas", "polars", "pyarrow", "pytest",
            "rich", "tamis_book", "torch", "typer", "vl_convert")  # fmt: skip
FIRST_STEPS = """
import warnings
import tamis, tamis.contract, tamis.plot, tamis.report, tamis.testing
from sklearn.datasets import load_wine
from tamis.criteria import FisherScore

warnings.simplefilter("ignore")
X, y = load_wine(return_X_y=True)
selection = tamis.select(X, y, "mrmr", n_features_to_select=5)
assert selection.transform(X).shape == (178, 5)
assert len(tamis.select(X, y, "Auto(budget=0.5)", random_state=0).columns) > 1
assert set(selection.record_.versions) == {"python", "tamis", "numpy", "scipy", "scikit-learn"}
tamis.testing.check_criterion(FisherScore())
print(tamis.__version__, tamis.__file__)
"""
BLOCKED = f"""
import importlib.metadata, sys

class Blocked:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

def no_distribution(name):
    raise importlib.metadata.PackageNotFoundError(name)

sys.meta_path.insert(0, Blocked)
importlib.metadata.version = importlib.metadata.distribution = no_distribution
sys.path.insert(0, sys.argv[1])
"""


#: Environment variables for a program that must not find the sources.
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(*words, cwd, env=None):
    """Return the output of a command that must succeed."""
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """Build the sdist, and the wheel from the unpacked sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "hatchling", "build", "-d", str(folder))
    run(*build, "-t", "sdist", cwd=ROOT)
    with tarfile.open(folder / f"tamis-{VERSION}.tar.gz") as sdist:
        sdist.extractall(folder, filter="data")
    run(*build, "-t", "wheel", cwd=folder / f"tamis-{VERSION}")
    return folder


@pytest.fixture(scope="session")
def wheel(dist):
    return dist / f"tamis-{VERSION}-py3-none-any.whl"


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    home = ROOT / "src"
    sources = {p.relative_to(home).as_posix() for p in home.rglob("*") if p.is_file()}
    sources = {name for name in sources if not name.endswith((".pyc", ".nbi", ".nbc"))}
    assert {name for name in names if ".dist-info/" not in name} == sources
    needed = {"tamis/py.typed", "tamis/testing/__init__.py", "tamis/report/assets/page.css"}
    assert needed <= names
    assert not [name for name in names if re.search(r"tests?/|experiments|\.toml|\.csv", name)]


def test_the_wheel_and_the_sdist_stay_small(wheel, dist):
    assert wheel.stat().st_size < 1_250_000
    assert (dist / f"tamis-{VERSION}.tar.gz").stat().st_size < 1_000_000


def test_the_sdist_holds_only_what_the_wheel_is_built_from(dist):
    with tarfile.open(dist / f"tamis-{VERSION}.tar.gz") as sdist:
        names = {name.split("/")[1] for name in sdist.getnames()}
    assert names - {".gitignore"} == {
        "CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "hatch_build.py",
        "pyproject.toml", "src",
    }  # fmt: skip


def test_the_metadata_of_the_wheel_is_complete(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"tamis-{VERSION}.dist-info/METADATA").decode()
    found = email.message_from_string(text)
    assert found["Version"] == VERSION
    assert found["Requires-Python"] == ">=3.11"
    classifiers = found.get_all("Classifier")
    assert all(f"Programming Language :: Python :: 3.{n}" in classifiers for n in (11, 12, 13))
    kinds = {line.partition(",")[0] for line in found.get_all("Project-URL")}
    assert kinds == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    needed = [line for line in found.get_all("Requires-Dist") if "extra ==" not in line]
    assert sorted(needed) == sorted(PROJECT["dependencies"])
    assert not [line for line in found.get_all("Requires-Dist") if "<" in line]  # no upper bounds
    extras = set(found.get_all("Provides-Extra"))
    assert extras == {"app", "dask", "gpu", "guests", "torch"}


def test_the_links_of_the_readme_lead_to_the_repository(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"tamis-{VERSION}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)]+)\)", email.message_from_string(text).get_payload())
    source = PROJECT["urls"]["Source"]
    assert f"{source}/raw/main/docs/_static/report.png" in links
    assert f"{source}/blob/main/CONTRIBUTING.md" in links
    assert all(link.startswith("https://") for link in links)


def test_the_unpacked_wheel_works_without_optional_packages_and_without_metadata(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = BLOCKED + FIRST_STEPS
    version, file = run(sys.executable, "-c", code, str(tmp_path), cwd=tmp_path).split()
    assert version == VERSION
    assert Path(file).is_relative_to(tmp_path)


@pytest.mark.slow
def test_the_wheel_works_in_a_fresh_environment(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    scripts = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    python, tamis = str(scripts / "python"), str(scripts / "tamis")
    run(python, "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path, env=CLEAN)
    version, file = run(python, "-c", FIRST_STEPS, cwd=tmp_path, env=CLEAN).split()
    assert version == VERSION
    assert Path(file).is_relative_to(tmp_path)
    done = subprocess.run([tamis, "demo"], cwd=tmp_path, env=CLEAN, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'write pip install "tamis[app]".' in done.stderr
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[app]", cwd=tmp_path, env=CLEAN)
    assert "The report is tamis-demo" in run(tamis, "demo", cwd=tmp_path, env=CLEAN)
    assert list((tmp_path / "tamis-demo").glob("report.html"))
