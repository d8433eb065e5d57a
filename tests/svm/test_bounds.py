"""Compiled error bounds of a path, compared with plain numpy."""

import numpy as np

from tamis.compiled.events import EpochLog
from tamis.compiled.margin_set import FREE, LOW
from tamis.compiled.proofs import (
    MarginInverse,
    StepErrors,
    _step_of,
    bound_outputs,
    noise_effects,
)


def test_error_bounds_of_outputs_equal_plain_sums():
    rng = np.random.default_rng(0)
    n_rows, n_points, unit = 9, 4, 0.5
    h, rounding = rng.normal(size=(n_rows, n_points)), rng.random((n_rows, n_points))
    rounding[3, 1] = 1e300  # too large to be an output
    norms, blur = rng.random((2, n_points))
    total, mass = rng.random((2, n_rows))
    known = np.array([1, 2, 6])
    begin, end, error_w, error_b, loose = rng.random((5, len(known)))
    zone_w, zone_b, zone_loose = rng.random((3, len(known) + 1))
    computed = total, mass, blur, rounding, 1e300, 1e304
    parts = known, begin, end, error_w, error_b, loose
    error, zone = bound_outputs(h, unit, norms, computed, parts, (zone_w, zone_b, zone_loose))

    of_rows = (
        total[:, None] + np.outer(mass, blur) + np.where(rounding < 1e300, 0.1 * rounding, 1e304)
    )
    own = np.outer(error_w, norms) + error_b[:, None]
    expected = unit * own + np.maximum(of_rows[known], of_rows[known + 1]) + loose[:, None]
    np.testing.assert_allclose(error, expected, rtol=1e-13)
    moved = np.abs(np.diff(h, axis=0))
    share = np.ones((len(known) + 1, n_rows - 1)) * (
        np.searchsorted(known, np.arange(n_rows - 1))[None] == np.arange(len(known) + 1)[:, None]
    )
    for k, interval in enumerate(known):
        share[k, interval], share[k + 1, interval] = begin[k], 1 - end[k]
    none = np.zeros((1, n_points))
    expected = np.outer(zone_w, norms) + zone_b[:, None]
    expected += np.maximum(np.vstack([none, own]), np.vstack([own, none]))
    expected = unit * expected + zone_loose[:, None] + share @ moved
    for row, z in enumerate(np.searchsorted(known, np.arange(n_rows))):
        expected[z] += of_rows[row]
    np.testing.assert_allclose(zone, expected, rtol=1e-13)


def bordered(K, sign, members):
    """Return the inverse of the margin set's matrix, with zeros for the other variables."""
    A, at = np.zeros((len(K) + 1, len(K) + 1)), np.append(0, members + 1)
    A[1:, 1:], A[0, 1:], A[1:, 0] = np.outer(sign, sign) * K, sign, sign
    inverse = np.zeros_like(A)
    inverse[np.ix_(at, at)] = np.linalg.inv(A[np.ix_(at, at)])
    return inverse, A


def test_bounds_on_an_entering_and_a_leaving_variable_equal_the_products_with_the_inverse():
    rng = np.random.default_rng(1)
    n = 6
    Z, sign = rng.normal(size=(n, 9)), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    K = Z @ Z.T
    # variable 4 enters after interval 0, variable 1 leaves after interval 1
    sets = [np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3, 4]), np.array([0, 2, 3, 4])]
    inverses = [bordered(K, sign, members)[0] for members in sets]
    A = bordered(K, sign, sets[0])[1]
    v = inverses[0] @ A[:, 5]
    entering = -v + np.eye(n + 1)[5]
    leaving = inverses[1][:, 2]
    terms = np.array([entering, leaving])
    scale = np.array([1 / (A[5, 5] - A[5] @ v), -1 / leaving[2]])
    n_terms = np.array([0, 1, 2])
    inverse = MarginInverse(inverses[0], terms, scale, n_terms)
    side = np.full((4, n), LOW, np.int8)
    for k, members in enumerate([*sets, sets[2]]):
        side[k, members] = FREE
    rounding = rng.random((3, n)) * (side[:3] == FREE)
    dx, error_w, error_b = noise_effects(inverse, rounding, 4.0)
    for k in range(3):
        diagonal = np.diagonal(inverses[k])[1:]
        expected = 4 * np.sqrt(rounding[k] ** 2 @ diagonal)
        np.testing.assert_allclose(error_w[k], expected, rtol=1e-9)
        np.testing.assert_allclose(
            error_b[k], 4 * np.sqrt(rounding[k] ** 2 @ inverses[k][0, 1:] ** 2), rtol=1e-9
        )
        np.testing.assert_allclose(
            dx[k], np.sqrt(diagonal) * expected * (rounding[k] > 0), rtol=1e-9, atol=1e-12
        )
    log = EpochLog(np.zeros(4), np.zeros(4), np.zeros((4, n)), side, np.append(n_terms, 2))
    step = rng.random((2, 3, n + 1))
    errors = StepErrors(step[0], step[1], rounding, dx, error_w, error_b, 4.0)
    moving, programme = np.arange(n), (K, sign, np.arange(n))
    for i, k in ((4, 0), (1, 2), (5, 1)):  # the last one neither enters nor leaves
        u = A[:, i + 1] * np.append(1, side[k] == FREE)
        systematic = max(abs(u @ step[0, k]), abs(u @ step[1, k]))
        noise = np.sqrt((((inverses[k] @ u)[1:] * rounding[k]) ** 2).sum())
        found = _step_of(programme, inverse, errors, log, moving, i, i, k)
        np.testing.assert_allclose(found, 1.01 * systematic + 4 * noise, rtol=1e-9)
