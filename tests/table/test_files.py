"""Every format, and one sentence for each file that holds no table."""

import csv
import gzip
import io
import os
import sys
from contextlib import suppress
from zipfile import ZipFile

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tamis import _memory
from tamis.exceptions import InvalidTable, MissingExtra
from tamis.table.files import READERS
from tamis.table.files import read_file as read

ARFF = """% a comment
@RELATION weather
@attribute outlook {sunny, 'very rainy'}
@attribute "wind speed" REAL
@ATTRIBUTE 'it\\'s hot' {0, 1}
@attribute when date "yyyy-MM-dd"
@attribute play {yes, no}

@DATA
sunny, 1.5, 1, 2020-01-01, yes
'very rainy', ?, 0, 2020-01-02, no
"""


@pytest.fixture
def expected(frame):
    return frame


def as_written(found, expected):
    """The numbers and the labels are the same."""
    assert found.columns == expected.columns
    np.testing.assert_allclose(found.drop("kind").to_numpy(), expected.drop("kind").to_numpy())
    assert found["kind"].to_list() == expected["kind"].to_list()


@pytest.mark.parametrize(
    ("name", "separator"),
    [
        ("a.csv", ","),
        ("b.csv", ";"),
        ("c.csv", "\t"),
        ("d.tsv", "\t"),
        ("e.txt", ";"),
        ("f.csv", "|"),
        ("odd [1] *.csv", ","),
    ],
)
def test_text_tables_are_read(folder, frame, name, separator):
    path = folder / name
    frame.write_csv(path, separator=separator)
    as_written(read(path).frame, frame)


def test_parquet(folder, frame):
    frame.with_columns(pl.col("kind").cast(pl.Categorical)).write_parquet(folder / "wine.parquet")
    as_written(read(folder / "wine.parquet").frame, frame)


def test_decimal_commas_are_read(folder, frame):
    text = frame.write_csv(separator=";").replace(".", ",")
    (folder / "comma.csv").write_text(text, encoding="utf-8")
    as_written(read(folder / "comma.csv").frame, frame.rename(lambda n: n.replace(".", ",")))


def test_byte_order_mark_blanks_and_quotes(folder):
    text = '\ufeff"a, b", c ,kind\r\n1, 2, x\r\n3, NA,y \r\n'
    (folder / "t.csv").write_text(text, encoding="utf-8", newline="")
    found = read(folder / "t.csv").frame
    assert found.columns == ["a, b", " c ", "kind"]
    assert found.rows() == [(1, 2.0, "x"), (3, None, "y")]


def test_blank_lines_and_old_line_ends(folder):
    (folder / "blank.csv").write_bytes(b"\n\r\na,y\n1,u\n\n2,v\n\n")
    (folder / "old.csv").write_bytes(b"a,y\r1,u\r2,v\r")
    assert read(folder / "old.csv").frame.rows() == [(1, "u"), (2, "v")]
    found = read(folder / "blank.csv").frame
    assert found.columns == ["a", "y"]
    assert found.rows() == [(1, "u"), (2, "v")]


def test_without_header(folder):
    (folder / "t.csv").write_text("1,2,a\n3,4,b\n")
    found = read(folder / "t.csv", header=False).frame
    assert found.columns == ["x1", "x2", "x3"]
    assert found.height == 2


@pytest.mark.parametrize("start", [0, 1])
def test_libsvm_columns_are_called_by_their_index(libsvm, frame, start):
    source = read(libsvm("wine.svm", start))
    assert source.target == "target"
    assert source.sparse.names == [f"x{j}" for j in range(start, start + 6)]
    features = source.sparse.X.toarray()
    np.testing.assert_allclose(features, frame.drop("kind").to_numpy(), rtol=1e-6)


def test_the_format_can_be_given(libsvm, folder):
    assert len(read(libsvm("heart_scale", 1), "libsvm").sparse.names) == 6


def test_arff(folder):
    path = folder / "weather.arff"
    path.write_text(ARFF)
    found = read(path).frame
    assert found.columns == ["outlook", "wind speed", "it's hot", "when", "play"]
    assert found.rows() == [
        ("sunny", 1.5, 1.0, "2020-01-01", "yes"),
        ("very rainy", None, 0.0, "2020-01-02", "no"),
    ]


