"""Result files of experiments, and the tables that are restored from them."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from tamis.evaluation import Store
from tamis.exceptions import InvalidStore
from tamis_book import Cell, Reproduction, read, reproduce
from tamis_book.cells import interval, mark_cell
from tamis_book.files import by_cost
from tamis_book.layout import contrasts, summarize
from tamis_book.result_files import load_results, results_path, save_results, stored_results

COSTS = {"a": None, "b": 0.5, "c": 3.0}

ERRORS = """
title = "Errors next to baselines"
source = "Nobody (2020)"
scale = 100
reference = "Fisher"
[methods]
Fisher = "Ranking(FisherScore(), n_features_to_select=3)"
Scatter = "Ranking(Scatter(), n_features_to_select=2)"
Later = "Forward(NotYetThere())"
[baselines]
F = "Ranking(FisherScore())"
[estimators]
svm = "SVC()"
[[parts]]
name = "wine"
data = { load = "wine" }
train = 100
published = { Fisher = 7.5 }
[[parts]]
name = "not here"
data = { load = "not_at_hand" }
train = 100
"""

STABILITY = """
title = "Stability"
source = "Nobody (2020)"
metric = "stability"
[methods]
Fisher = "Ranking(FisherScore())"
[[parts]]
name = "wine"
data = { load = "wine" }
train = 0.5
sizes = [3, 6]
published = { Fisher = [1.0, 0.1] }
"""

HITS = """
title = "Hits"
source = "Nobody (2020)"
metric = "hit"
[methods]
Fisher = "Ranking(FisherScore())"
[[parts]]
name = "weston"
data = { make = "make_weston", n_samples = 300 }
train = 100
published = { Fisher = 3 }
"""


def computed(text, tmp_path, n=4):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    found = reproduce(str(path), realizations=n)
    save_results(found, tmp_path / "mine.json.gz", realizations=n)
    return read(str(path)), found, load_results(tmp_path / "mine.json.gz", read(str(path)))


def nearly(cell):
    """Return a cell with numbers rounded to eight digits, and NaN as None."""
    return [
        (None if value != value else float(f"{value:.8g}")) if isinstance(value, float) else value
        for value in cell
    ]


@pytest.mark.parametrize("text", [ERRORS, STABILITY, HITS])
def test_a_table_can_be_restored_from_its_file(text, tmp_path):
    _, found, again = computed(text, tmp_path)
    assert found.cells
    assert list(map(nearly, again.found.cells)) == list(map(nearly, found.cells))
    assert again.found.counts() == found.counts()
    assert (again.found.missing, again.found.remarks) == (found.missing, found.remarks)
    assert [one.method for _, one in contrasts(again.found)] == [
        one.method for _, one in contrasts(found)
    ]
    assert again.is_current
    assert again.realizations == 4
    assert set(again.versions) >= {"tamis", "numpy", "scikit-learn"}


def test_published_numbers_may_be_corrected_later(tmp_path):
    experiment, _, _ = computed(HITS, tmp_path)
    (part,) = experiment.parts
    corrected = replace(experiment, parts=(replace(part, published={"Fisher": (30.0,)}),))
    again = load_results(tmp_path / "mine.json.gz", corrected)
    assert again.is_current
    assert [cell.published for cell in again.found.cells] == [30.0]


def test_results_of_a_changed_experiment_are_not_current(tmp_path):
    experiment, _, _ = computed(HITS, tmp_path)
    for changed in (
        replace(experiment, methods={"Fisher": "fisher-score"}),
        replace(experiment, seed=1),
        replace(experiment, parts=(replace(experiment.parts[0], train=90),)),
    ):
        assert not load_results(tmp_path / "mine.json.gz", changed).is_current


def test_equal_scores_give_identical_files(tmp_path):
    _, found, _ = computed(HITS, tmp_path)
    for name in ("a", "b"):
        save_results(found, tmp_path / f"{name}.json.gz", realizations=4)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b"no gzip", gzip.compress(b"[1]", mtime=0), "format", "damage"]
)
def test_an_invalid_result_file_is_refused(content, tmp_path):
    experiment, _, _ = computed(HITS, tmp_path)
    path = tmp_path / "mine.json.gz"
    if content == "format":
        facts = json.loads(gzip.decompress(path.read_bytes()))
        content = gzip.compress(json.dumps(facts | {"format": 99}).encode())
    elif content == "damage":
        content = gzip.compress(b"[1]")[:10] + b"\xff" * 20  # a header without a block
    path.write_bytes(content)
    with pytest.raises(InvalidStore, match=r"mine\.json\.gz cannot be read .* make book"):
        load_results(path, experiment)


def test_intervals_agree_with_their_definitions(tmp_path):
    experiment, found, _ = computed(ERRORS, tmp_path)
    cell = next(cell for cell in found.cells if cell.method == "Fisher")
    values = 100 * np.array(list(found.results["wine"].values("error", "Fisher").values()))
    reach = 3.182446305 * values.std(ddof=1) / 2  # 97.5 % quantile of t, 3 degrees of freedom
    assert interval(experiment, cell) == pytest.approx(
        (values.mean() - reach, values.mean() + reach)
    )
    hits = read("thesis-3.2")
    cell = cell._replace(ours=27.0, n_realizations=30)
    assert interval(hits, cell) == pytest.approx((30 * 0.7438, 30 * 0.9654), abs=0.01)


def test_the_shortest_experiments_come_first():
    some = [replace(read("thesis-3.2"), name=name, cost=cost) for name, cost in COSTS.items()]
    assert [one.name for one in by_cost(some)] == ["b", "c", "a"]


def test_identical_tables_share_their_tasks(tmp_path):
    text = """
    title = "Errors"
    source = "Nobody (2020)"
    metric = "mse"
    also = ["scc"]
    [methods]
    Corr = "Ranking(Correlation())"
    [estimators]
    svr = "SVR()"
    [[parts]]
    name = "additive"
    data = { make = "make_additive", n_samples = 80 }
    train = 40
    sizes = [2]
    """
    (tmp_path / "mse.toml").write_text(text)
    swapped = text.replace('"mse"', '"?"').replace('"scc"', '"mse"').replace('"?"', '"scc"')
    (tmp_path / "scc.toml").write_text(swapped)
    with Store(None) as store:
        errors = reproduce(str(tmp_path / "mse.toml"), realizations=2, store=store)
        n_tasks = len(store)
        correlations = reproduce(str(tmp_path / "scc.toml"), realizations=2, store=store)
        assert len(store) == n_tasks == 2
    assert errors.cells[0].ours > 0 > -correlations.cells[0].ours
    save_results(errors, tmp_path / "mse.json.gz", realizations=2)
    again = load_results(tmp_path / "mse.json.gz", errors.experiment)
    assert {row.metric for row in again.found.results["additive"].rows()} == {"mse"}


TALLY = """
title = "Errors"
source = "Nobody (2020)"
scale = 100
reference = "A"
[methods]
A = "Ranking(FisherScore())"
B = "Ranking(Scatter())"
C = "Ranking(Correlation())"
[unsound]
C = "not specified: the correlation"
[[parts]]
name = "wine"
data = { load = "wine" }
train = 100
sizes = [1, 13]
published = { A = [10, 5], B = [30, 5], C = [1, 1] }
signs = { B = ["+", ""], C = ["+", ""] }
"""


def tally_case(tmp_path, numbers, signs):
    """Return the table of TALLY with these numbers of ours and signs of our tests."""
    path = tmp_path / "own.toml"
    path.write_text(TALLY)
    experiment = read(str(path))
    cells = []
    for (method, size), ours in numbers.items():
        part = experiment.parts[0]
        cell = Cell("wine", method, size, ours, 2.0, ours - 1, ours + 1, 30)
        published = part.at(part.published, method, size)
        mark = "?" if method == "C" else mark_cell(experiment, cell, published)
        sign = part.signs.get(method, ("", ""))[part.sizes.index(size)]
        cell = cell._replace(published=published, mark=mark, published_sign=sign)
        cells.append(cell._replace(sign=signs.get(method), all_columns=size == 13))
    return Reproduction(experiment, tuple(cells), ())


def test_agreement_with_a_placebo_is_counted(tmp_path):
    """With standard deviation 2 and 30 realizations, a difference above 1.06 is significant."""
    numbers = {("A", 1): 10.0, ("B", 1): 10.5, ("C", 1): 10.0}
    tally = tally_case(tmp_path, numbers, {}).tally()
    assert (tally["="], tally["+"], tally["?"]) == (1, 1, 1)
    # our A against the published B differs; our B against the published A agrees
    assert (tally["placebos"], tally["placebos ="]) == (2, 1)
    assert (tally["far"], tally["far placebos ="], tally["far ="]) == (2, 1, 1)


def test_numbers_with_all_columns_are_counted_apart(tmp_path):
    numbers = {("A", 1): 10.0, ("A", 13): 5.0, ("B", 13): 3.0}
    tally = tally_case(tmp_path, numbers, {}).tally()
    assert (tally["="], tally["all ="], tally["all +"], tally["placebos"]) == (1, 1, 1, 0)


@pytest.mark.parametrize(("sign", "word"), [("+", "kept"), ("", "lost"), ("-", "reversed")])
def test_published_differences_between_methods_are_compared_with_ours(tmp_path, sign, word):
    numbers = {("A", 1): 10.0, ("B", 1): 30.0, ("C", 1): 30.0}
    tally = tally_case(tmp_path, numbers, {"B": sign, "C": sign}).tally()
    assert {key: tally[key] for key in ("kept", "lost", "reversed") if tally[key]} == {word: 1}


def test_cells_with_all_columns_are_recognised():
    found = load_results(results_path("thesis-5.10")).found
    assert {cell.size for cell in found.cells if cell.all_columns} == {13}


def test_the_summary_adds_up():
    some = [read(name) for name in ("thesis-5.10", "thesis-3.6", "thesis-3.7", "fspp-3")]
    sheet = summarize((one, stored_results(one)) for one in some)
    assert [row[0] for row in sheet.rows] == [*(one.name for one in some), "all"]
    assert sheet.rows[2][2] == "no data"
    for name in ("agree", "lower", "higher", "not specified", "wins kept"):
        *parts, total = (row[sheet.headings.index(name)] or 0 for row in sheet.rows)
        assert sum(parts) == total > 0
