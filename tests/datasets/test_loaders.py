"""Tables from each source, and messages for invalid ones."""

import gzip
import hashlib
import json
import os
import pickle
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn import datasets as bundled
from sklearn.utils import Bunch

from tamis import _memory
from tamis.datasets import Table, load, make_monks, names
from tamis.exceptions import InvalidParameter, InvalidTable

USERS_FOLDER = os.environ.get("TAMIS_DATA")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TAMIS_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("TAMIS_DATA", raising=False)


@pytest.fixture
def archive(folder):
    """Return a function that writes an archive, which is valid by default."""

    def write(name="small", **arrays):
        good = {"X": np.arange(8.0).reshape(4, 2), "y": np.array([0, 1, 1, 0])}
        parts = {key: value for key, value in (good | arrays).items() if value is not None}
        np.savez_compressed(folder / f"{name}.npz", **parts)

    return write


# scikit-learn


@pytest.mark.parametrize(
    ("name", "own", "classes"),
    [
        ("iris", "iris", 3),
        ("wine", "wine", 3),
        ("wdbc", "breast_cancer", 2),
        ("digits", "digits", 10),
        ("diabetes", "diabetes", None),
    ],
)
def test_bundled_sets_are_those_of_scikit_learn(no_folder, name, own, classes):
    expected = getattr(bundled, f"load_{own}")()
    for address in (name, f"sklearn:{own}"):
        table = load(address)
        assert (table.name, table.source, table.extras) == (name, f"sklearn:{own}", {})
        assert_array_equal(table.X, expected.data)
        assert_array_equal(table.y, expected.target)
        assert table.feature_names.tolist() == [str(f) for f in expected.feature_names]
        assert (
            (table.target_names is None) if classes is None else len(table.target_names) == classes
        )


def test_the_type_of_the_target_shows_its_kind(no_folder):
    wine, diabetes = load("wine"), load("diabetes")
    assert (wine.X.dtype, wine.y.dtype, diabetes.y.dtype) == (np.float64, np.int64, np.float64)


def test_loaded_arrays_are_the_callers_own(no_folder):
    load("iris").X[:] = 0
    assert load("iris").X.any()


def test_a_table_can_be_pickled(no_folder):
    table = pickle.loads(pickle.dumps(load("iris")))
    assert isinstance(table, Table)
    assert_array_equal(table.X, load("iris").X)


# The folder


def test_a_file_in_the_folder_can_be_loaded(archive):
    archive(
        X=np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], dtype=np.float32),
        y=np.array([1, 0, 1]),
        feature_names=np.array(["a", "b", "c"]),
        target_names=np.array(["no", "yes"]),
        train_idx=np.array([0, 2]),
    )
    for address in ("small", "folder:small"):
        table = load(address)
        assert (table.name, table.source) == ("small", "folder:small")
        assert_array_equal(table.X, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
        assert (table.X.dtype, table.y.dtype) == (np.float64, np.int64)
        assert table.target_names[table.y].tolist() == ["yes", "no", "yes"]
        assert table.feature_names[np.array([True, False, True])].tolist() == ["a", "c"]
        assert list(table.extras) == ["train_idx"]
        assert_array_equal(table.extras["train_idx"], [0, 2])


def test_repr_is_short(archive):
    archive("classes")
    archive("real", y=np.array([0.5, 1.5, 2.0, 3.0]))
    assert repr(load("real")) == (
        "<Dataset real: 4 samples, 2 features, numeric target, from folder:real>"
    )
    assert "2 classes" in repr(load("classes"))


def test_missing_names_are_generated(archive):
    archive(y=np.array([3, 7, 7, 5]))
    table = load("small")
    assert table.feature_names.tolist() == ["x0", "x1"]
    assert table.y.tolist() == [0, 2, 2, 1]
    assert table.target_names.tolist() == ["3", "5", "7"]


def test_real_target_has_no_classes(archive):
    archive(y=np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32))
    table = load("small")
    assert table.target_names is None
    assert table.y.dtype == np.float64


def test_bundled_sets_come_before_files_of_the_same_name(archive):
    archive("iris")
    assert load("iris").source == "sklearn:iris"
    assert load("folder:iris").X.shape == (4, 2)


def test_breast_cancer_is_never_ambiguous(archive):
    archive("breast_cancer")
    assert load("breast_cancer").source == "folder:breast_cancer"
    assert load("sklearn:breast_cancer").X.shape == (569, 30)


