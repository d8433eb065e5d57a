"""Pages of tables and selections that are not as usual."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression

from tamis.criteria import Correlation, CoxScore, FisherScore, Scatter
from tamis.report import report, resampled
from tamis.search import Genetic, Ranking

pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 8)), np.repeat(["a", "b"], 30)


def ranked(table, target, criterion=None, n=3):
    criterion = FisherScore() if criterion is None else criterion
    return Ranking(criterion, n_features_to_select=n).fit(table, target)


def with_gaps():
    table = X.copy()
    table[::7, 2] = np.nan
    table[:, 5] = np.nan
    table[3, 1] = np.inf
    return report(ranked(X, Y), table, Y)


def with_a_constant_that_is_kept():
    chosen, table = ranked(X, Y), X.copy()
    table[:, chosen.order_[0]] = 4.0
    return report(chosen, table, Y)


def of_a_sparse_table():
    table = sparse.csr_array(np.maximum(X, 0))
    return report(ranked(table, X[:, 0], Correlation()), table, X[:, 0])


def of_a_censored_target():
    happened = zip(RNG.random(60) > 0.4, RNG.exponential(size=60), strict=True)
    target = np.array(list(happened), dtype=[("event", bool), ("time", float)])
    return report(ranked(X, target, CoxScore()), X, target)


def of_enormous_numbers():
    return report(ranked(X * 1e200, X[:, 0], Correlation()), X * 1e200, X[:, 0])


def with_all_columns_kept():
    chosen = ranked(X, Y, n=8)
    return report(chosen, X, Y, results=resampled(chosen, X, Y, 2))


def of_one_column_and_one_resample():
    chosen = ranked(X[:, :1], Y, n=1)
    return report(chosen, X[:, :1], Y, results=resampled(chosen, X[:, :1], Y, 1))


def of_a_guest():
    return report(RFE(LogisticRegression(), n_features_to_select=3).fit(X, Y), X, Y)


def of_a_search_that_values_subsets_only():
    search = Genetic(Scatter("J3"), n_features_to_select=3, random_state=0)
    return report(search.fit(X, Y), X, Y)


@pytest.mark.parametrize(
    "gathered",
    [
        with_gaps,
        with_a_constant_that_is_kept,
        of_a_sparse_table,
        of_a_censored_target,
        of_enormous_numbers,
        with_all_columns_kept,
        of_one_column_and_one_resample,
        of_a_guest,
        of_a_search_that_values_subsets_only,
    ],
)
def test_there_is_a_page_without_a_number_that_is_none(gathered):
    html = gathered().html()
    assert html.endswith("</html>")
    text = html.split("<main>")[1].split('id="data"')[0]
    assert ">nan" not in text
    assert " nan" not in text
    assert "NaN" not in text
