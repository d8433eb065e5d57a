"""Gates: selections, degenerate data and messages."""

import warnings
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from tamis._seeds import fix_seeds
from tamis.choice import Threshold
from tamis.contract import Record
from tamis.criteria import FisherScore, Importances
from tamis.datasets import make_class_redundancy
from tamis.exceptions import (
    DegenerateData,
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTarget,
    NotConverged,
    NothingSelected,
    RecordMismatch,
)
from tamis.neural import (
    GateSelector,
    GateSolver,
    NetworkClassifier,
    PerClass,
    Redundancy,
    Sparsity,
)
from tamis.neural.gates import GATES
from tamis.search import Ranking, RecursiveElimination, Then
from tamis.spec import parse, write
from tests.laws import recipe_laws

# most tests ask for more columns than have open gates, and do not test this warning
pytestmark = pytest.mark.filterwarnings("ignore:GateSelector sel:tamis.exceptions.DegenerateData")

X, y = load_iris(return_X_y=True)


def network(hidden=3, **options):
    """Return the default network of gates with a different size."""
    return NetworkClassifier(hidden, **{"decay": 0.01, "combine": "mean"} | options)


QUICK = {"network": network(), "mu": 1, "lam": 5, "random_state": 0}


@pytest.mark.parametrize("scope", [pytest.param("global", marks=pytest.mark.slow), "class"])
def test_it_is_a_scikit_learn_selector(scope):
    selector = GateSelector(
        scope=scope,
        network=network(),
        mu=1,
        lam=1,
        solver=GateSolver(max_iter=30),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateData)
        check_estimator(selector, on_skip=None)


def planted(n=300, noise=6, seed=0):
    """Return three classes that depend on columns 0 and 1.

    Column 2 is a copy of 0, the others are noise.
    """
    draws = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = np.array([[0, 0], [3, 0], [0, 3]])
    X = centres[y] + draws.normal(size=(n, 2))
    return np.column_stack([X, X[:, 0], draws.normal(size=(n, noise))]), y


