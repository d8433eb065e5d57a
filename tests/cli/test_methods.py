"""``tamis methods``: questions, details, and what a program reads."""

import json

import numpy as np
import pytest

from tamis import spec
from tamis.blocks import MemoryMap
from tamis.cli.catalogue import GROUPS, QUESTIONS, question_of, reads_of
from tamis.cli.methods import complete_methods, read_index
from tamis.recipes import names, recipe


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("correlation", "alone"),
        ("t-test-fdr", "alone"),
        ("mrmr", "beside"),
        ("hsic-rfe", "beside"),
        ("sffs-j3", "together"),
        ("ga-knn", "together"),
        ("fspp2-init", "svm"),
        ("svr-rfe", "svm"),
        ("boosting-rfe", "trees"),
        ("ridge-rfe", "model"),
        ("mlp-fspp-rfe", "model"),
        ("fsmlp-al-grc", "gates"),
        ("column-subset", "unsupervised"),
    ],
)
def test_a_recipe_answers_a_question(name, question):
    assert question_of(recipe(name)) == question


def test_the_list_is_grouped_by_question(tamis):
    shown = tamis("methods").stdout
    titles = [GROUPS[group] for group in GROUPS if group in spec.catalogue()]
    places = [shown.index(title) for title in (*QUESTIONS.values(), *titles)]
    assert places == sorted(places)
    assert shown.index(QUESTIONS["svm"]) < shown.index("svm-rfe") < shown.index(QUESTIONS["trees"])


def test_no_line_is_wider_than_the_terminal(tamis):
    for asked in ([], ["svm-rfe"], ["mlp-fspp-rfe"], ["Divergence"], ["guyon"]):
        shown = tamis("methods", *asked).stdout
        assert max(map(len, shown.splitlines())) <= 100


def test_a_detail_has_what_it_reads_and_its_reference(tamis):
    shown = tamis("methods", "mrmr").stdout
    assert "numbers, missing values, categories, sparse" in shown
    assert "Peng, Long and Ding (2005)" in shown
    assert "tamis compare data.csv --target y mrmr jmi" in shown


def test_a_method_reads_what_its_tags_state():
    assert (
        reads_of(recipe("svm-rfe"))
        == "numbers; missing values and categories of a frame are encoded"
    )
    assert reads_of(recipe("correlation")).startswith("numbers, ")


def test_names_are_found_in_any_case_of_letters(tamis):
    assert tamis("methods", "SVM-RFE").stdout == tamis("methods", "svm-rfe").stdout
    assert tamis("methods", "mrmr").stdout != tamis("methods", "MRMR").stdout


def test_json_has_all_that_is_known(tamis):
    plain = json.loads(tamis("methods", "--json").stdout)
    assert [one["name"] for one in plain["recipes"]] == names()
    assert set(plain["words"]) == set(spec.catalogue())
    (one,) = json.loads(tamis("methods", "svm-rfe", "--json").stdout)["recipes"]
    assert one["expression"] == "RecursiveElimination(WeightNorm(SVC(kernel='linear')))"
    assert one in read_index().recipes


def test_the_shell_completes_names():
    assert complete_methods("fspp3") == ["fspp3-init", "fspp3-rfe"]
    assert complete_methods("") == names()


def test_methods_for_tables_larger_than_memory_are_listed(tamis):
    shown = tamis("methods", "--blocks").stdout
    for name in ("mrmr", "sffs-j3", "correlation", "Scatter", "CrossValidated"):
        assert name in shown.split()
    for name in ("svm-rfe", "HSIC", "hsic-rfe", "Exhaustive"):
        assert name not in shown.split()
    plain = json.loads(tamis("methods", "--blocks", "--json").stdout)
    assert {one["name"] for one in plain["recipes"]} == {
        name for name in names() if recipe(name).takes_blocks
    }
    only = json.loads(tamis("methods", "mutual", "--blocks", "--json").stdout)
    assert {one["name"] for one in only["recipes"]} < {one["name"] for one in plain["recipes"]}
    assert "row blocks" in tamis("methods", "mrmr").stdout
    assert "row blocks" not in tamis("methods", "svm-rfe").stdout


def test_a_filter_of_blocks_that_selects_nothing_raises_an_error(tamis):
    asked = tamis("methods", "svm-rfe", "--blocks")
    assert asked.exit_code == 2
    assert "tamis methods --blocks" in asked.stderr


def test_recipes_listed_for_blocks_select_from_them():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 90)
    X = rng.normal(size=(90, 5)) + y[:, None] * np.array([1, 0, 0.5, 0, 0.2])
    for line in read_index().recipes:
        if line["blocks"]:
            held = recipe(line["name"]).fit(X, y).columns
            assert recipe(line["name"]).fit(MemoryMap(X, y, block_rows=33)).columns == held