def test_sparse_arff_is_read(folder):
    head = "@relation r\n@attribute a real\n@attribute b {u,v}\n@attribute c real\n@data\n"
    path = folder / "s.arff"
    path.write_text(head + "{0 2.5, 1 v}\n{}\n{2 -1}\n")
    assert read(path).frame.rows() == [(2.5, "v", 0.0), (0.0, "u", 0.0), (0.0, "u", -1.0)]


def test_arff_agrees_with_scipy(folder):
    from scipy.io import arff

    text = "@relation w\n@attribute look {sun, rain}\n@attribute 'the wind' real\n@data\n"
    path = folder / "weather.arff"
    path.write_text(text + "sun, 1.5\nrain, ?\n% a comment\n\nsun, -2e3\n")
    theirs, _ = arff.loadarff(path)
    ours = read(path).frame
    assert [row[0].decode() for row in theirs] == ours["look"].to_list()
    filled = ours["the wind"].fill_null(float("nan")).to_numpy()
    np.testing.assert_array_equal(theirs["the wind"], filled)


#: What a name may hold: what separates, quotes, ends lines somewhere, is blank, or wide.
LETTERS = "ab,;\t\"'\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029 é年\ufeff"


def hostile_names(seed, n):
    """Different names of such letters, none of them blank or a number."""
    draw = np.random.default_rng(seed)
    names = {"".join(draw.choice(list(LETTERS), draw.integers(1, 8))) for _ in range(3 * n)}
    return sorted(name for name in names if name.strip(" \t"))[:n]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("seed", range(8))
