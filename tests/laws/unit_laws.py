"""Laws of criteria and searches with columns grouped into units."""

import json
from itertools import combinations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from tamis._arrays import EMPTY
from tamis.contract import BackwardCriterion, ForwardCriterion, Record, SubsetCriterion
from tamis.criteria import MutualInformation, PairInformation, PValue, Scatter, Scored
from tamis.criteria.information import PairwiseInformation
from tamis.criteria.univariate import Univariate
from tamis.density.discrete import coded_columns
from tamis.testing.criterion_laws import TOLERANCE
from tamis.testing.problem import make_table as table
from tamis.testing.search_laws import Stop, outcome

#: Columns of the units of a table of seven columns; those of a unit need not be neighbours.
UNITS = [[0], [1, 4], [2, 3, 6], [5]]
GROUPS = {"pair": [1, 4], "three": [2, 3, 6]}
ALL = np.arange(4)
SOME = [np.array(s, dtype=np.intp) for s in ([], [2], [0, 1, 3])]
SUBSETS = [np.array(s, dtype=np.intp) for k in range(5) for s in combinations(range(4), k)]


def columns_of(subset):
    return np.sort(np.concatenate([EMPTY, *(np.array(UNITS[u], dtype=np.intp) for u in subset)]))


def grouped(criterion):
    return clone(criterion).grouped(UNITS).fit(*table())


def groups_of_one_column_change_nothing(criterion):
    """Units of one column each give the scores of a criterion without groups."""
    X, y = table()
    plain = clone(criterion).fit(X, y)
    single = clone(criterion).grouped([[j] for j in range(7)]).fit(X, y)
    assert_array_equal(single.idle_, plain.idle_)
    for subset in ([2], [1, 4], [0, 2, 5, 6]):
        subset = np.array(subset)
        here = [c.gain(subset, np.setdiff1d(np.arange(7), subset)) for c in (single, plain)
                if isinstance(c, ForwardCriterion)]  # fmt: skip
        here += [c.loss(subset) for c in (single, plain) if isinstance(c, BackwardCriterion)]
        here += [[c.value(subset)] for c in (single, plain) if isinstance(c, SubsetCriterion)]
        for one, other in zip(here[::2], here[1::2], strict=True):
            assert_allclose(one, other, **TOLERANCE)


def a_group_is_worth_what_its_columns_are(criterion):
    """The value of a subset of units is the value of the union of their columns."""
    judge, worth = grouped(criterion), by_columns(criterion)
    for subset in SUBSETS:
        assert_allclose(judge.value(subset), worth(subset), **TOLERANCE)


def by_columns(criterion):
    """Return the value of units from a criterion without groups."""
    X, y = table()
    plain = clone(criterion).fit(X, y)
    if hasattr(criterion, "per_feature"):  # it counts units, like sizes
        inside = by_columns(criterion.criterion)
        return lambda subset: inside(subset) - criterion.per_feature * len(subset)
    if not isinstance(criterion, Univariate):
        return lambda subset: plain.value(columns_of(subset))
    if isinstance(criterion, MutualInformation | PairInformation):
        joint = (
            clone(criterion)
            .set_params(binning="codes", adjusted=True)
            .fit(joint_codes(criterion, X), y)
        )
        scores = joint.scores_
    elif isinstance(criterion, PValue):  # Bonferroni
        p = np.exp(-plain.scores_)
        scores = [-np.log(min(1.0, len(unit) * p[unit].min())) for unit in UNITS]
    else:
        scores = [plain.scores_[unit].max() for unit in UNITS]
    return lambda subset: np.sum([scores[unit] for unit in subset])


def joint_of(criterion):
    """Fit the criterion to the codes of the units, corrected for chance as for groups."""
    X, y = table()
    of_codes = clone(criterion).set_params(binning="codes", adjusted=True)
    return of_codes.fit(joint_codes(criterion, X), y)


def joint_codes(criterion, X):
    """Return one column for each unit, with a code for each combination of levels."""
    codes = coded_columns(X, criterion.n_bins, criterion.binning).codes.T
    return np.column_stack(
        [np.unique(codes[:, unit], axis=0, return_inverse=True)[1].ravel() for unit in UNITS]
    ).astype(float)


def changes_are_differences_of_values(criterion):
    judge = grouped(criterion)
    for subset in SOME:
        others = np.setdiff1d(ALL, subset)
        base = judge.value(subset)
        gains = [judge.value(np.union1d(subset, [j]).astype(np.intp)) - base for j in others]
        assert_allclose(judge.gain(subset, others), gains, **TOLERANCE)
        assert_allclose(judge.gain(subset, others[::-1]), gains[::-1], **TOLERANCE)
        losses = [base - judge.value(subset[subset != j]) for j in subset]
        assert_allclose(judge.loss(subset), losses, **TOLERANCE)
        assert_allclose(judge.values([subset, subset]), base, **TOLERANCE)


def a_bound_is_never_passed(criterion):
    judge = grouped(criterion)
    for subset in SUBSETS[1:]:
        for size in range(1, len(subset) + 1):
            inside = judge.values([np.array(s) for s in combinations(subset, size)])
            bound = judge.bounds([subset, subset], size)
            assert (bound >= inside.max() - 1e-9 * abs(inside.max())).all()


def a_group_is_one_discrete_variable(criterion):
    """A group has the scores of a column that contains its combinations of levels."""
    X, y = table()
    judge = grouped(criterion)
    joint = (
        clone(criterion)
        .set_params(binning="codes", adjusted=True)
        .fit(joint_codes(criterion, X), y)
    )
    for subset in SUBSETS[:-1]:
        others = np.setdiff1d(ALL, subset)
        assert_allclose(judge.gain(subset, others), joint.gain(subset, others), **TOLERANCE)


