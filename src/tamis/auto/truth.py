"""What models of AUTO are to answer, and what they lose by what they say."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, class_codes


class Truth(NamedTuple):
    """What is to be answered for each row: indicators of the classes, or the number itself.

    ``groups`` says which rows belong together, where some do.
    """

    values: Array
    codes: NDArray[np.intp] | None
    groups: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, y: NDArray[Any], task: str, groups: NDArray[np.intp] | None = None) -> "Truth":
        """The target as a task reads it."""
        if task == "regression":
            return cls(np.asarray(y, dtype=float)[:, None], None, groups)
        labels, codes = class_codes(y)
        return cls(np.eye(len(labels))[codes], codes, groups)

    def take(self, rows: Subset) -> "Truth":
        """Of some rows."""
        return Truth(*(None if of is None else of[rows] for of in self))  # type: ignore[arg-type]

    @property
    def is_one(self) -> bool:
        """Whether all rows have one answer."""
        return bool((self.values == self.values[0]).all())


def losses(found: Array, truth: Truth, test: Subset) -> tuple[Array, NDArray[np.bool_] | None]:
    """Squared loss of each row, and for classes whether the greatest share is the wrong one."""
    there = truth.take(test)
    squared = ((found - there.values) ** 2).sum(axis=1)
    return squared, None if there.codes is None else found.argmax(axis=1) != there.codes
