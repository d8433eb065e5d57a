"""Sources of row blocks: Parquet, memory maps, iterators."""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

import tamis
from tamis.blocks import BlockIterator, MemoryMap, Parquet, as_blocks, dispatch, local, sample
from tamis.criteria import MRMR, FisherScore, Scatter
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget
from tamis.search import Forward, Ranking


def made(n=500, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 2] + X[:, 4] > 0, "yes", "no")


def written(path, X, y, *, rows=40, **options):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=rows, **options)
    return str(path)


@pytest.fixture
def folder(tmp_path):
    X, y = made()
    for number, start in enumerate((0, 170, 171, 171, 400)):
        stop = (0, 170, 171, 171, 400, 500)[number + 1]
        written(tmp_path / f"part-{number}.parquet", X[start:stop], y[start:stop])
    return tmp_path


def test_the_files_of_a_folder_form_one_table(folder):
    X, y = made()
    search = Forward(Scatter("J3"), n_features_to_select=3)
    found = search.fit(str(folder), target="y")
    assert found.columns == ["x2", "x4", "x3"] or len(found.columns) == 3
    assert_array_equal(
        found.order_, Forward(Scatter("J3"), n_features_to_select=3).fit(X, y).order_
    )
    assert found.record_.n_samples == 500
    assert list(found.record_.feature_names) == [f"x{j}" for j in range(5)]


def test_a_source_can_be_given_in_place_of_a_path(folder):
    by_path = Ranking(FisherScore()).fit(folder, target="y")
    by_source = Ranking(FisherScore()).fit(Parquet(folder, target="y"))
    later = Ranking(FisherScore()).fit(Parquet(folder), target="y")
    assert_array_equal(by_path.scores_, by_source.scores_)
    assert_array_equal(by_path.scores_, later.scores_)
    assert by_path.record_.data == later.record_.data


def test_select_accepts_a_path(folder):
    found = tamis.select(str(folder), target="y", method="mrmr", n_features_to_select=2)
    assert sorted(found.columns) == ["x2", "x4"]


def test_only_the_given_columns_are_candidates(folder):
    found = Ranking(FisherScore(), n_features_to_select=1).fit(
        Parquet(folder, target="y", columns=["x4", "x1"])
    )
    assert found.columns == ["x4"]


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint16, bool])
def test_narrow_types_are_not_widened(tmp_path, kind):
    X, y = made()
    X = (np.round(X * 5) + 20).astype(kind)
    (block, *_) = Parquet(written(tmp_path / "a.parquet", X, y), target="y").blocks()
    assert block.X.itemsize == np.dtype(kind).itemsize
    assert_array_equal(block.X, X[:40])


def test_missing_integers_become_nan(tmp_path):
    frame = pl.DataFrame({"a": [1, None, 3], "b": [1.0, 2.0, 3.0], "y": [0, 1, 1]})
    frame.write_parquet(tmp_path / "a.parquet")
    (block,) = Parquet(tmp_path / "a.parquet", target="y").blocks()
    assert_array_equal(block.X[:, 0], [1.0, np.nan, 3.0])


def test_large_row_groups_are_read_in_batches(tmp_path, monkeypatch):
    X, y = made()
    monkeypatch.setattr("tamis.blocks.parquet.BLOCK_NUMBERS", 6 * 70)
    source = Parquet(written(tmp_path / "a.parquet", X, y, rows=400), target="y")
    blocks = list(source.blocks())
    assert max(len(block.y) for block in blocks) == 100  # 400 rows in blocks of 70
    assert [block.start for block in blocks] == [*list(range(0, 400, 70)), 400]
    assert_array_equal(np.concatenate([block.X for block in blocks]), X)


def test_a_memory_map_is_a_source(tmp_path):
    X, y = made()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    search = Ranking(FisherScore(), n_features_to_select=2)
    found = search.fit(tmp_path / "X.npy", str(tmp_path / "y.npy"))
    assert found.columns == [2, 4]
    assert_array_equal(Ranking(FisherScore()).fit(tmp_path / "X.npy", y).order_, found.order_)