def test_breast_cancer_without_a_folder_points_to_the_bundled_one(no_folder):
    with pytest.raises(InvalidTable, match=r"Did you mean .*sklearn:breast_cancer.*set TAMIS_DATA"):
        load("breast_cancer")


def test_names_include_the_files_of_the_folder(archive, monkeypatch):
    archive("zebra")
    archive("wine")
    assert names() == ["diabetes", "digits", "iris", "wdbc", "wine", "zebra"]
    monkeypatch.delenv("TAMIS_DATA")
    assert names() == ["diabetes", "digits", "iris", "wdbc", "wine"]


def test_every_name_can_be_loaded(archive):
    archive()
    assert [load(name).name for name in names()] == names()


# What is not a table


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": None}, r"the arrays X and y in .*small\.npz; got 'y' without 'X'"),
        ({"y": None}, "got 'X' without 'y'"),
        ({"y": np.arange(3)}, "one target per row .*; got 4 rows of X and 3 of y"),
        ({"X": np.arange(4.0)}, r"a numeric X of 2 dimensions.*got shape \(4,\) of float64"),
        ({"X": np.empty((0, 2)), "y": np.empty(0)}, r"X of 2 dimensions, not empty"),
        ({"X": np.full((4, 2), "a")}, "a numeric X"),
        ({"y": np.array(list("abab"))}, "a numeric y of 1 dimension,"),
        ({"y": np.array([0.0, 1.0, np.nan, np.nan])}, "a target in every row.*got 2 missing"),
        ({"feature_names": np.array(["a"])}, "2 feature_names in .*; got 1"),
        ({"target_names": np.array(["a"])}, "class numbers from 0 to 0"),
        ({"y": np.array([1, 2, 1, 2]), "target_names": np.array(["a", "b"])}, "from 0 to 1"),
    ],
)
def test_archives_that_are_not_tables_are_refused(archive, arrays, sentence):
    archive(**arrays)
    with pytest.raises(InvalidTable, match=f"load needs .*{sentence}"):
        load("small")


def truncated(path):
    np.savez_compressed(path, X=np.zeros((4, 2)), y=np.zeros(4))
    path.write_bytes(path.read_bytes()[:100])


def damaged(path):
    np.savez_compressed(path, X=np.random.default_rng(0).random((99, 9)), y=np.zeros(99))
    content = bytearray(path.read_bytes())
    content[500:600] = bytes(100)
    path.write_bytes(content)


def pickled(path):
    np.savez(path, X=np.array([{}, []], dtype=object), y=np.zeros(2))


def lone(path):
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))


def text(path):
    path.write_text("a,b\n1,2\n")


def empty(path):
    path.touch()


@pytest.mark.parametrize("spoil", [truncated, damaged, pickled, lone, text, empty])
def test_unreadable_files_are_reported(folder, spoil):
    spoil(folder / "small.npz")
    with pytest.raises(InvalidTable, match=r"small\.npz cannot be read.*Write it with np\.savez"):
        load("small")


@pytest.mark.parametrize("name", ["", "irsi", "IRIS", "sklearn:wdbc", "folder:digits", "../small"])
def test_the_message_for_an_unknown_name_lists_all_names(archive, name):
    archive()
    with pytest.raises(InvalidTable) as caught:
        load(name)
    assert f"load cannot find a data set {name!r}." in str(caught.value)
    assert "Available are 'diabetes', 'digits', 'iris', 'small', 'wdbc'" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [("irsi", "iris"), ("IRIS", "iris"), ("sklearn:wdbc", "wdbc"), ("smal", "small")],
)
def test_the_message_for_an_unknown_name_suggests_similar_ones(archive, name, near):
    archive()
    with pytest.raises(InvalidTable, match=f"Did you mean {near}"):
        load(name)


def test_files_outside_the_folder_are_refused(archive, folder, monkeypatch):
    archive()
    (folder / "inner").mkdir()
    monkeypatch.setenv("TAMIS_DATA", str(folder / "inner"))
    with pytest.raises(InvalidTable, match="cannot find a data set"):
        load("folder:../small")


def test_unknown_sources_are_refused():
    with pytest.raises(InvalidTable, match=r"needs a source .*, got .kaggle.*openml:iris"):
        load("kaggle:iris")


