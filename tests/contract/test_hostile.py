"""Problems of the contract, and of the models that it trains, on hostile tables."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import tamis
from tamis._arrays import target_kind
from tamis.auto import Auto
from tamis.criteria import (
    HSIC,
    CrossValidated,
    FisherScore,
    OutputInformation,
    ParzenInformation,
    PosteriorSensitivity,
    RadiusMargin,
)
from tamis.exceptions import (
    DegenerateData,
    InvalidParameter,
    InvalidScore,
    InvalidTable,
    NotConverged,
)
from tamis.meta import Probes
from tamis.search import FloatingBackward, Forward, Ranking, RecursiveElimination
from tamis.table import TableSelector
from tamis.validation.splits import reword_warnings


def test_numbers_near_the_largest_float_cause_no_warning():
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] = np.sign(X[:, 0]) * 1.7e308
    selection = Ranking(FisherScore(), n_features_to_select=1).fit(X, y)
    assert selection.get_support(indices=True).tolist() == [0]
    assert selection.transform(X).shape == (20, 1)


def test_the_kind_of_a_huge_target_is_found_without_a_warning():
    assert target_kind(1e200 * np.arange(30.0)) == "regression"
    assert target_kind(np.arange(30)) == "regression"


def test_a_column_added_after_the_selected_step_is_explained():
    """The best subset may be the first one of the search, in which nothing moved."""
    X = np.random.default_rng(18).normal(size=(32, 4))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    search = FloatingBackward(ParzenInformation(sigma=0.5), n_features_to_select="best").fit(X, y)
    for column in range(4):
        assert search.explain(column)


def small_class():
    X = np.random.default_rng(0).normal(size=(30, 4))
    return X, np.array([0] * 15 + [1] * 12 + [2] * 3)


def test_a_class_with_few_rows_causes_a_warning_of_tamis():
    with pytest.warns(DegenerateData, match=r"without a class.*only 3 members"):
        Forward(CrossValidated(SVC(), cv=5), n_features_to_select=1).fit(*small_class())


def test_training_that_does_not_converge_causes_a_warning_of_tamis():
    X, y = small_class()
    network = MLPClassifier((6,), solver="lbfgs", max_iter=2, random_state=0)
    criterion = OutputInformation(network, random_state=0)
    with pytest.warns(NotConverged, match="did not converge"):
        criterion.fit(X, y).loss(np.arange(4))


def test_other_warnings_are_passed_on():
    with pytest.warns(RuntimeWarning, match="mine"), reword_warnings():
        warnings.warn("mine", RuntimeWarning, stacklevel=1)


def test_an_undefined_score_is_an_error_without_a_warning():
    from sklearn.linear_model import LinearRegression

    X = np.random.default_rng(0).normal(size=(9, 3))
    with pytest.raises(InvalidScore, match="is NaN in fold"):
        Forward(CrossValidated(LinearRegression(), cv=5)).fit(X, X[:, 0])


def test_a_class_without_weight_is_refused(capfd):
    X, y = small_class()
    weight = (y != 2).astype(float)
    search = RecursiveElimination(RadiusMargin(SVC()))
    with pytest.raises(InvalidParameter, match=r"positive weight in every class; class '2'"):
        search.fit(X, y, sample_weight=weight)
    assert capfd.readouterr() == ("", "")  # LIBSVM would print


def test_weights_of_a_calibrated_svm_cause_no_warning():
    X, y = small_class()
    posterior = PosteriorSensitivity(SVC(), by="zero", on="held-out", random_state=0)
    search = RecursiveElimination(posterior, n_features_to_select=2)
    assert search.fit(X, y > 0, sample_weight=np.linspace(1, 2, 30)).n_features_ == 2


def test_tables_that_are_not_numeric_are_refused():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20)
    X = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    dates = X.assign(d=pd.date_range("2024-01-01", periods=20), e=["u", "v"] * 10)
    masked = np.ma.masked_array(X.to_numpy(), mask=np.eye(20, 3, dtype=bool))
    for table, said in (
        (X.set_axis(["a", "a", "b"], axis=1), "more than one column called 'a'"),
        (dates, "2 column(s) of another kind: 'd', 'e'"),
        (pl.from_pandas(dates), "2 column(s) of another kind: 'd', 'e'"),
        (X[[]], "X has none"),
        (masked, "3 missing value(s)"),
        (csr_array(X.to_numpy()), "X is sparse"),
    ):
        with pytest.raises(InvalidTable, match=re.escape(said)):
            Forward(HSIC(), n_features_to_select=1).fit(table, y)


DRAW = np.random.default_rng(0)
GROUPS = DRAW.integers(0, 2, 40)
LAZY = pl.LazyFrame({"a": DRAW.normal(size=40), "b": GROUPS + DRAW.normal(size=40)})


def test_a_lazy_frame_is_collected():
    ranked = Ranking(FisherScore(), n_features_to_select=1)
    for search in (ranked, TableSelector(ranked)):
        found = search.fit(LAZY, GROUPS)
        assert found.columns == ["b"]
        assert found.transform(LAZY).shape == (40, 1)
    assert FisherScore().fit(LAZY, GROUPS).scores_.argmax() == 1
    assert tamis.select(LAZY, GROUPS, ranked).columns == ["b"]
    assert tamis.select(LAZY, method="correlation", target="a").columns == ["b"]
    assert tamis.inspect(LAZY, "a").task == "regression"


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow", "numpy"])
@pytest.mark.parametrize("n_rows", [0, 1])
def test_a_table_with_few_rows_is_refused(library, n_rows):
    frame = LAZY.collect()[:n_rows]
    makers = {"pandas": frame.to_pandas, "pyarrow": frame.to_arrow, "numpy": frame.to_numpy}
    table, y = makers.get(library, frame.clone)(), GROUPS[:n_rows]
    for fit in (
        Ranking(FisherScore()).fit,
        lambda X, y: tamis.select(X, y, "correlation"),
        lambda X, y: tamis.select(X, y),
    ):
        with pytest.raises(InvalidTable, match=rf"at least 2 rows.* {n_rows}\b"):
            fit(table, y)
    if library != "numpy":
        with pytest.raises(InvalidTable, match=rf"at least 2 rows.* {n_rows}\b"):
            TableSelector(Ranking(FisherScore())).fit(table, y)
    if n_rows == 0 and library != "numpy":
        with pytest.raises(InvalidTable, match="The frame has no rows"):
            tamis.inspect(table)
        with pytest.raises(InvalidTable, match="at least 2 rows"):
            tamis.select(table, target="b", method="correlation")


def test_a_long_representation_does_not_break_a_message_into_lines():
    wrapped = MLPClassifier(hidden_layer_sizes=(10, 20), learning_rate="adaptive", momentum=0.5)
    assert "\n" in repr(wrapped)
    with pytest.raises(TypeError, match=r"Ranking needs a criterion .* momentum=0\.5\)") as caught:
        Ranking(wrapped).fit(np.eye(5), np.arange(5) % 2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", SVC()])
@pytest.mark.parametrize("make", [Auto, partial(Probes, Ranking(FisherScore()))])
def test_an_impossible_number_of_processes_is_refused(make, n_jobs):
    with pytest.raises(InvalidParameter, match="needs n_jobs to be an int other than 0 or None"):
        make(n_jobs=n_jobs).fit(np.arange(20.0).reshape(10, 2), np.arange(10) % 2)
