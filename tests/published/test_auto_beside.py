"""Auto compared with fixed methods, by the stored results of ``auto-1`` and ``auto-2``.

The slow tests of the book compute two realizations of every stored experiment again, to check that
the stored results are current.
"""

import numpy as np
import pytest

from tamis_book.result_files import load_results, results_path


@pytest.fixture(scope="module")
def rows():
    """Return the rows of each table."""
    tables = {}
    for name in ("auto-1", "auto-2"):
        stored = load_results(results_path(name))
        assert stored.is_current
        for table, results in stored.found.results.items():
            tables[table] = list(results.rows())
    return tables


def errors(rows):
    """Return the errors, with a row for each method and a column for each realization."""
    found = {}
    for row in rows:
        found.setdefault(row.method, {})[row.realization] = row.value
    return {method: np.array([of[k] for k in sorted(of)]) for method, of in found.items()}


def is_within_one_standard_error(own, others):
    """Return whether the error is within one standard error of the best method.

    The best method is chosen by the other realizations. The standard error is that of the
    differences, or that of the best method's errors if it is larger.
    """
    n = len(own)
    best = [np.delete(others, k, axis=1).mean(axis=1).argmin() for k in range(n)]
    named = others[best, np.arange(n)]
    spread = max((own - named).std(ddof=1), named.std(ddof=1)) / np.sqrt(n)
    return np.mean(own - named) <= spread


def test_a_clearly_worse_method_is_detected():
    others = np.array([[0.1, 0.2, 0.1, 0.2, 0.1], [0.3, 0.3, 0.4, 0.3, 0.3]])
    assert is_within_one_standard_error(others[0], others)
    assert not is_within_one_standard_error(others[1], others)


def test_auto_is_as_good_as_the_best_fixed_method_on_most_tables(rows):
    good = []
    for of in rows.values():
        by_method = errors(of)
        own = by_method.pop("AUTO")
        assert len(own) == 5
        good.append(is_within_one_standard_error(own, np.array(list(by_method.values()))))
    assert len(good) == 12
    assert sum(good) >= 9


def test_auto_selects_few_columns(rows):
    kept_columns = [row.size for of in rows.values() for row in of if row.method == "AUTO"]
    assert len(kept_columns) == 60
    assert np.median(kept_columns) <= 12