@pytest.mark.parametrize(
    ("solver", "joint"),
    [
        ("lbfgs", False),
        ("lbfgs", True),
        ("adam", False),
        pytest.param("adam", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [
        {"gate": "linear", "sparsity": "l0"},
        {"gate": "linear", "sparsity": "l1"},
        {"gate": "linear", "sparsity": Sparsity("l0", width=(1.0, 0.1))},
        {"gate": "bell", "sparsity": "bell", "lam": 20},  # noise is not redundant
        {"gate": "sigmoid", "sparsity": "l1"},
        {"gate": "linear", "redundancy": "information"},
        {"gate": "linear", "redundancy": Redundancy("squared", level="class")},
        {"gate": "linear", "network__loss": "squared", "network__activation": "sigmoid"},
    ],
)
def test_every_kind_of_gate_finds_the_useful_columns(kind, joint, solver):
    X, y = planted()
    selector = GateSelector(
        n_features_to_select=3,
        mu=0.5,
        lam=2,
        network=network(5, solver=solver),
        joint=joint,
        solver=solver,
        random_state=0,
    )
    selector.set_params(**kind).fit(X, y)
    assert 1 in selector.order_[:3]
    assert set(selector.order_[:3]) & {0, 2}
    assert np.isfinite(selector.gates_).all()


def test_redundancy_closes_one_of_two_duplicates():
    X, y = planted()
    free, controlled = (
        GateSelector(
            gate="bell", sparsity="bell", mu=0.2, lam=lam, network=network(5), random_state=0
        )
        .fit(X, y)
        .gates_
        for lam in (0.0, 20.0)
    )
    assert min(free[0], free[2]) > 0.9
    assert min(controlled[0], controlled[2]) < 0.1
    assert min(controlled[1], max(controlled[0], controlled[2])) > 0.4
    assert controlled[3:].max() < 0.1


@pytest.mark.parametrize(
    "lam", [pytest.param(1, marks=pytest.mark.slow), 10, pytest.param(100, marks=pytest.mark.slow)]
)
def test_class_level_redundancy_selects_the_pair_that_separates(lam):
    """Columns 1 and 3 are correlated overall and needed together, in ten draws."""
    kept = {"global": 0, "class": 0}
    for draw in range(10):
        X, y, *_ = make_class_redundancy(600, random_state=draw)
        for scope in kept:
            gates = GateSelector(
                n_features_to_select=2,
                scope=scope,
                mu=0,
                lam=lam,
                network=network(5),
                random_state=draw,
            )
            kept[scope] += tuple(gates.fit(X, y).get_support(indices=True)) == (0, 2)
    assert kept["class"] >= 9
    assert kept["global"] <= 2


def test_attributes_agree():
    gates = GateSelector(n_features_to_select=PerClass(1), scope="class", **QUICK).fit(X, y)
    assert gates.class_gates_.shape == (3, 4)
    np.testing.assert_array_equal(gates.gates_, gates.class_gates_.max(axis=0))
    np.testing.assert_array_equal(gates.feature_importances_, gates.gates_)
    tops = {int(row.argmax()) for row in gates.class_gates_}
    assert set(gates.get_support(indices=True)) == tops
    assert set(gates.order_[: len(tops)]) == tops
    assert sorted(gates.order_) == [0, 1, 2, 3]
    assert len({len(term) for term in gates.history_.values()}) == 1
    total = sum(gates.history_[name] for name in ("loss", "sparsity", "redundancy"))
    assert total[-1] < total[0]
    assert gates.network_.score(X, y) > 0.9
    assert gates.path_ is None


def test_the_union_grows_with_the_number_per_class():
    X, y = load_wine(return_X_y=True)
    before = set()
    for k in (1, 2, 3):
        choice = PerClass(k)
        gates = GateSelector(n_features_to_select=choice, scope="class", **QUICK).fit(X, y)
        tops = np.argsort(-gates.class_gates_, axis=1, kind="stable")[:, :k]
        kept = set(gates.get_support(indices=True))
        assert kept == set(tops.ravel())
        assert before <= kept
        before = kept
    everything = GateSelector(n_features_to_select=PerClass(99), scope="class", **QUICK).fit(X, y)
    assert everything.n_features_ == 13


def test_a_number_of_columns_selects_the_best_of_every_class_first():
    X, y = load_wine(return_X_y=True)
    gates = GateSelector(n_features_to_select=5, scope="class", **QUICK).fit(X, y)
    firsts = {int(row.argmax()) for row in gates.class_gates_}
    assert set(gates.order_[: len(firsts)]) == firsts
    bounded = GateSelector(scope="class", gate="bell", sparsity="bell", **QUICK).fit(X, y)
    falling = bounded.gates_[bounded.order_]
    assert np.all(np.diff(falling) <= 1e-9)


def test_a_threshold_selects_open_gates():
    gates = GateSelector(
        n_features_to_select=Threshold(0.9), gate="bell", sparsity="bell", **QUICK
    ).fit(X, y)
    np.testing.assert_array_equal(gates.get_support(), gates.gates_ >= 0.9)
    with pytest.raises(NothingSelected, match=r"threshold 1\.5"):
        gates.set_params(n_features_to_select=Threshold(1.5)).fit(X, y)
    assert not hasattr(gates, "support_")


def test_features_for_a_class_are_sorted_by_their_gates():
    names = np.array(["setosa", "versicolor", "virginica"])
    gates = GateSelector(scope="class", **QUICK).fit(X, names[y])
    found = gates.features_for("virginica")
    row = gates.class_gates_[2]
    assert [f.column for f in found] == list(np.argsort(-row, kind="stable"))
    np.testing.assert_array_equal([f.gate for f in found], row[[f.column for f in found]])
    first = found[0]
    for c in range(3):
        column = X[y == c, first.column]
        np.testing.assert_allclose((first.mean[c], first.spread[c]), (column.mean(), column.std()))
    with pytest.raises(InvalidParameter, match="one of the classes 'setosa'"):
        gates.features_for("rosa")
    with pytest.raises(InvalidParameter, match="one of the classes"):
        gates.features_for(["setosa"])
    with pytest.raises(IncompatibleCriterion, match="scope='class'"):
        GateSelector(**QUICK).fit(X, y).features_for(0)


def test_names_of_columns_are_used():
    frame = load_iris(as_frame=True)
    gates = GateSelector(scope="class", **QUICK).fit(frame.data, frame.target)
    assert gates.features_for(0)[0].name in frame.data.columns
    assert gates.get_feature_names_out()[0] in frame.data.columns


def test_weights_may_differ_by_class():
    X, y = load_wine(return_X_y=True)
    gates = GateSelector(
        scope="class",
        gate="bell",
        sparsity="bell",
        mu=[0, 0, 0],
        lam=[0, 0, 2000],
        network=network(),
    )
    gates.set_params(random_state=0).fit(X, y)
    share = gates.class_gates_.sum(axis=1)
    assert share[2] < 0.5 * min(share[0], share[1])


def test_one_vs_rest_finds_the_columns_of_each_class():
    """Class 1 depends on column 0 or its copy, class 2 on column 1."""
    X, y = planted()
    gates = GateSelector(scope="one-vs-rest", mu=1, lam=1, network=network(5), random_state=0).fit(
        X, y
    )
    assert gates.features_for(1)[0].column in {0, 2}
    assert gates.features_for(2)[0].column == 1


def test_auto_uses_the_best_point_of_the_path():
    X, y = load_wine(return_X_y=True)
    gates = GateSelector(
        n_features_to_select=4, network=network(4), gate="bell", sparsity="bell", mu=1
    )
    gates.set_params(random_state=0).fit(X, y)
    best = gates.path_.best
    assert gates.path_.accuracy[best] == gates.path_.accuracy.max()
    assert gates.lam_[0] == pytest.approx(gates.path_.lam[best], rel=0.3)  # phi of other rows
    straight = clone(gates).set_params(lam=gates.lam_[0]).fit(X, y)
    if best == 0:
        np.testing.assert_allclose(gates.gates_, straight.gates_)
    assert gates.n_features_ == 4


def test_results_are_reproducible_by_seed_and_by_record(tmp_path):
    gates = GateSelector(n_features_to_select=2, scope="class", mu=1, lam=5, network=network())
    gates.fit(X, y)
    gates.record_.save(tmp_path / "record.json")
    again = clone(gates).resume(X, y, record=tmp_path / "record.json")
    np.testing.assert_array_equal(gates.class_gates_, again.class_gates_)
    np.testing.assert_array_equal(gates.order_, again.order_)
    assert Record.load(tmp_path / "record.json").finished
    with pytest.raises(RecordMismatch):
        clone(gates).resume(X + 1, y, record=gates.record_)


def test_the_selector_has_at_most_twelve_parameters():
    """Two more parameters are common to all selections."""
    every = {"feature_groups", "fixed_features"}
    assert len(set(signature(GateSelector).parameters) - every) <= 12


def test_the_network_uses_the_seed_of_the_selector_unless_it_has_its_own():
    for own, used in ((None, 0), (5, 5)):
        gates = GateSelector(**QUICK | {"network": network(random_state=own)}).fit(X, y)
        alone = network(random_state=used).fit(X, y)
        np.testing.assert_allclose(gates.network_.predict_proba(X), alone.predict_proba(X), 1e-6)
    assert QUICK["network"].random_state is None  # the given object is never changed


def test_fixing_seeds_does_not_set_the_seed_of_the_network():
    gates = GateSelector(network=network(), mu=1, lam=5)
    for whole, path in (
        (clone(gates), ""),
        (make_pipeline(clone(gates)), "gateselector__"),
        (RecursiveElimination(Importances(clone(gates))), "criterion__estimator__"),
    ):
        assert f"{path}random_state" in fix_seeds(whole, root=7)
        assert whole.get_params()[f"{path}network__random_state"] is None
    drawn = clone(gates).set_params(network__random_state=np.random.default_rng(0))
    assert "network__random_state" in fix_seeds(drawn, root=7)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1.7e307, 1e-310])
