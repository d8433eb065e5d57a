"""Public names: sorted, importable, documented and complete."""

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import tamis
from tamis.exceptions import MissingExtra

PACKAGES = [
    "tamis",
    "tamis.criteria",
    "tamis.search",
    "tamis.choice",
    "tamis.contract",
    "tamis.svm",
    "tamis.response",
    "tamis.neural",
    "tamis.datasets",
    "tamis.table",
    "tamis.auto",
    "tamis.evaluation",
    "tamis.reproduction",
    "tamis.plot",
    "tamis.report",
    "tamis_book",
    "tamis_book.benchmark",
]
PROMISED = {
    "tamis": {"FeatureCosts", "inspect", "read", "recipe", "select"},
    "tamis.criteria": {
        "FisherScore", "DiscriminantRatio", "Correlation", "KolmogorovSmirnov", "PValue",
        "MutualInformation", "Scatter", "Divergence", "CrossValidated", "Importances",
        "Remembered", "Penalised", "Scored", "PosteriorSensitivity", "DensitySensitivity",
        "ScoreSensitivity", "Marginal", "Permutation", "Zero", "Derivative", "Removal",
        "RelativeSVC", "RelativeSVR", "TunedSVC", "TunedSVR", "ColumnSubset", "OutputInformation",
        "CoxScore", "Variance", "Relief", "TunedMLP",
    },
    "tamis.search": {
        "Ranking", "Forward", "Backward", "Bidirectional", "PlusLMinusR", "FloatingForward",
        "FloatingBackward", "Exhaustive", "BranchAndBound", "RecursiveElimination", "Genetic",
        "Then",
    },
    "tamis.choice": {
        "Best", "BestPrefix", "Choice", "Contest", "CostLimit", "FalseDiscovery", "Fraction",
        "Fusion", "HonestSize", "Information", "Knee", "Knockoffs", "OneStandardError", "Patience",
        "Probes", "Size", "StabilitySelection", "Threshold",
    },
    "tamis.contract": {
        "BackwardCriterion", "Choice", "Embedded", "ForwardCriterion", "Record", "Scores", "Search",
        "Selection", "Step", "SubsetCriterion", "Trace",
    },
    "tamis.svm": {
        "LSSVCPathCV", "NewtonSVC", "NewtonSVR", "SVCPath", "SVCPathCV", "SVRPath", "SVRPathCV",
    },
    "tamis.response": {
        "Derivative", "Effect", "Engine", "Marginal", "Model", "Permutation", "Removal", "Zero",
        "effects", "importance", "open_engine",
    },
    "tamis.neural": {"GateSelector", "NetworkClassifier", "PerClass", "UFeSCoR", "gate_path"},
    "tamis.datasets": {
        "make_weston", "make_corral", "make_monks", "make_additive", "make_interactive",
        "make_exponential", "make_xor", "load", "make_mixed", "make_genes", "make_interactions",
    },
    "tamis.table": {"Alert", "Table", "TableEncoder", "TableSelector", "inspect", "read"},
    "tamis.table.parts": {
        "BlockIterator", "ClusterParts", "MemoryMap", "Parquet", "as_parts", "sample",
    },
    "tamis.meta": {
        "ConditionalTest", "Contest", "Fusion", "HonestSize", "InvariantSelection", "Knockoffs",
        "Probes", "StabilitySelection",
    },
    "tamis.blocks": {
        "BlockIterator", "ClusterBlocks", "MemoryMap", "Parquet", "as_blocks", "sample",
    },
    "tamis.auto": {"Auto", "CurvePoint", "HeldOut", "LostError", "Planned"},
    "tamis.evaluation": {"Realizations", "evaluate", "compare", "stability", "hit"},
    "tamis.reproduction": {"reproduce", "read", "names", "titles"},
    "tamis.plot": {
        "classes", "comparison", "conditional_tests", "curve", "environments", "front",
        "interactions", "path", "rank_agreement", "ranking", "redundancy", "stability", "tuning",
    },
    "tamis.report": {
        "ComparisonReport", "MeasuredTable", "Report", "compared", "report", "resampled",
        "write_report",
    },
    "tamis_book": {
        "Cell", "Experiment", "GradientC", "GridC", "Part", "Reproduction", "ReproductionReport",
        "experiments", "names", "published", "read", "reproduce", "reproduced", "titles",
    },
    "tamis_book.benchmark": {"METHODS", "Method", "rank_kind", "run", "stored_results"},
}  # fmt: skip
#: Names of tamis-book that can also be imported from their previous modules.
ALIASES = [
    *(("tamis.svm", name) for name in ("GradientC", "GridC")),
    *(("tamis.report", name) for name in ("ReproductionReport", "reproduced")),
    ("tamis.plot", "published"),
    *(("tamis.reproduction", name) for name in ("Cell", "reproduce", "read", "names", "titles")),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_importable_and_complete(package):
    module = import_module(package)
    classes = [
        name
        for name in module.__all__
        if name not in ("EMPTY", "FITTING", "METHODS", "SURVIVAL", "TASKS")
    ]
    assert classes == sorted(classes)
    assert PROMISED[package] <= set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize(("module", "name"), ALIASES)
def test_names_of_the_book_can_be_imported_from_tamis(module, name, monkeypatch):
    home = import_module(module)
    assert getattr(home, name) is getattr(import_module("tamis_book"), name)
    monkeypatch.setitem(sys.modules, "tamis_book", None)  # as if it was not installed
    with pytest.raises(
        MissingExtra, match=rf"^{name} is in .* Run pip install \./book in the folder"
    ):
        getattr(home, name)


def test_the_version_agrees_with_the_package():
    from importlib.metadata import version

    assert tamis.__version__ == version("tamis")


def run(code):
    """Return the output of a new process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_importing_tamis_imports_nothing_slow():
    heavy = "{'numpy', 'scipy', 'sklearn', 'joblib', 'pandas', 'polars', 'typer', 'rich'}"
    assert run(f"import sys, tamis; print(sorted({heavy} & set(sys.modules)))") == "[]\n"


def test_all_packages_are_available_after_a_plain_import():
    code = """
import tamis
print(len(tamis.recipes.names()) > 40, tamis.spec.parse("Scatter()"))
print(tamis.exceptions.TamisError.__name__, tamis.contract.Record.__name__)
print(type(tamis.recipe("fisher-score")).__name__, tamis.select.__name__, tamis.__version__)
print({"select", "recipe"} <= set(dir(tamis)), hasattr(tamis, "nonsense"))
"""
    first, second, third, fourth = run(code).splitlines()
    assert first == "True Scatter()"
    assert second == "TamisError Record"
    assert third == f"Ranking select {tamis.__version__}"
    assert fourth == "True False"


def test_an_unknown_name_raises_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'tamis' has no attribute 'selct'"):
        tamis.selct  # noqa: B018


def test_class_names_are_unique():
    sources = Path(tamis.__file__).parent.rglob("*.py")
    names = Counter(
        name for path in sources for name in re.findall(r"^class (\w+)", path.read_text(), re.M)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_importing_compiles_and_prints_nothing():
    """A new process imports the package without numba, typer, polars or altair."""
    code = (
        "import sys, tamis, tamis.criteria, tamis.search, tamis.datasets, "
        "tamis.evaluation, tamis.reproduction, tamis.plot, tamis.report, tamis_book; "
        "print(sorted({'numba', 'typer', 'polars', 'altair', 'dask', 'torch'} & set(sys.modules)))"
    )
    assert run(code) == "[]\n"