def test_a_sample_does_not_depend_on_the_blocks(folder):
    X, y = made()
    frame, answers = sample(folder, n_rows=50, target="y")
    other, same = sample(MemoryMap(X, y, block_rows=7), n_rows=50)
    assert_array_equal(frame.to_numpy(), other)
    assert_array_equal(answers, same)
    assert frame.columns == [f"x{j}" for j in range(5)]
    assert len(sample(folder, target="y")[1]) == 500


# -- errors ------------------------------------------------------------------------------------


def test_sums_do_not_depend_on_the_number_of_threads(folder, monkeypatch):
    found = []
    for n_threads in (1, 3):
        monkeypatch.setattr(local, "own_threads", lambda n_threads=n_threads: n_threads)
        found.append(Forward(Scatter("J3")).fit(folder, target="y").scores_)
    assert_array_equal(*found)


def test_the_automatic_selection_uses_a_sample_of_rows(folder, monkeypatch):
    whole = tamis.select(folder, target="y", random_state=0)
    assert "rows" not in [step.name for step in whole.plan_]
    monkeypatch.setattr(dispatch, "SAMPLE", 150)
    found = tamis.select(str(folder), target="y", random_state=3)
    assert found.plan_[0][:2] == ("rows", True)
    assert found.plan_[0].reason.startswith("150 of ")
    assert found.plan_[0].reason.endswith("drawn at random with seed 3")
    assert found.record_.n_samples == found.n_rows_ == 150
    X, y = sample(folder, n_rows=150, random_state=3, target="y")
    assert_array_equal(tamis.select(X, y, random_state=3).columns, found.columns)
    blocks = MemoryMap(X.to_numpy(), y, block_rows=40)
    monkeypatch.setattr(dispatch, "SAMPLE", 100)
    assert tamis.select(blocks, random_state=3).plan_[0].reason.startswith("100 of 150 rows")


def test_sampled_rows_keep_their_types(tmp_path):
    table = pa.table({"a": ["u", None, "v"] * 40, "b": range(120), "y": [0, 1, 1] * 40})
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=50)
    rows = np.array([0, 49, 50, 119])
    assert Parquet(tmp_path).rows(rows).to_pydict() == table.take(rows).to_pydict()


def test_a_different_schema_is_reported_with_file_and_column(folder):
    X, y = made(20)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "x4": y, "y": y})
    pq.write_table(table, folder / "part-7.parquet")
    with pytest.raises(InvalidTable, match=r"part-7\.parquet has text as column 'x4'.* numbers"):
        Ranking(FisherScore()).fit(folder, target="y")


def test_a_missing_column_is_reported_with_its_file(folder):
    X, y = made(20)
    written(folder / "part-7.parquet", X[:, :4], y)
    with pytest.raises(InvalidTable, match=r"part-7\.parquet has nothing as column 'x4'"):
        Ranking(FisherScore()).fit(folder, target="y")


def test_a_damaged_file_is_reported_with_row_group_and_column(folder):
    path = folder / "part-4.parquet"
    column = pq.ParquetFile(path).metadata.row_group(1).column(3)
    content = bytearray(path.read_bytes())
    first = column.dictionary_page_offset or column.data_page_offset
    content[first : first + 40] = b"\xff" * 40
    path.write_bytes(bytes(content))
    with pytest.raises(InvalidTable, match=r"row group 1 of .*part-4\.parquet .*column 'x3'"):
        Ranking(FisherScore()).fit(folder, target="y")


def test_a_file_that_is_not_parquet_is_refused(folder):
    (folder / "part-9.parquet").write_bytes(b"no such thing")
    with pytest.raises(InvalidTable, match=r"part-9\.parquet is not a Parquet file"):
        Ranking(FisherScore()).fit(folder, target="y")


def test_nan_is_reported_with_file_row_group_and_column(folder):
    X, y = made(80)
    X[61, 3] = np.nan
    written(folder / "part-7.parquet", X, y)
    with pytest.raises(InvalidTable, match=r"'x3' has missing.*row group 1 of .*part-7.*row 561 "):
        Ranking(FisherScore()).fit(folder, target="y")


