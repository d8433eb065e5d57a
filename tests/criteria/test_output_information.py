"""Output information compared with its formula and with altered copies of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import confusion_matrix, mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from tamis._arrays import EMPTY
from tamis.criteria import OutputInformation
from tamis.criteria.output_information import information
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidTarget
from tamis.search import Forward, RecursiveElimination


def network(**params):
    given = {"activation": "tanh", "solver": "lbfgs", "max_iter": 1000, "random_state": 3}
    return MLPClassifier(**{"hidden_layer_sizes": (4,)} | given | params)


def problem(n_classes):
    X, y = load_wine(return_X_y=True)
    keep = y < n_classes
    return scale(X[keep][:, :7]), y[keep]


def written_out(net, V, y):
    """r_k = I a_k / sum a, s_j = sum_k r_k |w_jk| sd(x_j) / sum_i |w_ik| sd(x_i)."""
    bits = mutual_info_score(y, net.predict(V)) / np.log(2)
    (w, v), (b, _) = net.coefs_, net.intercepts_
    h = np.tanh(V @ w + b)
    m, d = len(v), V.shape[1]
    a = np.zeros(m)
    for k in range(m):
        if v.shape[1] == 1:  # one logistic output: its logit is that of class 1 minus class 0
            a[k] = h[:, k].std() * abs(v[k, 0])
        else:
            a[k] = h[:, k].std() * sum(abs(c - v[k].mean()) for c in v[k])
    s = np.zeros(d)
    for k in range(m):
        total = sum(abs(w[i, k]) * V[:, i].std() for i in range(d))
        for j in range(d):
            s[j] += bits * a[k] / a.sum() * abs(w[j, k]) * V[:, j].std() / total
    return s, bits


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("subset", [[2], [0, 3, 6], range(7)])
def test_shares_equal_the_formula(n_classes, subset):
    X, y = problem(n_classes)
    criterion = OutputInformation(network(), random_state=0).fit(X, y)
    subset = np.array(subset)
    rows, rest = criterion.train_rows_, criterion.validation_rows_
    net = network().fit(X[np.ix_(rows, subset)], y[rows])
    expected, bits = written_out(net, X[np.ix_(rest, subset)], y[rest])
    assert_allclose(criterion.loss(subset), expected, rtol=1e-4)  # rounding grows in training
    assert criterion.information(subset) == pytest.approx(bits, abs=1e-11)
    assert criterion.loss(subset).sum() == pytest.approx(bits, abs=1e-11)
    assert bits > 0


def test_a_logistic_output_is_equivalent_to_a_softmax_of_two():
    """The weights v, (0, v) and (-v/2, v/2) give every hidden unit the same share."""
    v = np.array([[0.3], [-2.0], [1.1]])
    two = np.column_stack([-v / 2, v / 2])
    spread = np.abs(two - two.mean(axis=1, keepdims=True)).sum(axis=1)
    assert_allclose(spread, np.abs(v[:, 0]))


@pytest.mark.parametrize("hidden", [(), (5,), (5, 3), (4, 4, 2)])
@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic", "identity"])
def test_shares_add_up_for_any_number_of_layers(hidden, activation):
    X, y = problem(3)
    net = network(hidden_layer_sizes=hidden, activation=activation, alpha=1.0)
    criterion = OutputInformation(net, random_state=0).fit(X, y)
    credit = criterion.loss(np.arange(7))
    assert (credit >= 0).all()
    assert credit.sum() == pytest.approx(criterion.information(np.arange(7)), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(
    "model",
    [
        network(),
        network(hidden_layer_sizes=(5, 3)),
        LogisticRegression(),
        KNeighborsClassifier(3),
        SVC(),
        make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_knockout_agrees_with_brute_force(model, n_classes):
    X, y = problem(n_classes)
    criterion = OutputInformation(model, credit="knockout", random_state=1).fit(X, y)
    subset = np.array([0, 2, 3, 6])
    rows, rest = criterion.train_rows_, criterion.validation_rows_
    fitted = model.fit(X[np.ix_(rows, subset)], y[rows])
    V, means = X[np.ix_(rest, subset)], X[:, subset].mean(axis=0)
    expected = []
    for j in range(4):
        altered = V.copy()
        altered[:, j] = means[j]
        before, after = (mutual_info_score(y[rest], fitted.predict(Z)) for Z in (V, altered))
        expected.append((before - after) / np.log(2))
    assert_allclose(criterion.loss(subset), expected, atol=1e-11)


def test_information_is_computed_from_confusion_matrices():
    y = np.array([0, 0, 1, 1, 2, 2, 2, 1])
    answers = np.array([0, 1, 1, 1, 2, 0, 2, 1])
    counts = confusion_matrix(y, answers).astype(float)
    expected = mutual_info_score(y, answers) / np.log(2)
    assert information(counts) == pytest.approx(expected)
    assert_allclose(information(np.stack([counts, np.eye(3), np.ones((3, 3))])),
                    [expected, np.log2(3), 0], atol=1e-12)  # fmt: skip
    assert information(np.outer([3.0, 1.0, 4.0], [5.0, 0.0, 2.0])) == 0


def test_halves_are_stratified_and_do_not_depend_on_the_subset():
    X, y = load_iris(return_X_y=True)
    criterion = OutputInformation(validation=0.4, random_state=0).fit(X, y)
    assert_array_equal(np.bincount(y[criterion.validation_rows_]), [20, 20, 20])
    together = np.concatenate([criterion.train_rows_, criterion.validation_rows_])
    assert_array_equal(np.sort(together), np.arange(150))
    other = OutputInformation(validation=0.4, random_state=1).fit(X, y)
    assert not np.array_equal(other.validation_rows_, criterion.validation_rows_)


def test_groups_stay_together():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) % 10
    criterion = OutputInformation(random_state=0).fit(X, y, groups=groups)
    assert not set(groups[criterion.train_rows_]) & set(groups[criterion.validation_rows_])


def test_weights_are_used_if_the_estimator_accepts_them():
    X, y = problem(2)
    criterion = OutputInformation(LogisticRegression(), credit="knockout", random_state=0)
    heavy = np.where(np.arange(len(y)) % 2 == 0, 1.0, 0.0)
    weighted = criterion.fit(X, y, sample_weight=heavy)
    rows, rest = weighted.train_rows_, weighted.validation_rows_
    fitted = LogisticRegression().fit(X[rows], y[rows], sample_weight=heavy[rows])
    seen = rest[heavy[rest] > 0]
    expected = mutual_info_score(y[seen], fitted.predict(X[seen])) / np.log(2)
    assert weighted.information(np.arange(7)) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("credit", ["shares", "knockout"])
def test_a_loss_is_a_function_of_the_subset(credit):
    X, y = problem(3)
    criterion = OutputInformation(credit=credit, random_state=0).fit(X, y)
    subsets = [np.array([1, 2]), np.arange(7), np.array([0, 2, 5])]
    there = [criterion.loss(subset) for subset in subsets]
    again = OutputInformation(credit=credit, random_state=0).fit(X, y)
    back = [again.loss(subset) for subset in subsets[::-1]][::-1]
    for one, two in zip(there, back, strict=True):
        assert_array_equal(one, two)


def test_a_search_over_hyper_parameters_is_run_once_and_again_by_tune():
    X, y = problem(2)
    grid = GridSearchCV(network(), {"alpha": [0.1, 1.0]}, cv=3)
    criterion = OutputInformation(grid, random_state=0).fit(X, y)
    assert criterion.estimator_.alpha in (0.1, 1.0)
    assert set(criterion.tune(np.array([0, 1]))) == {"alpha"}
    assert criterion.loss(np.arange(3)).shape == (3,)


def test_a_pipeline_that_keeps_its_columns_is_accepted():
    X, y = problem(3)
    piped = OutputInformation(make_pipeline(StandardScaler(), network()), random_state=0)
    subset = np.array([0, 2, 5])
    # powers of two, which lose no digits: rounding would grow in training
    credit = piped.fit(X * 2.0 ** np.arange(7), y).loss(subset)
    assert_allclose(credit, piped.fit(X, y).loss(subset), rtol=1e-9)
    assert credit.sum() == pytest.approx(piped.information(subset), rel=1e-9)


def test_a_network_without_information_still_ranks_columns():
    """The network never predicts rare classes, so I = 0, but its weights differ."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), (np.arange(60) < 4).astype(int)
    criterion = OutputInformation(network(alpha=100.0), random_state=0).fit(X, y)
    credit = criterion.loss(np.arange(4))
    assert criterion.information(np.arange(4)) == 0
    assert len(np.unique(credit)) == 4
    assert 0 < credit.sum() < 1e-9