def test_hostile_names_are_read_as_they_were_written(folder, seed, separator, end):
    names = hostile_names(seed, 12)
    with open("h.csv", "w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL)
        table.writerow(names)
        table.writerows([[row + 0.25 * j for j in range(len(names))] for row in range(4)])
    found = read(folder / "h.csv").frame
    assert found.columns == names
    assert found.rows()[2] == tuple(2 + 0.25 * j for j in range(len(names)))
    found.write_csv("again.csv", separator=separator, line_terminator=end)
    assert read(folder / "again.csv").frame.equals(found)


@pytest.mark.parametrize("n_columns", [5_000, 20_000])
def test_headers_may_be_long(folder, n_columns):
    """A header may be longer than what is looked at to find the separator."""
    names = [f"ENSG{j:011d}.{j % 17}" for j in range(n_columns)]
    numbers = np.arange(3.0 * n_columns).reshape(3, n_columns)
    pl.DataFrame(numbers, schema=names).write_csv("wide.csv", separator=";")
    assert (folder / "wide.csv").read_text().index("\n") > 1 << 16
    found = read(folder / "wide.csv").frame
    assert found.columns == names
    np.testing.assert_array_equal(found.to_numpy(), numbers)


def test_a_quote_inside_a_name_is_part_of_it(folder):
    (folder / "t.csv").write_text('5" pipe,7\u2033,y\n1,2,u\n3,4,v\n')
    found = read(folder / "t.csv").frame
    assert found.columns == ['5" pipe', "7\u2033", "y"]
    assert found.rows() == [(1, 2, "u"), (3, 4, "v")]


def test_commas_in_names_are_no_decimal_commas(folder):
    (folder / "t.csv").write_text('"IL1,2";y\n1.5;u\n2.5;v\n')
    assert read(folder / "t.csv").frame.rows() == [(1.5, "u"), (2.5, "v")]


def test_kinds_that_the_first_rows_do_not_show(folder):
    lines = ["a,b,y", *(f"{j},1,u" for j in range(1500)), "0.5,x,v"]
    (folder / "t.csv").write_text("\n".join(lines))
    found = read(folder / "t.csv").frame
    assert found["a"][-1] == 0.5
    assert found["b"][-1] == "x"


def test_a_column_may_be_called_unnamed(folder):
    (folder / "t.csv").write_text("unnamed_1,,y\n1,2,u\n3,4,v\n")
    found = read(folder / "t.csv")
    assert found.frame.columns == ["unnamed_1", "unnamed_2", "y"]
    assert found.unnamed == {"unnamed_2": 2}


BROKEN = {
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"a,b,kind\n", "has no rows below its header"),
    "header.arff": (b"@relation r\n@attribute a real\n@data\n", "has no rows"),
    "junk.csv": (bytes(range(256)) * 9, "is not a text file"),
    "junk.arff": (bytes(range(256)) * 9, "is not a text file"),
    "junk.parquet": (bytes(range(256)) * 9, "is not a Parquet file"),
    "junk.svm": (bytes(range(256)) * 9, "is not a LIBSVM file"),
    "words.svm": (b"hello world\n", "is not a LIBSVM file"),
    "junk.feather": (bytes(range(256)) * 9, "is not an Arrow or Feather file"),
    "junk.csv.gz": (bytes(range(256)) * 9, "cannot be unpacked as gzip"),
    "junk.csv.zst": (bytes(range(256)) * 9, "cannot be unpacked as zstd"),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + os.urandom(500).hex().encode())[:200], "cut.csv.gz"),
    "table.gz": (gzip.compress(b"a,b\n1,2\n"), "so its format is unknown"),
    "blank.svm": (b"\n\n", "holds no values"),
    "dos.csv": ("größe,kind\n1,a\n".encode("cp850"), "is not written in UTF-8 (byte 3)"),
    "table.doc": (b"PK", "the extension '.doc', so its format is unknown"),
    "table": (b"a,b\n1,2\n", "has no extension, so its format"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "more than one column called 'a'"),
    "twice.arff": (b"@attribute a real\n@attribute a real\n@data\n1,2\n", "called 'a'"),
    "ragged.csv": (b"a,b\n1,2\n1,2,3,4\n", "has 2 names in its first line but rows of 4 values"),
    "ragged.arff": (b"@attribute a real\n@data\n1,2\n", "line 3, has 2 values for 1 columns"),
    "nodata.arff": (b"@relation r\n@attribute a real\n", "it has no line @data"),
    "none.arff": (b"@relation r\n@data\n1\n", "declares no @attribute"),
    "text.arff": (b"a,b\n1,2\n", "line 1 is 'a,b'"),
    "odd.arff": (b"@attribute a\n@data\n1\n", "declares no column"),
    "word.arff": (b"@attribute a real\n@data\nx\n", "could not convert string to float: 'x'"),
    "sparse.arff": (b"@attribute a real\n@data\n{7 1}\n", "is not a sparse row"),
    "negative.arff": (b"@attribute a real\n@data\n{0 1,-1 1}\n", "is not a sparse row"),
    "late.arff": (b"@attribute a real\n@data\n" + b"1\n" * 70_000 + b"\xff\n", "could not convert"),
    "numbers.csv": (b"1,2,3\n4,5,6\n", "begins with numbers, not with names. Write --no-header"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_by_name(folder, name):
    content, sentence = BROKEN[name]
    (folder / name).write_bytes(content)
    with pytest.raises(InvalidTable) as caught:
        read(folder / name)
    assert sentence in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_backslashes_in_a_header_are_read_in_linear_time(folder):
    name = "'" + "\\a" * 5000
    (folder / "t.arff").write_text(f"@attribute {name} numeric\n@attribute y {{0,1}}\n@data\n1,0\n")
    assert read(folder / "t.arff").frame.columns == [name, "y"]


def test_an_index_that_never_occurs_is_not_a_column(folder):
    (folder / "far.svm").write_text("".join(f"{i % 2} 1:{i} 2147483646:1\n" for i in range(5)))
    found = read(folder / "far.svm").sparse
    assert found.names == ["x1", "x2147483646"]
    np.testing.assert_array_equal(found.X.toarray(), [[i, 1] for i in range(5)])


FAR_CELL = """<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>
</sheetData></worksheet>"""


def test_a_sheet_that_needs_more_memory_than_there_is(folder, frame):
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    frame.write_excel(folder / "wine.xlsx")
    with ZipFile("wine.xlsx") as old, ZipFile("far.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, FAR_CELL if "sheet1.xml" in name else old.read(name))
    with pytest.raises(
        InvalidTable, match=r"far\.xlsx is not an Excel .* more memory than is free"
    ):
        read(folder / "far.xlsx")


def test_a_feather_file_with_flipped_bits_is_read_or_refused(folder, frame):
    frame.write_ipc("whole.feather")
    whole, draw = (folder / "whole.feather").read_bytes(), np.random.default_rng(5)
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[draw.integers(len(whole))] ^= 1 << draw.integers(8)
        (folder / "flipped.feather").write_bytes(flipped)
        with suppress(InvalidTable):
            read(folder / "flipped.feather")


def test_a_panic_of_polars_is_reported_in_one_sentence(folder, frame, monkeypatch):
    def panic(*args, **options):
        raise pl.exceptions.PanicException("index out of bounds")

    frame.write_ipc("t.feather")
    monkeypatch.setitem(READERS, "arrow", panic)
    with pytest.raises(InvalidTable, match=r"t\.feather is damaged: index out of bounds\. Write"):
        read(folder / "t.feather")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_a_file_name_that_is_not_utf8_can_be_read(folder, frame, ending):
    path = folder / os.fsdecode(b"gr\xfcn." + ending.encode())
    content = io.BytesIO()
    frame.write_parquet(content) if ending == "parquet" else frame.write_csv(content)
    raw = content.getvalue()
    path.write_bytes(packed(raw, "gz") if ending.endswith("gz") else raw)
    as_written(read(path).frame, frame)


def test_a_parquet_file_larger_than_memory_is_refused(folder, frame, monkeypatch):
    frame.write_parquet(folder / "wine.parquet")
    monkeypatch.setattr(_memory, "free_memory", lambda: 1000.0)
    with pytest.raises(InvalidTable, match=r"wine\.parquet holds .* more than the .* of memory"):
        read(folder / "wine.parquet")


def packed(text, how):
    if how == "gz":
        return gzip.compress(text)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, {"zst": "zstd", "bz2": "bz2"}[how]) as stream:
        stream.write(text)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("how", ["gz", "zst", "bz2"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_compressed_files_are_read(folder, frame, how, kind):
    buffer = io.BytesIO()
    frame.write_csv(buffer) if kind == "csv" else frame.write_parquet(buffer)
    (folder / f"wine.{kind}.{how}").write_bytes(packed(buffer.getvalue(), how))
    as_written(read(folder / f"wine.{kind}.{how}").frame, frame)


def test_a_compressed_file_larger_than_memory_is_refused(folder, frame, monkeypatch):
    (folder / "wine.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    monkeypatch.setattr(_memory, "free_memory", lambda: 1000.0)
    with pytest.raises(InvalidTable, match=r"wine\.csv\.gz holds .* more than the .* of memory"):
        read(folder / "wine.csv.gz")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "csv.zst", "parquet", "arrow"])
def test_standard_input_is_read(frame, monkeypatch, kind):
    buffer = io.BytesIO()
    if kind == "parquet":
        frame.write_parquet(buffer)
    elif kind == "arrow":
        frame.write_ipc(buffer)
    else:
        frame.write_csv(buffer)
    content = buffer.getvalue()
    content = packed(content, kind[4:]) if "." in kind else content
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    as_written(read("-").frame, frame)


def test_empty_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(InvalidTable, match="Standard input is empty"):
        read("-")


@pytest.mark.parametrize("ending", ["feather", "arrow", "ipc"])
def test_arrow(folder, frame, ending):
    frame.write_ipc(folder / f"wine.{ending}", compression="zstd")
    as_written(read(folder / f"wine.{ending}").frame, frame)


def test_excel_sheets_are_read(folder, frame):
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    frame.write_excel(folder / "wine.xlsx")
    as_written(read(folder / "wine.xlsx").frame, frame)
    (folder / "junk.xlsx").write_bytes(b"PK")
    with pytest.raises(InvalidTable, match="is not an Excel file"):
        read(folder / "junk.xlsx")


def test_excel_without_its_reader_is_refused(folder, monkeypatch):
    monkeypatch.setattr("tamis.table.files.find_spec", lambda name: None)
    (folder / "wine.xlsx").write_bytes(b"PK")
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[app\]', or save the sheet as CSV"):
        read(folder / "wine.xlsx")


def test_nominal_attributes_are_categories(folder):
    path = folder / "weather.arff"
    path.write_text(ARFF)
    found = read(path).frame
    assert found["outlook"].dtype == pl.Enum(["sunny", "very rainy"])
    assert found["it's hot"].dtype == pl.Float64


def test_missing_files_are_refused(folder):
    with pytest.raises(InvalidTable, match=r"no file .*wines\.csv\. Did you mean wine\.csv\?"):
        read(folder / "wines.csv")
    with pytest.raises(InvalidTable, match=r"There is no folder .*nowhere either"):
        read(folder / "nowhere" / "wine.csv")
    (folder / "folder.csv").mkdir()
    with pytest.raises(InvalidTable, match="is a folder"):
        read(folder / "folder.csv")
    with pytest.raises(InvalidTable, match=r"no format 'cvs'\. Did you mean csv"):
        read(folder / "wine.csv", "cvs")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_protected_file_is_refused(folder):
    (folder / "wine.csv").chmod(0)
    with pytest.raises(InvalidTable, match="cannot be read: Permission denied"):
        read(folder / "wine.csv")
