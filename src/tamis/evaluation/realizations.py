"""Plans: the training and test rows of every realization.

The split of realization 17 depends only on the seed, the name of the data and the number 17. All
methods therefore use the same splits, as paired tests require.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Subset, is_int
from tamis._checks import NONE, Constraint, Constraints, check_parameters, integer
from tamis._seeds import seed_of, stream
from tamis.exceptions import InvalidParameter
from tamis.validation.resamples import Pairs, folds_of, groups_of, parts_of, rows_of

#: Constraint for a number of rows or a share of the rows.
PART = Constraint(
    ("a number of rows", "a share between 0 and 1"),
    lambda value: value >= 1 if is_int(value) else isinstance(value, float) and 0 < value < 1,
)


class Split(NamedTuple):
    """Rows of a single realization.

    Attributes
    ----------
    train, test : array of int
        Training and test rows.
    inner : tuple of (train, test) pairs
        Training and test rows for choosing the number of features. A single pair of training and
        validation rows, or a pair for each inner fold. Empty if the plan has neither.

    Examples
    --------
    >>> split = CrossValidation(4).split(np.arange(8) % 2, "mine", 0)
    >>> len(split.train), len(split.test)
    (6, 2)
    """

    train: Subset
    test: Subset
    inner: Pairs = ()


@dataclass(frozen=True)
class Realizations:
    """Random splits into training rows, test rows and optionally validation rows.

    Parameters
    ----------
    n_realizations : int, default=30
        Number of splits.
    train : int or float, default=0.5
        Number or share of training rows.
    test : int, float or None, default=None
        Number or share of test rows. By default, all remaining rows.
    validation : int, float or None, default=None
        Number or share of rows that are used to choose the number of features.
    inner : int or None, default=None
        Number of folds of the training rows that are used instead of validation rows.
    stratify : bool or None, default=None
        Whether to stratify the splits by class. By default, they are stratified if the target
        consists of classes.
    seed : int, default=0
        Seed of the splits.

    Examples
    --------
    >>> plan = Realizations(30, train=40, test=60, seed=1)
    >>> split = plan.split(np.repeat([0, 1], [50, 150]), "mine", 17)
    >>> len(split.train), len(split.test), int((split.train < 50).sum())
    (40, 60, 10)
    """

    n_realizations: int = 30
    train: int | float = field(default=0.5, kw_only=True)
    test: int | float | None = field(default=None, kw_only=True)
    validation: int | float | None = field(default=None, kw_only=True)
    inner: int | None = field(default=None, kw_only=True)
    stratify: bool | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    _constraints: ClassVar[Constraints] = {
        "n_realizations": integer(1),
        "train": PART,
        "test": PART | NONE,
        "validation": PART | NONE,
        "inner": integer(2) | NONE,
    }

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.inner is not None and self.validation is not None:
            raise InvalidParameter(
                "Realizations needs either validation=... or inner=..., got both. The number of "
                "features is chosen by one of them. Leave one out."
            )

    def __len__(self) -> int:
        return self.n_realizations

    def first(self, n: int) -> Self:
        """Return a plan with only the first ``n`` realizations, whose splits stay the same."""
        return replace(self, n_realizations=n)

    def label(self, realization: int) -> str:
        """Return a text that identifies the split together with its number and the seed."""
        parts = (f"{n}={getattr(self, n)}" for n in ("train", "test", "validation", "inner"))
        return f"Realizations({', '.join(parts)}, stratify={self.stratify})"

    def split(self, y: NDArray[Any], name: str, realization: int) -> Split:
        """Return the rows of a realization. The split depends on ``name``, the name of the data."""
        n_rows = len(y)
        n_train = rows_of(self.train, n_rows)
        n_check = 0 if self.validation is None else rows_of(self.validation, n_rows)
        rest = n_rows - n_train - n_check
        n_test = rest if self.test is None else rows_of(self.test, n_rows)
        if n_train < 1 or n_test < 1 or n_test > rest:
            raise InvalidParameter(
                f"Realizations needs {n_train} training, {n_check} validation and "
                f"{max(n_test, 1)} test rows, and at least one training and one test row, but "
                f"{name} has {n_rows} rows. Ask for fewer rows, or leave test out."
            )
        rng = stream(self.seed, "split", name, realization)
        groups = groups_of(y, self.stratify)
        train, check, test = parts_of(groups, (n_train, n_check, n_test), rng)
        if self.inner is not None:
            seed = seed_of(self.seed, "inner", name, realization)
            return Split(train, test, folds_of(y, train, self.inner, seed))
        return Split(train, test, ((train, check),) if n_check else ())


@dataclass(frozen=True)
class CrossValidation:
    """Stratified cross-validation, optionally repeated.

    With ``inner`` it is nested: the number of features is chosen in inner folds of the training
    rows, and the result is measured on the outer test fold.

    Parameters
    ----------
    n_folds : int, default=10
        Number of outer folds.
    n_repeats : int, default=1
        Number of repeats, each with different folds.
    inner : int or None, default=None
        Number of inner folds.
    seed : int, default=0
        Seed of the folds.
    n_first : int or None, default=None
        Number of realizations (folds) to run. By default, all of them.

    Examples
    --------
    >>> plan = CrossValidation(5, n_repeats=2, inner=3)
    >>> split = plan.split(np.repeat([0, 1], 20), "mine", 7)
    >>> len(plan), len(split.train), len(split.test), len(split.inner)
    (10, 32, 8, 3)
    """

    n_folds: int = 10
    n_repeats: int = field(default=1, kw_only=True)
    inner: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    n_first: int | None = field(default=None, kw_only=True, repr=False)

    _constraints: ClassVar[Constraints] = {
        "n_folds": integer(2),
        "n_repeats": integer(1),
        "inner": integer(2) | NONE,
    }

    def __post_init__(self) -> None:
        check_parameters(self)

    def __len__(self) -> int:
        everything = self.n_folds * self.n_repeats
        return everything if self.n_first is None else min(self.n_first, everything)

    def first(self, n: int) -> Self:
        """Return a plan with only the first ``n`` folds.

        Repeats are added if the plan has fewer than ``n`` folds.
        """
        return replace(self, n_repeats=max(self.n_repeats, -(-n // self.n_folds)), n_first=n)

    def label(self, realization: int) -> str:
        """Return a text that identifies the split together with its number and the seed."""
        return f"CrossValidation({self.n_folds}, inner={self.inner})"

    def split(self, y: NDArray[Any], name: str, realization: int) -> Split:
        """Return the rows of a fold. The split depends on ``name``, the name of the data."""
        repeat, fold = divmod(realization, self.n_folds)
        seed = seed_of(self.seed, "folds", name, repeat)
        train, test = folds_of(y, np.arange(len(y)), self.n_folds, seed)[fold]
        if self.inner is None:
            return Split(train, test)
        seed = seed_of(self.seed, "inner", name, realization)
        return Split(train, test, folds_of(y, train, self.inner, seed))


@dataclass(frozen=True, repr=False, eq=False)
class GivenSplits:
    """Splits that are given as row indices, such as those published with Rätsch's benchmarks.

    Parameters
    ----------
    trains, tests : sequence of array of int
        Training and test rows of every realization.
    seed : int, default=0
        Seed of the methods. The splits do not depend on it.

    Examples
    --------
    >>> plan = GivenSplits([[0, 1, 2], [2, 3, 4]], [[3, 4], [0, 1]])
    >>> len(plan), plan.split(np.zeros(5), "mine", 1).test
    (2, array([0, 1]))
    """

    trains: Sequence[Any]
    tests: Sequence[Any]
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("trains", "tests"):
            parts = tuple(np.asarray(rows, dtype=np.intp) for rows in getattr(self, name))
            object.__setattr__(self, name, parts)
        if len(self.trains) != len(self.tests) or not self.trains:
            raise InvalidParameter(
                "GivenSplits needs training and test rows for the same number of splits, and at "
                f"least one, got {len(self.trains)} and {len(self.tests)}."
            )
        for i, (train, test) in enumerate(zip(self.trains, self.tests, strict=True)):
            n_common = len(np.intersect1d(train, test))
            if not len(train) or not len(test) or n_common:
                raise InvalidParameter(
                    f"GivenSplits needs training and test rows that do not overlap, but split {i} "
                    f"has {len(train)} and {len(test)} with {n_common} in both."
                )

    def __len__(self) -> int:
        return len(self.trains)

    def first(self, n: int) -> Self:
        """Return a plan with only the first ``n`` splits."""
        return replace(self, trains=self.trains[:n], tests=self.tests[:n])

    def label(self, realization: int) -> str:
        """Return a text that identifies the split together with its number and the seed."""
        train, test = self.trains[realization], self.tests[realization]
        digest = sha256(train.tobytes() + b"|" + test.tobytes()).hexdigest()[:16]
        return f"GivenSplits({digest})"

    def split(self, y: NDArray[Any], name: str, realization: int) -> Split:
        """Return the rows of a split."""
        split = Split(self.trains[realization], self.tests[realization])
        least, most = min(map(np.min, split[:2])), max(map(np.max, split[:2]))
        if least < 0 or most >= len(y):
            raise InvalidParameter(
                f"GivenSplits needs rows between 0 and {len(y) - 1}, the rows of {name}, got "
                f"{least if least < 0 else most}."
            )
        return split

    def __repr__(self) -> str:
        return f"<GivenSplits: {len(self)} realizations>"


#: Any plan: it defines the training and test rows of every realization.
Plan = Realizations | CrossValidation | GivenSplits
