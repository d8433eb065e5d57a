"""Hostile expressions, records and files end in an answer or one sentence, and reach nothing else.

An audit hook of Python reports every file that is opened, every socket and every process.
"""

import copy
import gzip
import io
import json
import os
import sys
import zipfile
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from tamis import select
from tamis.contract import Record, Selection
from tamis.contract.record import _checksum
from tamis.criteria import FisherScore, Scatter
from tamis.exceptions import TamisError
from tamis.search import Forward, Ranking, Then
from tamis.spec import parse
from tamis.spec.vocabulary import all_names, find
from tamis.table.files import read_file
from tamis.testing.problem import make_table

X, Y = make_table()
#: Longest sentence that a user would still read.
LONGEST = 2000
#: Memory in bytes by which a group of cases may grow the process.
MEMORY = 1 << 30
STARTS = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system")
_seen: list[str] | None = None


def _watch(event, args):
    if _seen is not None and (event.startswith(STARTS) or event == "open"):
        _seen.append(f"{event} {args[:1]}")


sys.addaudithook(_watch)


@contextmanager
def watched():
    """Collect the events of this process."""
    global _seen
    _seen = events = []
    try:
        yield events
    finally:
        _seen = None


def largest_memory():
    resource = pytest.importorskip("resource")
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def end_of(function, *args):
    """Return None for an answer or a sentence, and otherwise what happened instead."""
    try:
        function(*args)
    except TamisError as error:
        words = str(error)
        plain = "\n" not in words and 10 < len(words) <= LONGEST and words[-1] in ".?"
        return None if plain else f"no sentence: {words[:200]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


# -- expressions ----------------------------------------------------------------------------------

ATOMS = (
    "SVC()",
    "Scatter()",
    "FisherScore",
    "__import__('os').system('true')",
    "open('/etc/passwd')",
    "().__class__.__bases__",
    "10**10**10",
    "9" * 5000,
    "1e999",
    "-1e-999",
    "nan",
    "'../../x'",
    "'/etc/passwd'",
    "'\\x00'",
    "'\ud83d\ude00'",
    "lambda: 0",
    "[x for x in y]",
    "{**{}}",
    "*a",
    "f'{1}'",
    "b'x'",
    "...",
    "None",
    "True",
    "{}",
    "[]",
    "{'memory': ['a']}",
    "{[]: 1}",
    "a.b.c",
    "SVC(**{})",
    "SVC(C=1, C=2)",
    "KFold(n_splits=10**9)",
    "\u202eSVC()",
    "ℯval('1')",
    "0x" + "f" * 99,
    "eval",
    "exec('1')",
    "globals()",
    "1 if 1 else 2",
    "SVC() @ SVC()",
    "(yield)",
    "await a",
    "GridSearchCV(SVC(), {'C': [1], 'machines': ['a:1']})",
    "\x00",
    "#",
    "\n",
    "\\",
    ";",
    "'",
)
CALLS = (
    "Forward",
    "Ranking",
    "Backward",
    "Then",
    "CrossValidated",
    "Importances",
    "make_pipeline",
    "Pipeline",
    "GridSearchCV",
    "TableSelector",
    "Genetic",
    "SVC",
    "RandomForestClassifier",
    "Auto",
    "__class__",
    "eval",
    "open",
    "os.system",
    "Forwrad",
    "ColumnTransformer",
    "HonestSize",
)
WORDS = (
    "n_features_to_select",
    "criterion",
    "cv",
    "memory",
    "estimator",
    "n_jobs",
    "__init__",
    "C",
)


def hostile_expression(draw, depth=0):
    if depth > 4 or draw.random() < 0.3:
        text = str(draw.choice(ATOMS))
    else:
        inner = [hostile_expression(draw, depth + 1) for _ in range(draw.integers(0, 3))]
        named = [f"{draw.choice(WORDS)}={hostile_expression(draw, depth + 1)}"]
        text = f"{draw.choice(CALLS)}({', '.join(inner + named * int(draw.integers(0, 2)))})"
    if depth:
        return text
    damage = draw.integers(8)
    if damage == 0:
        return "(" * int(draw.integers(1, 3000)) + text
    if damage == 1:
        return f"{'Forward(' * int(draw.integers(1, 400))}{text}"
    if damage == 2:
        return text * int(draw.integers(2, 2000))
    if damage == 3:
        cut = int(draw.integers(len(text) + 1))
        return text[:cut] + chr(int(draw.integers(1, 0xD7FF))) + text[cut:]
    return text


