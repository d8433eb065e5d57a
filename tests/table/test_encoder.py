"""Levels of categorical columns, compared with scikit-learn's encoders."""

import numpy as np
import polars as pl
import pytest
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from tamis.table import TableEncoder


def drawn_column(seed):
    """Return a column of text with levels of unequal frequency, and some missing values."""
    rng = np.random.default_rng(seed)
    n_levels, n_rows = rng.integers(2, 40), rng.integers(4, 200)
    texts = [f"v{i}" for i in rng.choice(n_levels, n_rows, p=rng.dirichlet([0.4] * n_levels))]
    return [None if seed % 2 and rng.random() < 0.2 else text for text in texts]


def as_objects(texts):
    return np.array(texts, dtype=object)[:, None]


@pytest.mark.parametrize("seed", range(60))
def test_indicators_are_those_of_scikit_learn(seed):
    texts = drawn_column(seed)
    most = 1 + seed % 24
    theirs = OneHotEncoder(
        drop="if_binary",
        min_frequency=min(max(2, int(0.03 * len(texts))), 20),
        max_categories=most,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    ).fit(as_objects(texts))
    frame = pl.DataFrame({"c": texts, "x": np.arange(len(texts)) * 0.5})
    ours = TableEncoder(most, keep=["c"]).fit(frame)
    of_column = [name for name, column in ours.output_to_input_.items() if column == "c"]
    if ours.kinds_["c"] == "constant":
        return
    assert of_column == list(theirs.get_feature_names_out(["c"]))
    asked = [*texts, "another", None]
    frame = pl.DataFrame({"c": asked, "x": np.zeros(len(asked))})
    with pytest.warns(UserWarning, match="unknown categories"):
        expected = theirs.transform(as_objects(asked))
    np.testing.assert_array_equal(ours.transform(frame)[:, : len(of_column)], expected)


@pytest.mark.parametrize("gaps", ["fill", "keep"])
@pytest.mark.parametrize("seed", range(10))
def test_codes_are_those_of_scikit_learn(seed, gaps):
    texts, none = drawn_column(seed), np.nan if gaps == "keep" else -1
    theirs = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=none, encoded_missing_value=none
    ).fit(as_objects([np.nan if text is None else text for text in texts]))
    ours = TableEncoder(levels="codes", gaps=gaps, keep=["c"]).fit(
        pl.DataFrame({"c": texts, "x": np.arange(len(texts)) * 0.5})
    )
    asked = [*texts, "another", None]
    found = ours.transform(pl.DataFrame({"c": asked, "x": np.zeros(len(asked))}))[:, 0]
    expected = theirs.transform(as_objects([np.nan if text is None else text for text in asked]))
    np.testing.assert_array_equal(found, expected[:, 0])


def test_outputs_with_the_same_name_are_numbered():
    """A level of one column can look like a level of another, or like a whole column."""
    frame = pl.DataFrame(
        {
            "a": ["b_c", "d", "e"] * 8,
            "a_b": ["c", "x", "y"] * 4 + ["y", "c", "x"] * 4,
            "a_d": np.arange(24) * 0.5,
        }
    )
    encoder = TableEncoder().fit(frame)
    names = encoder.get_feature_names_out()
    assert sorted(names) == ["a_b_c", "a_b_c_2", "a_b_x", "a_b_y", "a_d", "a_d_2", "a_e"]
    assert encoder.output_to_input_["a_d"] == "a_d"
    made = encoder.set_output(transform="pandas").transform(frame)
    assert made["a_b_c_2"].tolist() == (frame["a_b"] == "c").to_list()
    assert made["a_d"].tolist() == frame["a_d"].to_list()
