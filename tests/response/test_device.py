"""Sensitivities on a device against altered copies of the rows, on every library."""

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis._namespace import Place, computing_on, host
from tamis.criteria import DensitySensitivity, PosteriorSensitivity, ScoreSensitivity
from tamis.density.series import table
from tamis.exceptions import DeviceWarning
from tamis.response import Permutation, Zero
from tamis.response.calibration import Sigmoids
from tamis.response.device import linked_change
from tamis.response.distances import LaplaceDivergence
from tamis.response.engines import registry
from tamis.svm import NewtonSVC, NewtonSVR

N_ROWS = 40
LIBRARIES = ["numpy", "array_api_strict", "torch"]


@pytest.fixture(params=LIBRARIES)
def place(request):
    if request.param == "numpy":
        return Place(np, "cpu")
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return Place.of(library.zeros(1))


@pytest.fixture(autouse=True)
def small_strips(monkeypatch):
    monkeypatch.setattr(table, "ROWS", (17, 17))


@pytest.fixture
def by_copies(monkeypatch):
    """Use altered copies of the rows for all models."""
    for engine in registry.ENGINES:
        monkeypatch.setattr(engine, "opened", lambda *given: None)


def problem(seed=0):
    """Columns of several widths, a constant, few values, an outlier; a target of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 8))
    X[:, 1] *= 1e-3
    X[:, 2] *= 6
    X[:, 3] = 2.0
    X[:, 4] = rng.integers(0, 3, N_ROWS)
    X[5, 5] = 30.0
    f = X[:, 0] * np.sign(X[:, 2]) + X[:, 6] + 0.3 * rng.normal(size=N_ROWS)
    return X, f


CLASSES = {
    "newton": PosteriorSensitivity(NewtonSVC(gamma=0.1)),
    "svc": PosteriorSensitivity(SVC(gamma=0.05), calibration=0.25, random_state=1),
    "held out": PosteriorSensitivity(NewtonSVC(gamma=0.1), on="held-out"),
    "decisions": PosteriorSensitivity(SVC(gamma=0.1), output="decision"),
    "shuffles": PosteriorSensitivity(NewtonSVC(gamma=0.1), by=Permutation(3), random_state=1),
    "quantiles": PosteriorSensitivity(NewtonSVC(gamma=0.1), n_values=5),
    "zero": PosteriorSensitivity(NewtonSVC(gamma=0.1), by="zero"),
    "scaled": PosteriorSensitivity(make_pipeline(StandardScaler(), SVC(gamma=0.2))),
    "accuracy": ScoreSensitivity(NewtonSVC(gamma=0.1)),
}
REAL = {
    "sd-l": DensitySensitivity(NewtonSVR(gamma=0.1)),
    "sd-g": DensitySensitivity(
        SVR(gamma=0.1, C=3), noise="gaussian", by=Permutation(2), random_state=1
    ),
    "sd-l both ways": DensitySensitivity(SVR(gamma=0.1, C=3), symmetric=True),
    "sd-g both ways": DensitySensitivity(NewtonSVR(gamma=0.1), noise="gaussian", symmetric=True),
    "held out": DensitySensitivity(NewtonSVR(gamma=0.1), on="held-out", n_values=7),
    "r2": ScoreSensitivity(SVR(gamma=0.1, C=3), n_values=4),
    "interpolating": DensitySensitivity(NewtonSVR(1e9, gamma=20.0, epsilon=0.0), n_values=3),
}
SUBSET = np.array([0, 1, 2, 3, 4, 5, 6])


@pytest.mark.filterwarnings("error::tamis.exceptions.DeviceWarning")
@pytest.mark.parametrize("name", CLASSES)
def test_classes_give_the_same_scores_on_a_device(name, place, by_copies):
    X, f = problem()
    _compare(CLASSES[name], X, f > 0, place)


@pytest.mark.filterwarnings("error::tamis.exceptions.DeviceWarning")
@pytest.mark.parametrize("name", REAL)
def test_numeric_targets_give_the_same_scores_on_a_device(name, place, by_copies):
    X, f = problem()
    # if residuals are a millionth, the rounding errors of copies matter
    _compare(REAL[name], X, f, place, 1e-9 if name == "interpolating" else 1e-10)


@pytest.mark.parametrize("machine", [NewtonSVC(gamma=0.1), SVC(gamma=0.1)], ids=str)
def test_several_classes_give_the_same_scores_on_a_device(machine, place, by_copies):
    X, f = problem()
    _compare(PosteriorSensitivity(machine, n_values=4), X, np.digitize(f, [-0.7, 0.7]), place)
    _compare(
        PosteriorSensitivity(OneVsRestClassifier(SVC(gamma=0.1)), n_values=4),
        X, np.digitize(f, [-0.7, 0.7]), place,
    )  # fmt: skip


def _compare(criterion, X, y, place, limit=1e-10):
    """The processor by altered copies, and the device, which may know no column less well."""
    expected = criterion.fit(X, y).loss(SUBSET)
    with computing_on(place):
        found = criterion.fit(X, y).loss(SUBSET)
    assert place.parts["scores"] == [place.name]
    # altered outputs of copies lose digits if they are large compared with their changes
    assert_allclose(found, expected, rtol=0, atol=limit * np.abs(expected).max())
    if criterion.by != "zero":
        assert found[3] == pytest.approx(0, abs=1e-15)


def test_changes_keep_their_digits(place):
    """A column that moves a probability by 1e-12 is known to ten digits of that."""
    f, change = np.array([[-20.0], [0.3], [30.0]]), np.array([1e-12, -3e-9, 0.2, 900.0, -900.0])
    link = Sigmoids(np.array([-1.5]), np.array([0.125])).probabilities
    slope, offset = Decimal("-1.5"), Decimal("0.125")
    whole = place.put(np.broadcast_to(change[:, None], (1, 3, 5, 1)))
    found = host(linked_change(link, place.put(f), whole))[0, ..., 0]

    def p(z):
        return 1 / (1 + (slope * z + offset).exp())

    with localcontext(prec=60):
        exact = [[p(Decimal(x) + Decimal(dx)) - p(Decimal(x)) for dx in change] for x in f[:, 0]]
    assert_allclose(found, np.array(exact, dtype=float), rtol=1e-11)


def test_the_divergence_keeps_its_digits(place):
    u = np.array([0.0, 1e-9, 1e-3, 0.049, 2.0, 50.0])
    statistic = LaplaceDivergence(np.zeros((2, 1)), np.array([-1.0, 1.0]), False)
    terms = statistic.terms(np.zeros((6, 1), dtype=int), place.put(u[:, None, None]), None)
    with localcontext(prec=60):
        exact = [float((-Decimal(x)).exp() - 1 + Decimal(x)) for x in u]
    # next to a change of 1e-9 half of the digits are left, of a term of 5e-19
    assert_allclose(host(terms[1])[:, 0], exact, rtol=1e-12, atol=1e-25)


def device_warnings(criterion, X, y, place, **units):
    """Return the device warnings of two calls, and the loss."""
    with computing_on(place), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        criterion.grouped(units.get("groups")).fit(X, y)
        for _ in range(2):
            loss = criterion.loss(np.arange(criterion.n_units_))
    criterion.grouped(None)
    messages = [str(w.message) for w in caught if issubclass(w.category, DeviceWarning)]
    return messages, loss


@pytest.mark.parametrize(
    ("criterion", "word"),
    [
        (DensitySensitivity(SVR(kernel="poly")), "SVR"),
        (DensitySensitivity(Ridge()), "Ridge"),
        (DensitySensitivity(SVR(gamma=0.1), by="removal"), "without a column"),
        (DensitySensitivity(SVR(gamma=0.1), by=Zero(centres=True)), "to centres"),
        (ScoreSensitivity(SVR(gamma=0.1), scoring="neg_max_error", n_values=2), "means over rows"),
    ],
    ids=str,
)
def test_work_on_the_processor_warns_once(criterion, word, place):
    X, f = problem()
    messages, loss = device_warnings(criterion, X, f, place)
    assert len(messages) == 1
    assert word in messages[0]
    assert "on the CPU" in messages[0]
    assert place.parts["scores"] == ["processor"]
    assert_allclose(loss, criterion.fit(X, f).loss(np.arange(8)), rtol=1e-9)


@pytest.mark.parametrize(
    "criterion",
    [
        PosteriorSensitivity(NewtonSVC(loss="squared_error", gamma=0.1), on="left-out"),
        DensitySensitivity(NewtonSVR(epsilon=0.0, gamma=0.1), on="left-out"),
        PosteriorSensitivity(
            NewtonSVC(loss="squared_error", kernel="linear"), on="left-out", output="decision"
        ),
    ],
    ids=str,
)
def test_leave_one_out_models(criterion, place):
    """The device computes their inverse, the CPU their sensitivity."""
    X, f = problem()
    y = f if isinstance(criterion, DensitySensitivity) else f > 0
    messages, loss = device_warnings(criterion, X, y, place)
    assert len(messages) == 1
    assert "The sensitivity of leave-one-out models" in messages[0]
    assert place.parts == {"training": [place.name], "scores": ["processor"]}
    assert_allclose(loss, criterion.fit(X, y).loss(np.arange(8)), rtol=0, atol=1e-12)


def test_groups_run_on_the_processor(place):
    X, f = problem()
    criterion, groups = DensitySensitivity(NewtonSVR(gamma=0.1)), [[0, 6], [1], [2], [3, 4], [5, 7]]
    messages, loss = device_warnings(criterion, X, f, place, groups=groups)
    assert len(messages) == 1
    assert "groups of columns" in messages[0]
    expected = criterion.grouped(groups).fit(X, f).loss(np.arange(5))
    assert_allclose(loss, expected, rtol=0, atol=1e-10 * expected.max())


@pytest.mark.parametrize(
    ("criterion", "there"),
    [
        (PosteriorSensitivity(NewtonSVC()), True),
        (PosteriorSensitivity(make_pipeline(StandardScaler(), SVC())), True),
        (PosteriorSensitivity(SVC(kernel="linear")), False),
        (PosteriorSensitivity(SVC(), by="derivative"), False),
        (DensitySensitivity(SVR(), by=Zero(centres=True)), False),
        (DensitySensitivity(Ridge()), False),
    ],
    ids=str,
)
def test_who_runs_there(criterion, there):
    assert criterion.runs_on_device is there


def test_the_table_is_copied_to_the_device_once(place):
    """One copy of the table; columns and rows are taken there."""
    if place.library is np:
        pytest.skip("numpy arrays are always on the CPU")
    X, f = problem()
    shapes, put = [], place.put

    def counted(values):
        shapes.append(np.shape(values))
        return put(values)

    place.put = counted
    with computing_on(place):
        criterion = PosteriorSensitivity(NewtonSVC(gamma=0.1), n_values=4).fit(X, f > 0)
        first = criterion.loss(np.arange(8))
        criterion.loss(np.arange(7))
        assert_array_equal(criterion.loss(np.arange(8)), first)
    assert shapes.count((N_ROWS, 8)) == 1
    assert not any(len(shape) == 2 and shape[0] == N_ROWS for shape in shapes[1:])