def check_expressions(first, last):
    for name in all_names():
        find(name)  # imports, which open files
    before = largest_memory()
    for seed in range(first, last):
        text = hostile_expression(np.random.default_rng([1, seed]))
        with watched() as events:
            end = end_of(parse, text)
        opened = [event for event in events if ".py" not in event and "dist-info" not in event]
        assert (end, opened) == (None, []), f"{seed}: {text[:300]!r}"
    assert largest_memory() - before < MEMORY


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_hostile_expressions_are_refused(first):
    check_expressions(first, first + 100)


@pytest.mark.slow
def test_many_hostile_expressions_are_refused():
    check_expressions(300, 5000)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Forward(CrossValidated(SVC(), cv=LeavePOut(p=20)))", "LeavePOut.* makes .* folds"),
        ("Auto(cv=LeavePOut(p=20), budget=1)", "LeavePOut.* makes .* folds"),
        ("SVCPathCV(cv=LeavePOut(p=20))", "LeavePOut.* makes .* folds"),
        ("Fusion([])", "Fusion needs a list of searches"),
        ("Fusion(2)", "Fusion needs a list of searches"),
        ("Ranking(ParzenInformation(sigma=1e-300))", "ParzenInformation needs sigma"),
        ("Ranking(KwakInformation(sigma=1e300))", "KwakInformation needs sigma"),
        ("Forward(CrossValidated(Pipeline([])))", "needs an estimator that predicts"),
        (
            "Ranking(Importances(DecisionTreeClassifier(), importance_getter='fit'))",
            "'fit' of DecisionTreeClassifier is not numeric",
        ),
    ],
)
def test_hostile_methods_that_parse_are_refused_by_fit(text, sentence):
    made = parse(text)
    with pytest.raises(TamisError, match=sentence):
        made.fit(X, Y)
    if isinstance(made, Selection):
        with pytest.raises(TamisError, match=sentence):
            select(X, Y, text)


# -- records --------------------------------------------------------------------------------------

VALUES = (
    None, True, -1, 0, 1, 10**9, 10**30, -(10**30), 1.5, float("nan"), float("inf"), "", "x",
    "\x00", [], [0], [None] * 3, [[]], [-1, 10**30], {}, {"0": {}}, {"a": [1]}, "inf", "9" * 400,
)  # fmt: skip


def search():
    return Then(
        Ranking(FisherScore(), n_features_to_select=5), Forward(Scatter(), n_features_to_select=3)
    )


def plain_record(selection):
    return json.loads(json.dumps(selection.fit(X, Y).record_.to_dict(), default=list))


PLAIN = plain_record(search())


def places(held, path=()):
    """Yield the path of every value in a record."""
    pairs = held.items() if isinstance(held, dict) else enumerate(held)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def sign(plain):
    """Give a record, and the records inside it, the checksum of its content."""
    for part in plain.get("parts") if isinstance(plain.get("parts"), list) else ():
        if isinstance(part, dict):
            sign(part)
    plain.pop("checksum", None)
    plain["checksum"] = _checksum(plain)


def damaged_record(draw, whole):
    plain = copy.deepcopy(whole)
    known = [path for path in places(plain) if path[-1] != "checksum"]
    *path, last = known[draw.integers(len(known))]
    holder = plain
    for key in path:
        holder = holder[key]
    damage = draw.integers(4)
    if damage == 0 and isinstance(holder, list):
        holder.append(VALUES[draw.integers(len(VALUES))])
    elif damage == 1:
        del holder[last]
    elif damage == 2 and isinstance(holder[last], list):
        holder[last] = holder[last] * int(draw.integers(2, 50))
    else:
        holder[last] = VALUES[draw.integers(len(VALUES))]
    sign(plain)
    return plain


def resume(plain):
    resumed = search().resume(X, Y, record=Record.from_dict(plain))
    assert resumed.support_.sum() == 3


def resume_other(text, plain):
    parse(text).resume(X, Y, record=Record.from_dict(plain))


def check_records(first, last):
    before = largest_memory()
    for seed in range(first, last):
        plain = damaged_record(np.random.default_rng([2, seed]), PLAIN)
        with watched() as events:
            end = end_of(resume, plain)
        assert (end, [e for e in events if ".py" not in e]) == (None, []), seed
    assert largest_memory() - before < MEMORY


@pytest.mark.parametrize("first", range(0, 500, 250))
def test_damaged_records_with_a_valid_checksum_are_refused(first):
    check_records(first, first + 250)


