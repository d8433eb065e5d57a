"""The vote of machines one against one: each votes for the first or the second of its pair."""

from itertools import combinations

import numpy as np

from tamis._arrays import Array, Mask


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Pairs of classes in the order of LIBSVM's machines.

    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(n_classes), 2))


def vote_counts(second: Mask, n_classes: int) -> Array:
    """Votes of each class, where ``second`` says whether a machine prefers the second of its pair.

    Machines are along the last axis, classes along the last of the answer; the winner is the
    ``argmax``, of equals the lowest class, as in LIBSVM. Decision values of an ``SVC`` are positive
    for the *first* class of a pair: there ``second`` is ``~(decisions > 0)``.

    >>> vote_counts(np.array([[True, True, False]]), 3)
    array([[0., 2., 1.]])
    """
    votes = np.zeros((*second.shape[:-1], n_classes))
    for index, (a, b) in enumerate(class_pairs(n_classes)):
        votes[..., a] += ~second[..., index]
        votes[..., b] += second[..., index]
    return votes


def vote_values(f: Array, n_classes: int) -> Array:
    """One value per class: its votes, and its bounded confidence to separate ties, as in SVC.

    Decision values ``f`` are positive for the second class of a pair, one column for each pair.
    """
    confidence = np.zeros((len(f), n_classes))
    for index, (a, b) in enumerate(class_pairs(n_classes)):
        confidence[:, b] += f[:, index]
        confidence[:, a] -= f[:, index]
    return vote_counts(f >= 0, n_classes) + confidence / (3 * (np.abs(confidence) + 1))
