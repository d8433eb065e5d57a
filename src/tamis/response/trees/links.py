"""From the sums of leaves to what a model answers: predictions, probabilities, classes."""

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from tamis._arrays import Array, Mask
from tamis.response.trees.forest import Trees


def _logistic(raw: Array) -> Array:
    """1 / (1 + exp(-raw)); numpy's exponential is vectorised, scipy's logistic function is not."""
    found = np.negative(raw)
    with np.errstate(over="ignore"):  # the answer is 0 there
        np.exp(found, out=found)
    found += 1
    return np.divide(1, found, out=found)


LINKS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda raw: raw,
    "logistic": _logistic,
    "softmax": lambda raw: softmax(raw, axis=-1),
    "exponential": np.exp,
    "signed square": lambda raw: np.sign(raw) * raw**2,
}
#: Leaves that are whole multiples of this (as 0 and 1 are) have sums without rounding.
GRAIN = 2.0**-20


class Answer:
    """What one method of a model gives for rows with some sums.

    ``method`` is "predict", "predict_proba" (of two classes the second alone), "decision_function",
    or "codes": the class, of two classes 1 where it is the second, of more one column for each.
    """

    def __init__(self, trees: Trees, method: str):
        self.trees, self.method = trees, method
        # sums of whole multiples are exact, and a tie is the model's own tie
        exact = trees.link == "identity" and bool((trees.values % GRAIN == 0).all())
        self.rounds = method == "codes" and not exact

    def __call__(self, sums: Array) -> Array:
        raw = sums if self.trees.divisor == 1 else sums / self.trees.divisor
        if self.method == "decision_function":
            return raw
        if self.method == "codes":
            return self._codes(raw)
        return LINKS[self.trees.link](raw if self.trees.slope == 1 else raw * self.trees.slope)

    @property
    def _border(self) -> float:
        return 0.5 if self.trees.link == "identity" else 0.0

    def _codes(self, raw: Array) -> Array:
        if raw.shape[-1] == 1:
            return (raw > self._border).astype(np.float64)
        return np.eye(raw.shape[-1])[raw.argmax(axis=-1)]

    def doubtful(self, sums: Array) -> Mask:
        """Rows whose class hangs on the rounding of their sums: the model itself must say."""
        if not self.rounds:
            return np.zeros(sums.shape[:-1], dtype=bool)
        raw = sums / self.trees.divisor
        if raw.shape[-1] == 1:
            lead, size = raw[..., 0] - self._border, np.abs(raw[..., 0])
        else:
            top = np.partition(raw, -2, axis=-1)
            lead, size = top[..., -1] - top[..., -2], np.abs(top[..., -1])
        return np.abs(lead) <= self.trees.tolerance * np.maximum(size, 1.0)