def test_invalid_requests_are_refused(folder, tmp_path):
    search = Ranking(FisherScore())
    for problem, fit in {
        "Which column of .* is the target": lambda: search.fit(folder),
        "no column 'yy'.* Did you mean y": lambda: search.fit(folder, target="yy"),
        "There is no file": lambda: search.fit("nowhere.parquet", target="y"),
        "without .*parquet files": lambda: search.fit(_made_empty(tmp_path), target="y"),
        "target='name' in place of y": lambda: search.fit(folder, made()[1]),
        "hold text": lambda: search.fit(folder, target="x0"),
        "only if X is a path or row blocks": lambda: search.fit(*made(), target="y"),
        "Leave target out": lambda: search.fit(MemoryMap(*made()), target="y"),
        "the target must be passed separately": lambda: search.fit("X.npy"),
        "needs rows and columns": lambda: MemoryMap(np.arange(3), np.arange(3)),
        "One value for each row|one value for each row": lambda: MemoryMap(np.eye(3), np.arange(2)),
        "pairs": lambda: BlockIterator(lambda: [(1, 2)]),
        "not ndarray": lambda: as_blocks(np.eye(3)),
    }.items():
        with pytest.raises((InvalidTable, InvalidTarget, InvalidParameter), match=problem):
            fit()


@pytest.mark.parametrize("kind", ["<f2", ">f8", ">i4", "g", "?"])
def test_numbers_of_any_type_are_accepted(kind):
    X, y = made()
    X = np.round(X, 1).astype(kind)
    held = Forward(MRMR(n_bins=4), n_features_to_select=2).fit(X.astype(float), y)
    for source in (MemoryMap(X, y, block_rows=90), BlockIterator(lambda: [(X, y)])):
        found = Forward(MRMR(n_bins=4), n_features_to_select=2).fit(source)
        assert_array_equal(found.order_, held.order_)


def test_half_precision_is_read_from_parquet(tmp_path):
    X, y = made()
    source = written(tmp_path / "half.parquet", X.astype(np.float16), y)
    found = Forward(MRMR(n_bins=4), n_features_to_select=2).fit(source, target="y")
    assert set(found.columns) == {"x2", "x4"}


def test_duplicate_names_are_refused(tmp_path):
    X, y = made()
    pq.write_table(pa.table([X[:, 0], X[:, 1], y], names=["a", "a", "y"]), tmp_path / "a.parquet")
    with pytest.raises(InvalidTable, match="more than one column named 'a'"):
        Parquet(tmp_path, target="y")


def test_temporary_files_of_other_programs_are_ignored(folder):
    expected = Parquet(folder, target="y").identity()
    for name in ("._part-0.parquet", ".work/part.parquet", "_temporary/0/part.parquet"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"half a file")
    assert Parquet(folder, target="y").identity() == expected


def test_infinity_in_the_target_is_reported_with_its_row(tmp_path):
    X, _ = made()
    y = np.where(np.arange(500) == 431, np.inf, X[:, 1])
    source = written(tmp_path / "far.parquet", X, y)
    with pytest.raises(InvalidTarget, match=r"row group 10 of .*infinity in row 431"):
        Ranking(FisherScore()).fit(source, target="y")


def test_a_file_that_is_rewritten_between_passes_is_refused(tmp_path):
    X, y = made()
    where = written(tmp_path / "a.parquet", X, y)
    source = Parquet(where, target="y")
    written(tmp_path / "a.parquet", X[:300], y[:300])
    with pytest.raises(InvalidTable, match="has changed since it was opened"):
        Ranking(FisherScore()).fit(source)


@pytest.mark.parametrize("criterion", [FisherScore(), MRMR(n_bins=4)])
def test_rows_that_change_between_passes_are_refused(criterion):
    X, y = made()
    passes = []

    def shorter():
        passes.append(0)
        yield X[: 500 - len(passes)], y[: 500 - len(passes)]

    with pytest.raises(InvalidTable, match="Give the same rows in every pass"):
        Ranking(criterion).fit(BlockIterator(shorter))

    def relabelled():
        passes.append(0)
        yield X, np.where(y == "no", f"no {len(passes)}", y)

    with pytest.raises(InvalidTarget, match="Give the same rows in every pass"):
        Ranking(criterion).fit(BlockIterator(relabelled))