@pytest.mark.parametrize("name", [None, 61, b"iris"])
def test_names_must_be_strings(name):
    with pytest.raises(InvalidParameter, match="load needs the name of a data set, got"):
        load(name)


def test_an_environment_variable_that_names_no_folder_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("TAMIS_DATA", str(tmp_path / "absent"))
    assert load("iris").source == "sklearn:iris"
    with pytest.raises(InvalidTable, match=r"TAMIS_DATA needs to name a folder.*absent"):
        load("small")
    with pytest.raises(InvalidTable, match="TAMIS_DATA needs to name a folder"):
        names()


# OpenML


ARFF = """@RELATION weather
@ATTRIBUTE id INTEGER
@ATTRIBUTE sky {sun,cloud,rain}
@ATTRIBUTE warmth REAL
@ATTRIBUTE play {yes,no}
@DATA
1,rain,12.5,no
2,sun,?,yes
3,cloud,20,yes
"""


@pytest.fixture
def cached_weather(tmp_path, monkeypatch):
    """Create the files that scikit-learn caches for data set 77, so that its code runs offline."""

    def feature(name, kind, **marks):
        flags = dict.fromkeys(("is_target", "is_ignore", "is_row_identifier"), "false")
        return {"name": name, "data_type": kind, "number_of_missing_values": "0", **flags, **marks}

    features = [
        feature("id", "numeric", is_row_identifier="true"),
        feature("sky", "nominal"),
        feature("warmth", "numeric"),
        feature("play", "nominal", is_target="true"),
    ]
    for j, entry in enumerate(features):
        entry["index"] = str(j)
    description = {
        "id": "77",
        "name": "weather",
        "version": "1",
        "description": "",
        "format": "ARFF",
        "status": "active",
        "url": "https://www.openml.org/data/v1/download/77/weather.arff",
        "md5_checksum": hashlib.md5(ARFF.encode()).hexdigest(),
    }
    found = {"dataset": [{"did": 77, "version": 1, "status": "active"}]}
    api = "api/v1/json/data"
    pages = {
        f"{api}/list/data_name/weather/limit/2/status/active/": json.dumps({"data": found}),
        f"{api}/list/data_name/weather/limit/2/data_version/1": json.dumps({"data": found}),
        f"{api}/77": json.dumps({"data_set_description": description}),
        f"{api}/features/77": json.dumps({"data_features": {"feature": features}}),
        f"{api}/qualities/77": json.dumps(
            {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "3"}]}}
        ),
        "data/v1/download/77/weather.arff": ARFF,
    }
    for page, content in pages.items():
        path = tmp_path / "openml" / "openml.org" / f"{page}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content.encode()))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))


@pytest.mark.parametrize("address", ["openml:weather", "openml:weather@1", "openml:77"])
def test_openml_through_scikit_learns_own_cache(cached_weather, address):
    table = load(address)
    assert (table.name, table.source) == ("weather", address)
    assert table.feature_names.tolist() == ["sky", "warmth"]
    assert_array_equal(table.X, [[2, 12.5], [0, np.nan], [1, 20]])
    assert table.target_names[table.y].tolist() == ["no", "yes", "yes"]


@pytest.fixture
def answer(monkeypatch):
    """Replace the result of fetch_openml, and record its arguments."""
    asked = []

    def give(**parts):
        def fetch(**arguments):
            asked.append(arguments)
            if isinstance(parts.get("error"), Exception):
                raise parts["error"]
            defaults = {"data": np.ones((3, 2)), "feature_names": ["a", "b"]}
            return Bunch(**(defaults | parts))

        monkeypatch.setattr(bundled, "fetch_openml", fetch)
        return asked

    return give


@pytest.mark.parametrize(
    ("address", "arguments"),
    [
        ("openml:mice", {"name": "mice"}),
        ("openml:mice@2", {"name": "mice", "version": 2}),
        ("openml:mice@active", {"name": "mice", "version": "active"}),
        ("openml:40966", {"data_id": 40966}),
    ],
)
def test_openml_addresses_are_parsed(answer, address, arguments):
    asked = answer(target=np.array([1.5, 2.5, 3.5]))
    table = load(address)
    assert asked == [arguments | {"as_frame": False, "parser": "liac-arff"}]
    assert table.target_names is None
    assert table.y.tolist() == [1.5, 2.5, 3.5]