def scores_depend_on_the_units_alone(criterion):
    """The order of units and of columns does not change the scores."""
    X, y = table()
    if isinstance(criterion, PairwiseInformation | SubsetCriterion):
        order = np.array([3, 0, 6, 1, 5, 2, 4])
        place = np.argsort(order)
        moved = clone(criterion).grouped([np.sort(place[u]) for u in UNITS]).fit(X[:, order], y)
        judge = grouped(criterion)
        for subset in SOME[1:]:
            assert_allclose(prices_of(moved, subset), prices_of(judge, subset), **TOLERANCE)


def prices_of(judge, subset):
    said = [np.empty(0)]
    if isinstance(judge, ForwardCriterion):
        said.append(judge.gain(subset, np.setdiff1d(ALL, subset)))
    if isinstance(judge, BackwardCriterion):
        said.append(judge.loss(subset))
    return np.concatenate(said)


# -- searches: a law takes a function that builds the search -----------------------------------


def a_search_without_groups_ignores_them(make):
    """Groups of one column each, as a mapping and as labels, change nothing."""
    X, y = table()
    plain = make(Scatter("J3"), n_features_to_select=3).fit(X, y)
    for groups in ({f"g{j}": [j] for j in range(7)}, list("abcdefg"), [None] * 7, {}):
        search = make(Scatter("J3"), n_features_to_select=3, feature_groups=groups)
        assert outcome(search.fit(X, y)) == outcome(plain)
        assert_array_equal(search.trace_.values, plain.trace_.values)


def groups_are_taken_or_left(make):
    """Every step is a union of units, with the value of its columns."""
    X, y = table()
    criterion = Scatter("J3").fit(X, y)
    for size in (1, 2, 3):
        search = make(Scatter("J3"), n_features_to_select=size, feature_groups=GROUPS).fit(X, y)
        assert search.trace_.n_units == 4
        assert search.unit_support_.sum() == size
        kept = np.flatnonzero(search.unit_support_)
        assert_array_equal(np.flatnonzero(search.support_), columns_of(kept))
        assert_array_equal(search.get_support(indices=True), columns_of(kept))
        assert search.transform(X).shape[1] == search.n_features_ == len(columns_of(kept))
        assert len(search.order_) == len(search.ranking_) == len(search.scores_) == 4
        assert_array_equal(np.sort(search.order_[:size]), kept)
        for step in search.trace_:
            if not np.isnan(step.value):
                assert_allclose(step.value, criterion.value(columns_of(step.subset)), rtol=1e-9)


class OverUnits(Scored):
    """Criterion defined by a function of units, which the first row of a table identifies."""

    @property
    def monotone(self):
        return True


def a_grouped_search_is_a_search_over_unions(make):
    """The steps are the same as on a table of units, scored by brute force."""
    X, y = table()
    criterion = Scatter("J3").fit(X, y)
    units = np.random.default_rng(0).normal(size=(len(X), 4))
    units[0] = ALL
    over = OverUnits(lambda Z, _: criterion.value(columns_of(Z[0].astype(int))))
    for size, fixed, column in ((1, None, None), (2, None, None), (3, ["pair"], [1])):
        how = {"n_features_to_select": size, "fixed_features": fixed, "feature_groups": GROUPS}
        search = make(Scatter("J3"), **how).fit(X, y)
        how |= {"fixed_features": column, "feature_groups": None, "standardize": False}
        brute = make(over, **how).fit(units, y)
        assert_array_equal(search.unit_support_, brute.support_)
        if "open" not in search.trace_.state:  # tighter bounds find fewer subsets on the way
            assert outcome(search)["subsets"] == outcome(brute)["subsets"]
            assert_allclose(search.trace_.values, brute.trace_.values, rtol=1e-9)


def fixed_features_always_stay(make):
    X, y = table()
    for fixed, units in ((["three"], [2]), ([0, "pair"], [0, 1]), (3, [2])):
        for size in range(len(units), 5):
            search = make(
                Scatter("J3"),
                n_features_to_select=size,
                feature_groups=GROUPS,
                fixed_features=fixed,
            ).fit(X, y)
            assert search.unit_support_[units].all()
            assert search.unit_support_.sum() == size
            assert all(np.isin(units, step.subset).all() for step in search.trace_)
            assert_array_equal(np.sort(search.order_[:size]), np.flatnonzero(search.unit_support_))
            assert_array_equal(search.ranking_ == 1, search.unit_support_)
    search = make(Scatter("J3"), n_features_to_select=3, fixed_features=[6, 1]).fit(X, y)
    assert search.support_[[1, 6]].all()
    assert search.n_features_ == 3


def a_grouped_search_goes_on_where_it_stopped(make):
    X, y = table()
    how = {"feature_groups": GROUPS, "fixed_features": ["pair"]}
    for size in (2, 3):
        whole = make(Scatter("J3"), n_features_to_select=size, **how).fit(X, y)
        watched = make(Scatter("J3"), n_features_to_select=size, **how).set_callbacks(
            seen := Stop(np.inf)
        )
        watched.fit(X, y)
        for after in range(1, seen.seen + 1):
            stopped = make(Scatter("J3"), n_features_to_select=size, **how)
            record = stopped.set_callbacks(Stop(after)).fit(X, y).record_
            stored = Record.from_dict(json.loads(json.dumps(record.to_dict())))
            resumed = make(Scatter("J3"), n_features_to_select=size, **how)
            assert outcome(resumed.resume(X, y, record=stored)) == outcome(whole)