def test_constant_columns_get_no_credit():
    X, y = problem(2)
    X = np.column_stack([X[:, :2], np.zeros(len(X)), np.full(len(X), 7.0)])
    criterion = OutputInformation(random_state=0).fit(X, y)
    credit = criterion.loss(np.arange(4))
    assert np.isfinite(credit).all()
    assert credit[2] == credit[3] == 0
    nothing = criterion.loss(np.array([2, 3]))
    assert np.isfinite(nothing).all()
    assert criterion.information(EMPTY) == 0


def test_labels_may_be_text():
    X, y = load_iris(return_X_y=True)
    plain = OutputInformation(random_state=0).fit(X, y)
    named = OutputInformation(random_state=0).fit(X, np.array(["ash", "beech", "cedar"])[y])
    assert_array_equal(named.loss(np.arange(4)), plain.loss(np.arange(4)))


class TestRefusals:
    def test_shares_need_a_network(self):
        X, y = problem(2)
        for model in (SVC(), make_pipeline(StandardScaler(), SVC())):
            with pytest.raises(IncompatibleCriterion, match=r"MLPClassifier.*credit='knockout'"):
                OutputInformation(model).fit(X, y)

    def test_shares_need_a_pipeline_that_keeps_its_columns(self):
        X, y = problem(2)
        criterion = OutputInformation(make_pipeline(PCA(2), network())).fit(X, y)
        with pytest.raises(IncompatibleCriterion, match="not PCA, which makes new ones"):
            criterion.loss(np.arange(7))

    def test_regressors_are_refused(self):
        X, y = problem(2)
        with pytest.raises(IncompatibleCriterion, match="needs a classifier, not Ridge"):
            OutputInformation(Ridge(), credit="knockout").fit(X, y)

    @pytest.mark.parametrize(
        ("params", "sentence"),
        [
            ({"credit": "share"}, "credit to be 'shares' or 'knockout', got 'share'"),
            ({"validation": 1.0}, r"validation to be a number in \(0, 1\), got 1.0"),
            ({"validation": 50}, "validation to be a number"),
            ({"estimator": MLPClassifier}, "got the class MLPClassifier"),
        ],
    )
    def test_parameters(self, params, sentence):
        X, y = problem(2)
        with pytest.raises(InvalidParameter, match=sentence):
            RecursiveElimination(OutputInformation(**params)).fit(X, y)

    def test_a_class_with_a_single_row_is_refused(self):
        X, y = problem(2)
        y = y.copy()
        y[0] = 9
        with pytest.raises(InvalidTarget, match="two rows of each class"):
            OutputInformation().fit(X, y)

    def test_too_few_rows_on_one_side_of_the_split_are_refused(self):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(InvalidParameter, match="leaves 2 on one"):
            OutputInformation(validation=0.01).fit(X, y)

    def test_a_forward_search_is_refused(self):
        with pytest.raises(IncompatibleCriterion, match="only scores removals"):
            Forward(OutputInformation()).fit(*problem(2))


def test_elimination_selects_the_informative_columns():
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    X = np.column_stack([X[:, [7, 20, 21]], rng.normal(size=(len(X), 3))])
    for credit in ("shares", "knockout"):
        criterion = OutputInformation(credit=credit, random_state=0)
        search = RecursiveElimination(criterion, n_features_to_select=3).fit(X, y)
        assert_array_equal(search.get_support(indices=True), [0, 1, 2])