def test_columns_of_any_scale(size):
    stretched = X.copy()
    stretched[:, 1] *= size / np.abs(X[:, 1]).max()
    plain, gates = (GateSelector(scope="class", **QUICK).fit(table, y) for table in (X, stretched))
    np.testing.assert_allclose(gates.gates_, plain.gates_, rtol=1e-4)
    (found,) = (f for f in gates.features_for(0) if f.column == 1)
    spread = [stretched[y == c, 1] / size for c in range(3)]
    np.testing.assert_allclose(found.spread / size, [part.std() for part in spread], rtol=1e-6)
    np.testing.assert_allclose(found.mean / size, [part.mean() for part in spread], rtol=1e-6)


def test_a_training_fold_with_one_class_is_refused():
    chain = make_pipeline(GateSelector(**QUICK), NetworkClassifier(3))
    parts = [(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]
    with pytest.raises(InvalidTarget, match="every sample has the class '0'"):
        cross_val_score(chain, X, y, cv=parts, error_score="raise")


def test_two_rows_suffice_for_gates():
    for settings in ({"mu": 1, "lam": 1}, {}):
        gates = GateSelector(network=network(), random_state=0, **settings)
        gates.fit(X[[0, 149]], y[[0, 149]])
        assert np.isfinite(gates.gates_).all()


def test_it_can_be_written_as_an_expression():
    text = (
        "GateSelector(n_features_to_select=PerClass(2), network=NetworkClassifier(hidden=3, "
        "decay=0.01), scope='class', sparsity=Sparsity(width=(1.0, 0.1)), "
        "redundancy=Redundancy(kind='squared', level='global'), mu=1, lam=20, "
        "solver=GateSolver(kind='adam', max_iter=50))"
    )
    assert write(parse(text)) == text
    assert isinstance(parse("NetworkClassifier(hidden=3)"), NetworkClassifier)


def test_it_works_in_a_pipeline_and_a_grid_search():
    chain = make_pipeline(
        GateSelector(n_features_to_select=2, **QUICK), NetworkClassifier(3, random_state=0)
    )
    grid = {"gateselector__n_features_to_select": [1, 2], "gateselector__network__hidden": [1, 4]}
    found = GridSearchCV(chain, grid, cv=2).fit(X, y)
    assert found.best_score_ > 0.9
    hidden = found.best_estimator_[0].network_.hidden
    assert hidden == found.best_params_["gateselector__network__hidden"]


def test_nested_parameters_can_be_set_if_a_part_is_given_by_name():
    gates = GateSelector(mu=1, lam=5)
    gates.set_params(
        network__hidden=4, sparsity__width=0.2, redundancy__level="class", solver__max_iter=9
    )
    assert write(gates) == (
        "GateSelector(network=NetworkClassifier(hidden=4, decay=0.01, combine='mean'), "
        "sparsity=Sparsity(width=0.2), redundancy=Redundancy(level='class'), mu=1, lam=5, "
        "solver=GateSolver(max_iter=9))"
    )
    gates.set_params(solver="adam", solver__batch_size=10)
    assert (gates.solver.kind, gates.solver.max_iter, gates.solver.batch_size) == ("adam", 1000, 10)
    assert GateSelector().network is None  # nothing is shared
    with pytest.raises(ValueError, match="Invalid parameter"):
        gates.set_params(network__width=1)
    with pytest.raises(InvalidParameter, match="Sparsity needs kind to be"):
        gates.set_params(sparsity="l3", sparsity__width=1).fit(X, y)
    grid = {"network__hidden": [2, 3], "redundancy__kind": ["pearson", "squared"]}
    chain = make_pipeline(GateSelector(mu=1, lam=5), NetworkClassifier(3))
    grid = {f"gateselector__{name}": values for name, values in grid.items()}
    assert GridSearchCV(chain, grid, cv=2).fit(X, y).best_score_ > 0.8


def test_gates_can_guide_recursive_elimination():
    X, y = planted()
    gates = GateSelector(sparsity="l1", mu=0.5, lam=2, network=network(4), random_state=0)
    search = RecursiveElimination(Importances(gates), n_features_to_select=2, step=0.3)
    assert set(search.fit(X, y).get_support(indices=True)) in ({0, 1}, {1, 2})


@pytest.mark.parametrize("scope", ["global", "class"])
@pytest.mark.parametrize("gate", ["linear", "bell"])
def test_gates_of_constant_columns_are_closed(scope, gate):
    sparsity = "bell" if gate == "bell" else "l0"
    constant = np.column_stack([np.full(len(X), 7.0), X])
    constant[y == 1, 2] = 3.0  # no variance inside one class
    for weights in ({"mu": 0, "lam": 0}, {"mu": 1, "lam": 10}):
        gates = GateSelector(
            scope=scope, gate=gate, sparsity=sparsity, network=network(), random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateData)  # a class may need no column
            gates.set_params(**weights).fit(constant, y)
        assert gates.gates_[0] == 0
        assert gates.order_[-1] == 0
        assert np.isfinite(gates.gates_).all()


def test_classes_with_two_rows_cause_a_warning():
    few = np.r_[np.arange(0, 30), 50:80, 100, 101]
    with pytest.warns(DegenerateData, match="2 has fewer than 5 rows"):
        gates = GateSelector(scope="class", **QUICK).fit(X[few], y[few])
    assert np.isfinite(gates.class_gates_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        over_all = Redundancy("pearson", level="global")
        GateSelector(scope="class", redundancy=over_all, **QUICK).fit(X[few], y[few])


@pytest.mark.parametrize("scope", ["global", "class"])
def test_selected_columns_with_closed_gates_cause_a_warning(scope):
    gates = GateSelector(scope=scope, n_features_to_select=2, mu=100, lam=0, network=network())
    with pytest.warns(DegenerateData, match="selects 2 column.s., but only . of the gates"):
        gates.set_params(random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gates.set_params(mu=0.05, scope="global").fit(X, y)


@pytest.mark.parametrize("row", [50, 120])  # a class of one row: the middle one, the last one
def test_auto_works_with_a_class_of_one_row(row):
    few = np.r_[0:20, row, 100:119] if row < 100 else np.r_[0:20, 50:70, row]
    for settings in ({"scope": "class"}, {"redundancy": Redundancy(level="class")}):
        gates = GateSelector(network=network(), random_state=0, **settings)
        with pytest.warns(DegenerateData, match="has fewer than 5 rows"):
            gates.fit(X[few], y[few])
        assert np.isfinite(gates.gates_).all()


def test_mini_batches_find_the_same_columns():
    X, y = planted()
    gates = GateSelector(
        n_features_to_select=3,
        solver=GateSolver("adam", batch_size=50, max_iter=200),
        mu=0.5,
        lam=0,
        network=network(5, solver="adam", batch_size=50),
    )
    for scope in ("global", "class"):
        gates.set_params(scope=scope, random_state=0).fit(X, y)
        assert 1 in gates.order_[:3]
        assert set(gates.order_[:3]) & {0, 2}


def test_the_requested_level_of_redundancy_is_used():
    """The columns are duplicates only inside classes, so they are redundant by class."""
    X, y, *_ = make_class_redundancy(300, random_state=0)
    cost = {}
    for level in ("global", "class"):
        gates = GateSelector(
            redundancy=Redundancy(level=level),
            mu=0,
            lam=1,
            network=network(),
            solver=GateSolver(max_iter=1),
            random_state=0,
        )
        cost[level] = gates.fit(X, y).history_["redundancy"][0]
    inside = np.mean([np.abs(np.corrcoef(X[y == c].T)) for c in range(3)], axis=0)
    for level, phi in (("global", np.abs(np.corrcoef(X.T))), ("class", inside)):
        assert cost[level] == pytest.approx((phi.sum() - 3) / 6)  # all gates at 1


def test_an_annealed_width_ends_at_the_second_value():
    annealed = Sparsity(width=(1.0, 0.1))
    gates = GateSelector(mu=1, lam=0, sparsity=annealed, network=network(), random_state=0)
    gates.fit(X, y)
    cost = np.mean(1 - np.exp(-(gates.gates_**2) / (2 * 0.1**2)))
    assert gates.history_["sparsity"][-1] == pytest.approx(cost, rel=1e-6)


def test_divergence_causes_a_warning_and_no_nan():
    wild = {"learning_rate": 1e100}
    gates = GateSelector(
        solver=GateSolver("adam", **wild),
        mu=1,
        lam=5,
        network=network(solver="adam", **wild),
        random_state=0,
    )
    with pytest.warns(NotConverged, match="smaller learning_rate"):
        gates.fit(X, y)
    assert np.isfinite(gates.gates_).all()


def test_weights_that_overflow_are_refused():
    with pytest.raises(InvalidParameter, match="finite objective with all gates open"):
        GateSelector(mu=1.7e308, lam=1.7e308, network=network(), random_state=0).fit(X, y)


def test_gates_select_with_more_columns_than_rows():
    X, y = make_classification(30, 300, n_informative=5, random_state=0)
    for scope in ("global", "class"):
        gates = GateSelector(n_features_to_select=5, scope=scope, **QUICK).fit(X, y)
        assert gates.n_features_ == 5


@pytest.mark.parametrize("scope", ["global", "class"])
def test_bounded_gates_are_widest_for_relevant_columns(scope):
    """Long steps do not close them, and other open gates do not hide them."""
    problem = recipe_laws.wide(n=40, d=100)
    bell = GateSelector(gate="bell", sparsity="bell", scope=scope, mu=1, lam=5, random_state=0)
    bell.set_params(n_features_to_select=8).fit(problem.X, problem.y)
    assert recipe_laws.found(bell, problem) == 1
    assert np.sum(bell.gates_ > 0.5) > 2 * 8
    assert bell.gates_.max() == 1


@pytest.mark.parametrize("kind", ["bell", "sigmoid"])
def test_fully_open_gates_are_ranked_by_their_effect_on_the_loss(kind):
    gate, rng = GATES[kind], np.random.default_rng(0)
    gates, pull = rng.uniform(-1, 1, size=(3, 2, 8)), rng.normal(size=(3, 2, 8))
    gates[:, :, :4] = 0.99 + 0.01 * rng.random((3, 2, 4))
    told = gate.spread_open(gates, pull)
    np.testing.assert_array_equal(told[:, :, 4:], np.abs(gates[:, :, 4:]))
    for run in range(3):
        held, width = np.maximum(pull, 0)[run, :, :4].ravel(), told[run, :, :4].ravel()
        assert (np.diff(width[held.argsort()]) >= 0).all()
        assert width.max() == 1
        assert (width >= 0.99).all()
    linear = GATES["linear"].spread_open(gates, pull)
    np.testing.assert_array_equal(linear, np.abs(gates))


def test_one_column():
    gates = GateSelector(n_features_to_select=1, **QUICK).fit(X[:, :1], y)
    assert gates.get_support().all()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"gate": "step"}, "gate to be 'linear', 'bell' or 'sigmoid', got 'step'"),
        ({"scope": "row"}, "scope to be 'global', 'class'"),
        ({"task": "regression"}, "task to be 'auto' or 'classification', got 'regression'"),
        ({"sparsity": "l2"}, "sparsity to be 'l0'"),
        ({"sparsity": "bell"}, "gate='bell'"),
        ({"redundancy": "spearman"}, "redundancy to be 'pearson'"),
        ({"mu": -1}, "mu to be a number of at least 0, one such number for each class or 'auto'"),
        ({"lam": "much"}, "lam to be a number of at least 0"),
        ({"lam": [1, 2]}, "needs 1 value.s. of lam, got 2"),
        ({"mu": [1, 2], "scope": "class"}, "needs 3 value.s. of mu, got 2"),
        ({"mu": [1, 2, 3], "lam": "auto", "scope": "class"}, "if the other weight is 'auto'"),
        ({"sparsity": Sparsity(width=0)}, "width to be a number above 0 or a pair of them"),
        ({"sparsity": Sparsity(width=(1, 2, 3))}, "width to be a number above 0 or a pair of them"),
        ({"sparsity": Sparsity(width=[0.3])}, "width to be a number above 0 or a pair of them"),
        ({"sparsity": Sparsity(width="wide")}, "width to be a number above 0 or a pair of them"),
        ({"sparsity": Sparsity("l2")}, "Sparsity needs kind to be 'l0'"),
        ({"sparsity": None}, r"or Sparsity\(...\), got None"),
        ({"redundancy": Redundancy(level="row")}, "Redundancy needs level to be 'global'"),
        ({"redundancy": 1}, r"or Redundancy\(...\), got 1"),
        ({"lam": "5"}, "lam to be a number of at least 0"),
        ({"joint": "no"}, "joint to be True or False"),
        ({"network": network(0)}, "hidden"),
        ({"network": 10}, r"network to be a NetworkClassifier\(...\) or None, got 10"),
        ({"solver": "sgd"}, r"'lbfgs', 'adam' or GateSolver\(...\), got 'sgd'"),
        ({"solver": GateSolver("sgd")}, "GateSolver needs kind to be 'lbfgs'"),
        ({"solver": GateSolver(max_iter=0)}, "max_iter"),
        ({"solver": GateSolver(tol=-1)}, "tol to be a number of at least 0"),
        ({"solver": GateSolver("adam", learning_rate=0)}, "learning_rate to be a number above 0"),
        ({"solver": GateSolver("adam", batch_size=0)}, "batch_size to be an int of at least 1"),
        ({"n_features_to_select": 5}, "between 1 and 4"),
    ],
)
def test_invalid_parameters_are_refused(wrong, said):
    with pytest.raises(InvalidParameter, match=said):
        GateSelector(**({"mu": 1, "lam": 1} | wrong)).fit(X, y)


