"""No expression reaches a file, a folder, a callable by its path, or joblib's memory.

This is checked for every parameter of every name in the vocabulary: by its annotation, by its
description, and by trial.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tamis.exceptions import InvalidSpec
from tamis.spec import parse, write
from tamis.spec.vocabulary import GUESTS, all_names, find, library_of, parameters_of
from tamis_book import read, reproduce

TRIAL = Path(__file__).with_name("expression_trial.py")

#: Parameters that accept any text, and its meaning.
ANY_TEXT = {
    "constant": "a class",
    "encoding": "a codec of Python's own, for bytes",
    "importance_getter": "an attribute of the estimator, held to by its pattern",
    "metric": "a name of scikit-learn's table of metrics",
    "outlier_label": "a class",
    "pos_label": "a class",
    "refit": "a name of a score",
    "resource": "a parameter of the estimator, or n_samples",
    "scoring": "a name of scikit-learn's table of scorers",
    "separator": "what stands between two names",
    "threshold": "a statistic, such as mean or 1.5*median",
    "token_pattern": "a regular expression",
    "verbose_feature_names_out": "a format of names",
}
#: Parameters whose descriptions mention files or paths, and their meaning.
SPOKEN_OF = {
    "alphas": "the regularization path",
    "analyzer": "rows that are files, which input refuses",
    "cache_size": "megabytes",
    "compute_full_tree": "what memory is for, which is refused",
    "criterion": "a criterion whose values are cached in memory",
    "encoding": "how rows that are files are read, which input refuses",
    "eps": "the length of the regularization path",
    "fit_path": "the regularization path",
    "importance_getter": "an attribute of the estimator, held to by its pattern",
    "max_n_alphas": "points on the regularization path",
    "path_method": "the shortest paths of a graph",
    "refine": "points on the regularization path",
    "solver": "the regularization path",
    "alpha_min_ratio": "the regularization path",
    "n_alphas": "the regularization path",
    # XGBoost's classes repeat a link in the description of every class
    "colsample_bynode": "a link",
    "learning_rate": "a link",
    "objective": "a link",
    "reg_lambda": "a link",
    "subsample": "a link",
}
WAYS = (
    r"\bfiles?\b|filename|folder|director|(?<!search )\bpaths?\b|\bcach|pickle|joblib\.Memory|"
    r"\burl|download"
)


def parameters():
    """Return every name with every parameter."""
    for name in sorted(all_names()):
        for p in parameters_of(find(name)):
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                yield name, p


def is_refused(name, parameter):
    needed = [
        f"{p.name}=None"
        for p in parameters_of(find(name))
        if p.default is p.empty and p.kind is not p.VAR_POSITIONAL and p.name != parameter
    ]
    try:
        parse(f"{name}({', '.join([*needed, f'{parameter}=' + repr('some/where')])})")
    except InvalidSpec as error:
        return "cannot be given in an expression" in str(error)
    return False


def test_parameters_that_are_annotated_as_paths_are_refused():
    """scikit-learn declares the allowed values of a parameter, such as any text or a cache."""
    free = set()
    for name, p in parameters():
        allowed = getattr(find(name), "_parameter_constraints", {}).get(p.name, ())
        caches = any("cache" in getattr(kind, "methods", ()) for kind in allowed)
        annotated = re.search("Path|Memory", str(p.annotation))
        if (str in list(allowed) or caches or annotated) and not is_refused(name, p.name):
            free.add(p.name)
    assert free <= ANY_TEXT.keys()


def test_parameters_that_are_described_as_paths_are_refused():
    spoken_of = set()
    for name, p in parameters():
        text = inspect.getdoc(find(name)) or ""
        section = re.search(rf"^ *{p.name} *:.*?(?=^\w|\Z)", text, re.DOTALL | re.MULTILINE)
        told = section and re.search(WAYS, section[0], re.IGNORECASE)
        if told and not is_refused(name, p.name):
            spoken_of.add(p.name)
    assert spoken_of <= SPOKEN_OF.keys()


def test_no_parameter_opens_a_file_when_fitted(tmp_path):
    """Each parameter gets texts and is fitted, while Python reports all files that are opened."""
    done = subprocess.run(
        [sys.executable, TRIAL], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["sprung"] == []
    assert found["folder"] == []
    assert sum(found["outcomes"].values()) > 4000
    assert found["outcomes"]["fitted"] > 50


REFUSED = [
    'make_pipeline(StandardScaler(), SVC(), memory="cache")',
    'Pipeline([("svc", SVC())], memory="cache")',
    'OPTICS(memory="cache")',
    'FeatureAgglomeration(memory="cache")',
    'GridSearchCV(Pipeline([("a", SVC())]), {"memory": ["cache"]})',
    'GridSearchCV(Pipeline([("a", SVC())]), [{"memory": ("cache",)}])',
    'GridSearchCV(Pipeline([("a", Pipeline([("b", SVC())]))]), {"a__memory": ["cache"]})',
    'GridSearchCV(GridSearchCV(make_pipeline(SVC()), {}), {"param_grid": [{"memory": ["c"]}]})',
    'RandomizedSearchCV(make_pipeline(SVC()), {"memory": ["cache"]})',
    'GridSearchCV(SVC(), {}, pre_dispatch="__import__(1)")',
    'CountVectorizer(input="filename")',
    'TfidfVectorizer(input="file")',
    'RFE(SVC(), importance_getter="__class__.__init__.__globals__")',
    'Importances(SVC(), importance_getter="coef_.__class__")',
]


@pytest.mark.parametrize("text", REFUSED)
def test_known_ways_to_reach_files_are_refused(text):
    with pytest.raises(InvalidSpec, match="cannot be given in an expression"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        'GridSearchCV(SVC(), {"machines": ["a:1"]})',
        'GridSearchCV(SVC(), [{"C": [1]}, {"forcedsplits_filename": [1]}])',
        'RandomizedSearchCV(make_pipeline(SVC()), {"svc__machines": ["a:1"]})',
        'GridSearchCV(GridSearchCV(SVC(), {"C": [1]}), {"param_grid": [{"machines": ["a:1"]}]})',
    ],
)
def test_a_grid_sets_only_parameters_that_its_estimator_has(text):
    with pytest.raises(InvalidSpec, match="is not a parameter of its estimator"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "Forward(CrossValidated(SVC(), n_jobs=100000))",
        "Genetic(Scatter(), n_generations=1000000000000)",
        "RandomForestClassifier(n_estimators=1000000000)",
        "HistGradientBoostingClassifier(max_iter=1000000000)",
        "RepeatedKFold(n_repeats=1000000000)",
        'GridSearchCV(RandomForestClassifier(), {"n_jobs": [1, 100000]})',
        'GridSearchCV(make_pipeline(ExtraTreesClassifier()), {"a__n_estimators": [10000000000]})',
    ],
)
def test_work_without_bound_is_refused(text):
    with pytest.raises(
        InvalidSpec, match=r"needs a number of at most .* in an expression, got 10+"
    ):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "make_pipeline(StandardScaler(), SVC(), memory=None)",
        'GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"standardscaler": ["passthrough"]})',
        'GridSearchCV(SVC(), {"class_weight": [{"yes": 2.0}, None]})',
        'GridSearchCV(GridSearchCV(SVC(), {}), {"estimator__C": [1], "param_grid": [{"C": [2]}]})',
        "CrossValidated(RandomForestClassifier(n_estimators=5000), n_jobs=64)",
        'SVC(class_weight={"memory": 2.0, "input": 1.0})',
        'RFE(make_pipeline(SVC()), importance_getter="named_steps.svc.coef_")',
        'TfidfVectorizer(input="content")',
    ],
)
def test_harmless_texts_are_accepted(text):
    assert parse(text) is not None


GUEST_EXPRESSIONS = {
    "LGBMClassifier(num_leaves=7)": "lightgbm",
    "XGBClassifier(max_depth=3)": "xgboost",
    "XGBRegressor(n_estimators=5)": "xgboost",
    "CatBoostRegressor(iterations=5, allow_writing_files=False)": "catboost",
}
GUESTS_REFUSED = {
    'LGBMClassifier(input_model="m.txt")': "lightgbm",
    'LGBMClassifier(boosting_type="gbdt input_model=m.txt")': "lightgbm",
    'LGBMClassifier(importance_type="split\\nmachine_list_file=m.txt")': "lightgbm",
    'GridSearchCV(LGBMClassifier(), {"boosting_type": ["gbdt input_model=m.txt"]})': "lightgbm",
    'GridSearchCV(LGBMClassifier(), {"forcedsplits_filename": ["m.json"]})': "lightgbm",
    'GridSearchCV(LGBMClassifier(), [{"num_leaves": [3]}, {"num_machines": [2]}])': "lightgbm",
    'RandomizedSearchCV(make_pipeline(LGBMClassifier()), {"lgbmclassifier__machines": ["a:1"]})': (
        "lightgbm"
    ),
    'GridSearchCV(GridSearchCV(SVC(), {"machines": ["a:1"]}), {"estimator": [LGBMClassifier()]})': (
        "lightgbm"
    ),
    'XGBClassifier(model_in="m.bin")': "xgboost",
    'CatBoostClassifier(train_dir="here")': "catboost",
    'CatBoostClassifier(snapshot_file="here")': "catboost",
    "CatBoostClassifier(allow_writing_files=True)": "catboost",
    'GridSearchCV(CatBoostClassifier(), {"allow_writing_files": [True]})': "catboost",
    'CatBoostClassifier(input_borders="here")': "catboost",
}


@pytest.mark.parametrize("text", GUEST_EXPRESSIONS)
def test_estimators_of_other_libraries_are_read_and_written(text):
    pytest.importorskip(GUEST_EXPRESSIONS[text])
    assert write(parse(text)) == text


GUEST_SENTENCES = "cannot be given in an expression|has no parameter|is not a parameter of"


@pytest.mark.parametrize("text", GUESTS_REFUSED)
def test_estimators_of_other_libraries_cannot_reach_files(text):
    pytest.importorskip(GUESTS_REFUSED[text])
    with pytest.raises(InvalidSpec, match=GUEST_SENTENCES):
        parse(text)


def test_a_library_that_is_not_installed_is_reported():
    missing = [n for n, module in GUESTS.items() if find_spec(module.partition(".")[0]) is None]
    for name in missing:
        with pytest.raises(InvalidSpec, match=f"needs {library_of(name)}, which is not installed"):
            parse(f"{name}()")


EXPERIMENT = """
title = "Trap"
source = "Nobody (2020)"
[methods]
{method}
[estimators]
pipe = "make_pipeline(StandardScaler(), SVC())"
{tuning}
[[parts]]
name = "wine"
data = {{ load = "{table}" }}
train = 100
"""


def test_an_experiment_file_cannot_create_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    method = "m = 'make_pipeline(StandardScaler(), SVC(), memory=\"cache\")'"
    (tmp_path / "own.toml").write_text(EXPERIMENT.format(method=method, tuning="", table="wine"))
    found = reproduce("own.toml", realizations=1)
    assert "memory of make_pipeline" in found.missing[0]
    assert sorted(os.listdir(tmp_path)) == ["own.toml"]


def test_the_grid_of_an_experiment_file_cannot_reach_files(tmp_path):
    tuning = '[tuning]\nrule = "each"\nestimator = "pipe"\ngrid = { memory = ["cache"] }'
    text = EXPERIMENT.format(method="m = 'pipe()'", tuning=tuning, table="wine")
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InvalidSpec, match=r"memory of \[tuning\] cannot be given"):
        read(str(tmp_path / "own.toml"))


@pytest.mark.parametrize("table", ["../secret", "/etc/passwd", "folder:../secret", "secret.npz"])
def test_a_table_of_an_experiment_file_cannot_be_a_path(tmp_path, monkeypatch, table):
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.npz").write_bytes(b"")
    monkeypatch.setenv("TAMIS_DATA", str(tmp_path / "data"))
    text = EXPERIMENT.format(method="m = 'pipe()'", tuning="", table=table)
    (tmp_path / "own.toml").write_text(text)
    (sentence,) = reproduce(str(tmp_path / "own.toml"), realizations=1).missing
    assert f"load cannot find a data set '{table}'" in sentence