def test_openml_sparse_data_become_dense(answer):
    answer(data=csr_matrix(np.eye(3)[:, :2]), target=np.array(["u", "v", "u"], dtype=object))
    table = load("openml:sparse")
    assert_array_equal(table.X, np.eye(3)[:, :2])
    assert table.y.tolist() == [0, 1, 0]


@pytest.mark.parametrize("target", [None, np.ones((3, 2))])
def test_openml_needs_one_target(answer, target):
    answer(target=target)
    with pytest.raises(InvalidTable, match="one target column; openml:odd@3 has none or several"):
        load("openml:odd@3")


def test_openml_needs_every_target(answer):
    answer(target=np.array(["u", None, "u"], dtype=object))
    with pytest.raises(InvalidTable, match="a target in every row in openml:odd; got 1 missing"):
        load("openml:odd")


@pytest.mark.parametrize("error", [OSError("no route"), ValueError("no such set")])
def test_openml_failures_are_reported_in_one_sentence(answer, error):
    answer(error=error)
    with pytest.raises(InvalidTable, match=rf"could not fetch 'openml:lost' \({error}\). Check"):
        load("openml:lost")


# The user's own folder, where there is one


def users(name):
    if not USERS_FOLDER:
        pytest.skip("TAMIS_DATA is not set: no folder of benchmark data")
    if name not in names():
        pytest.skip(f"the folder named by TAMIS_DATA has no {name}.npz")
    return load(f"folder:{name}")


@pytest.mark.parametrize("name", ["iris", "wine", "wdbc"])
def test_benchmark_files_agree_with_bundled_sets_of_the_same_name(name):
    table, bundle = users(name), load(name)
    assert bundle.source.startswith("sklearn:")
    assert_array_equal(table.X, bundle.X)
    assert table.target_names[table.y].tolist() == bundle.target_names[bundle.y].tolist()


def test_benchmark_breast_cancer_is_the_ljubljana_one():
    users("breast_cancer")
    table = load("breast_cancer")
    assert table.X.shape == (277, 9)
    assert table.extras["raetsch_train_idx"].shape == (10, 200)


@pytest.mark.parametrize("problem", [1, 2, 3])
def test_benchmark_monks_have_the_rules_of_make_monks(problem):
    extras = users(f"monks{problem}").extras
    X, y, *_ = make_monks(problem=problem, random_state=0)
    rule = dict(zip(map(tuple, X), y, strict=True))
    rows = [tuple(row) for row in extras["X_test"]]
    assert set(rows) == set(rule)
    assert [rule[row] for row in rows] == extras["y_test"].tolist()
    wrong = [rule[tuple(row)] for row in extras["X_train"]] != extras["y_train"]
    assert wrong.sum() == (6 if problem == 3 else 0)


def test_benchmark_madelon_has_the_rank_of_make_madelon():
    table = users("madelon")
    useful = table.X[:, table.extras["relevant_idx"]]
    variances = np.linalg.svd(useful - useful.mean(axis=0), compute_uv=False) ** 2
    assert len(variances) == 20
    assert variances[:5].sum() / variances.sum() > 0.98


def claimed(shape, dtype="<f8", content=b"\0" * 80):
    """Return an array file of a few bytes with any header."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (117 - len(text)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


@pytest.mark.parametrize(
    "array",
    [claimed((10**9, 10**6)), claimed((10**30,)), claimed((4,), dtype="<U99999999")],
    ids=["rows and columns", "beyond any address", "letters"],
)
def test_an_archive_that_is_smaller_than_declared_is_refused(folder, array):
    with ZipFile(folder / "small.npz", "w") as archive:
        archive.writestr("X.npy", array)
        archive.writestr("y.npy", claimed((10,), "<i8"))
    with pytest.raises(
        InvalidTable, match=r"small\.npz cannot be read.*X\.npy claims more numbers"
    ):
        load("small")


def test_an_archive_larger_than_memory_is_refused(folder, monkeypatch):
    """Zeros are compressed by a factor of a thousand. The header states their actual size."""
    np.savez_compressed(folder / "small.npz", X=np.zeros((1000, 100), np.int8), y=np.zeros(1000))
    monkeypatch.setattr(_memory, "free_memory", lambda: 100_000.0)
    with pytest.raises(InvalidTable, match=r"small\.npz holds .*iB of numbers, more than the"):
        load("small")
    monkeypatch.setattr(_memory, "free_memory", lambda: 1_000_000.0)
    assert load("small").X.shape == (1000, 100)