def test_unsupported_choices_are_refused():
    with pytest.raises(IncompatibleCriterion, match="PerClass needs gates for each class"):
        GateSelector(n_features_to_select=PerClass(1)).fit(X, y)
    with pytest.raises(IncompatibleCriterion, match="GateSelector only ranks"):
        GateSelector(n_features_to_select="best").fit(X, y)
    with pytest.raises(InvalidParameter, match="n_features to be an int of at least 1, got 0"):
        GateSelector(n_features_to_select=PerClass(0), scope="class").fit(X, y)


def test_targets_that_are_not_classes_are_refused():
    with pytest.raises(InvalidTarget, match="holds real numbers"):
        GateSelector().fit(X, X[:, 0])
    with pytest.raises(InvalidTarget, match="at least two classes"):
        GateSelector().fit(X, np.zeros(len(X)))


def test_a_failed_fit_clears_the_previous_results():
    gates = GateSelector(**QUICK).fit(X, y)
    with pytest.raises(InvalidTarget):
        gates.fit(X, np.zeros(len(X)))
    assert not hasattr(gates, "gates_")


def test_two_columns_of_wdbc_predict_well():
    X, y = load_breast_cancer(return_X_y=True)
    gates = GateSelector(n_features_to_select=2, mu=1, lam=10, random_state=0)
    chain = make_pipeline(gates, NetworkClassifier(random_state=0))
    assert cross_val_score(chain, X, y, cv=3).mean() > 0.9


def test_after_a_filter_results_refer_to_the_original_columns():
    X, y = planted(noise=40)
    gates = GateSelector(n_features_to_select=2, **QUICK)
    search = Then(Ranking(FisherScore(), n_features_to_select=8), gates).fit(X, y)
    assert set(search.get_support(indices=True)) in ({0, 1}, {1, 2})
    assert sorted(search.order_) == list(range(X.shape[1]))
    again = clone(search).resume(X, y, record=search.record_)
    np.testing.assert_array_equal(again.order_, search.order_)
    expression = write(search)
    assert write(parse(expression)) == expression


def test_metadata_are_refused():
    with pytest.raises(InvalidParameter, match="GateSelector cannot use sample_weight"):
        GateSelector(**QUICK).fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(InvalidParameter, match="cannot use groups"):
        Then(Ranking(FisherScore()), GateSelector(**QUICK)).fit(X, y, groups=y)