def test_weights_are_refused_for_row_blocks(folder):
    with pytest.raises(InvalidParameter, match="takes no sample_weight with row blocks"):
        Ranking(FisherScore()).fit(folder, target="y", sample_weight=np.ones(500))
    Ranking(FisherScore()).fit(folder, target="y", sample_weight=None)


@pytest.mark.parametrize("method", [None, "mrmr"])
def test_select_refuses_weights_for_row_blocks(folder, method):
    with pytest.raises(InvalidParameter, match="sample_weight"):
        tamis.select(folder, target="y", method=method, sample_weight=np.ones(3))


def test_methods_that_need_the_full_table_refuse_row_blocks(folder):
    source = Parquet(folder, target="y")
    search = Forward(FisherScore(), n_features_to_select=2).fit(source)
    for work in (search.transform, search.fit_transform, search.substitutes, search.report):
        with pytest.raises(InvalidParameter, match="needs a table in memory"):
            work(source)


def test_sources_that_cannot_work_are_refused():
    X, y = made()
    for names in (["a"], list("aabcd")):
        with pytest.raises(InvalidParameter, match="a unique name for each of 5 columns"):
            MemoryMap(X, y, names=names)
        with pytest.raises(InvalidParameter, match="a unique name for each of 5 columns"):
            BlockIterator(lambda: [(X, y)], names=names)
    with pytest.raises(InvalidTable, match="needs columns to choose among"):
        MemoryMap(X[:, :0], y)
    with pytest.raises(InvalidParameter, match="block_rows to be an int of at least 1"):
        MemoryMap(X, y, block_rows=-1)
    for factory in ([(X, y)], lambda: [(X, y, 1)], lambda: [X]):
        with pytest.raises(InvalidTable, match="needs a function that yields pairs"):
            BlockIterator(factory)
    with pytest.raises(InvalidParameter, match="sample needs n_rows to be an int of at least 1"):
        sample(MemoryMap(X, y), n_rows=0)


def test_blocks_that_differ_are_reported_with_their_number():
    blocks = [(np.eye(3), np.arange(3)), (np.eye(4), np.arange(4))]
    with pytest.raises(InvalidTable, match=r"block 1 of the iterator needs rows and 3 columns"):
        Ranking(FisherScore()).fit(BlockIterator(lambda: blocks))
    blocks = [(np.eye(3), np.arange(3)), (np.eye(3), np.arange(4))]
    with pytest.raises(InvalidTarget, match=r"block 1 of the iterator has 3 rows"):
        Ranking(FisherScore()).fit(BlockIterator(lambda: blocks))


def _made_empty(folder):
    (folder / "empty").mkdir(exist_ok=True)
    return folder / "empty"


#: Runs a selection from the file in ``argv`` within so much address space as a table in memory,
#: and what is made of it, would pass.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9, 3 * 10**9))
import tamis.search, tamis.criteria
how, path = sys.argv[1:]
criterion = tamis.criteria.MRMR(n_bins=5)
if how == "folds":
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    criterion = tamis.criteria.CrossValidated(LinearDiscriminantAnalysis())
search = tamis.search.Forward(criterion, n_features_to_select=2)
if how != "memory":
    print(search.fit(path, target="y").columns)
else:
    import pyarrow.parquet as pq
    frame = pq.read_table(path, memory_map=False).to_pandas()
    print(search.fit(frame.drop(columns="y"), frame["y"]).columns)
"""


@pytest.mark.slow
def test_columns_are_selected_from_a_table_larger_than_memory(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "large.parquet"
    names = [f"x{j}" for j in range(150)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(16):  # 2.4 GB as float64
            X = rng.standard_normal((150, 125_000), dtype=np.float32)
            y = (X[7] + X[70] > 0).astype(np.int8)
            writer.write_table(pa.table([*X, y], schema=schema))
    ran = {
        how: subprocess.run(
            [sys.executable, "-c", LIMITED, how, str(path)],
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            check=False,
        )
        for how in ("parts", "folds", "memory")
    }
    for how in ("parts", "folds"):
        assert ran[how].stdout.strip() == "['x7', 'x70']", ran[how].stderr
    assert ran["memory"].returncode != 0