@pytest.mark.parametrize(
    "text",
    [
        "StabilitySelection(Ranking(FisherScore()), n_pairs=6, random_state=0)",
        "Genetic(Scatter(), n_features_to_select=3, n_generations=3, random_state=0)",
        "RecursiveElimination(FisherScore(), n_features_to_select=3)",
        "BranchAndBound(Scatter(), n_features_to_select=3)",
    ],
)
@pytest.mark.filterwarnings("ignore::tamis.exceptions.NothingFound")
def test_damaged_records_of_other_searches(text):
    whole = plain_record(parse(text))
    for seed in range(100):
        plain = damaged_record(np.random.default_rng([5, seed]), whole)
        assert end_of(resume_other, text, plain) is None, seed


@pytest.mark.slow
def test_many_damaged_records_with_a_valid_checksum_are_refused():
    check_records(500, 5000)


# -- files ----------------------------------------------------------------------------------------

TEXTS = {
    "csv": b"a,b,y\n1,2,0\n3,x,1\n",
    "arff": b"@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n1,0\n{0 2,1 1}\n",
    "svm": b"0 1:2 3:4\n1 1:3 7:1\n",
    "tsv": b"a\tb\n1\t2\n",
}
RUBBISH = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b'"', b"'", b"," * 3000, b"{" * 3000,
    b"-1:1 ", b"99999999999999999999:1 ", b"nan:nan ", b"@attribute x {", b"@data\n", b"\\" * 3000,
    b"1e999", b"=cmd()", b"\xf0\x9f\x98\x80", b"x" * 300_000, b"{-1 1}", b"{0}", b"{99 1}", b"%",
)  # fmt: skip


def binary_files():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})
    made = {}
    for ending, write in (("parquet", frame.write_parquet), ("feather", frame.write_ipc)):
        stream = io.BytesIO()
        write(stream)
        made[ending] = stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 10_000_000)
        archive.writestr("xl/workbook.xml", LAUGHS)
    made["xlsx"] = stream.getvalue()
    made["csv.gz"] = gzip.compress(b"a,b\n" + b"1,2\n" * 200_000)
    return made


LAUGHS = "<!DOCTYPE a [<!ENTITY b 'ha'>" + "".join(
    f"<!ENTITY b{k} '{f'&b{k - 1};' * 10}'>" for k in range(1, 12)
)
DEEP = {"csv": b"[" * 100_000, "arff": b"@attribute a {" + b"{" * 50_000, "svm": b"1 " * 50_000}


def hostile_file(draw, binaries):
    """Return the ending and the content of a damaged file."""
    kinds = [*TEXTS, *TEXTS, *binaries, *DEEP]
    pick = int(draw.integers(len(kinds)))
    kind = kinds[pick]
    if pick >= len(kinds) - len(DEEP):
        return kind, DEEP[kind]
    content = bytearray((TEXTS | binaries)[kind])
    for _ in range(draw.integers(1, 4)):
        at = int(draw.integers(len(content) + 1))
        damage = draw.integers(4)
        if damage == 0:
            del content[at:]
        elif damage == 1 and at < len(content):
            content[at] ^= 1 << int(draw.integers(8))
        elif damage == 2:
            content[at:at] = draw.bytes(int(draw.integers(1, 200)))
        else:
            content[at:at] = RUBBISH[draw.integers(len(RUBBISH))]
    return kind, bytes(content)


def check_files(first, last, folder):
    binaries = binary_files()
    for ending, content in {**TEXTS, **binaries}.items():
        (folder / f"whole.{ending}").write_bytes(content)
        assert end_of(read_file, folder / f"whole.{ending}") is None
    before = largest_memory()
    for seed in range(first, last):
        kind, content = hostile_file(np.random.default_rng([3, seed]), binaries)
        path = folder / f"t{seed}.{kind}"
        path.write_bytes(content)
        with watched() as events:
            end = end_of(read_file, path)
        starts = [event for event in events if event.startswith(STARTS)]
        allowed = ("subprocess.Popen", "os.posix_spawn", "os.fork") if kind == "xlsx" else ()
        others = [event for event in starts if not event.startswith(allowed or "-")]
        assert sum(event.startswith("subprocess.Popen") for event in starts) <= 1
        assert (end, others) == (None, []), f"{seed}: {kind} {content[:100]!r}"
        os.remove(path)
    assert largest_memory() - before < MEMORY


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_hostile_files_are_read_or_refused(first, tmp_path):
    check_files(first, first + 50, tmp_path)


@pytest.mark.slow
def test_many_hostile_files_are_read_or_refused(tmp_path):
    check_files(100, 1500, tmp_path)
