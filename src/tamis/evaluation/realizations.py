"""Which rows train and which test: plans whose splits are drawn by label.

The split of realization 17 follows from the seed, the name of the data and the number 17 alone:
neither the method, nor the order of the work, nor how many realizations were asked for plays a
part. Every method therefore sees the same splits, which is what paired tests assume.
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

#: A number of rows, or a share of all.
PART = Constraint(
    ("a number of rows", "a share between 0 and 1"),
    lambda value: value >= 1 if is_int(value) else isinstance(value, float) and 0 < value < 1,
)


class Split(NamedTuple):
    """Rows of one realization.

    Attributes
    ----------
    train, test : array of int
        The rows that everything is learned from, and those it is measured on.
    inner : tuple of (fit, check) pairs
        Rows on which the number of features is chosen: the training and a validation part, or the
        folds of the training part. Empty where the plan has neither.
    """

    train: Subset
    test: Subset
    inner: Pairs = ()


@dataclass(frozen=True)
class Realizations:
    """Random splits into a training, a test and perhaps a validation part.

    Parameters
    ----------
    n_realizations : int, default=30
        How many splits.
    train : int or float, default=0.5
        Number of training rows, or their share of all rows.
    test : int, float or None
        Number or share of test rows; None for all that remain.
    validation : int, float or None
        Number or share of rows on which the number of features is chosen.
    inner : int or None
        Folds of the training part on which the number of features is chosen instead.
    stratify : bool or None
        Whether every part has the classes in the proportions of the whole, as nearly as whole rows
        allow; None: where the target is made of classes.
    seed : int, default=0
        Source of the draws.

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
                "Realizations needs either validation=... or inner=..., not both: the number of "
                "features is chosen on one of them. Leave one out."
            )

    def __len__(self) -> int:
        return self.n_realizations

    def first(self, n: int) -> Self:
        """The plan of the first ``n`` realizations, which are the same as in the whole."""
        return replace(self, n_realizations=n)

    def label(self, realization: int) -> str:
        """Text that tells this split from any other, the number and the seed left out."""
        parts = (f"{n}={getattr(self, n)}" for n in ("train", "test", "validation", "inner"))
        return f"Realizations({', '.join(parts)}, stratify={self.stratify})"

    def split(self, y: NDArray[Any], name: str, realization: int) -> Split:
        """Rows of one realization of the data of that name."""
        n_rows = len(y)
        n_train = rows_of(self.train, n_rows)
        n_check = 0 if self.validation is None else rows_of(self.validation, n_rows)
        rest = n_rows - n_train - n_check
        n_test = rest if self.test is None else rows_of(self.test, n_rows)
        if n_train < 1 or n_test < 1 or n_test > rest:
            raise InvalidParameter(
                f"Realizations needs at least one row in every part and {n_train} training, "
                f"{n_check} validation and {max(n_test, 1)} test rows in all; {name} has {n_rows}. "
                "Ask for fewer rows, or leave test=None for all that remain."
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
    """Stratified folds, each once the test part, the whole repeated with other folds.

    With ``inner`` this is two-level cross-validation: the number of features is chosen by folds of
    each training part, and measured on the fold outside.

    Parameters
    ----------
    n_folds : int, default=10
        Number of outer folds.
    n_repeats : int, default=1
        How often all is repeated.
    inner : int or None
        Number of inner folds.
    seed : int, default=0
        Source of the draws.
    n_first : int or None, default=None
        Only the first so many of the realizations; None is all.

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
        """The first ``n`` folds, those of further repeats added when all are used up."""
        return replace(self, n_repeats=max(self.n_repeats, -(-n // self.n_folds)), n_first=n)

    def label(self, realization: int) -> str:
        """Text that tells this split from any other, the number and the seed left out."""
        return f"CrossValidation({self.n_folds}, inner={self.inner})"

    def split(self, y: NDArray[Any], name: str, realization: int) -> Split:
        """Rows of one fold of the data of that name."""
        repeat, fold = divmod(realization, self.n_folds)
        seed = seed_of(self.seed, "folds", name, repeat)
        train, test = folds_of(y, np.arange(len(y)), self.n_folds, seed)[fold]
        if self.inner is None:
            return Split(train, test)
        seed = seed_of(self.seed, "inner", name, realization)
        return Split(train, test, folds_of(y, train, self.inner, seed))


@dataclass(frozen=True, repr=False, eq=False)
class GivenSplits:
    """Splits that were published with the data, such as those of Rätsch.

    Parameters
    ----------
    trains, tests : sequence of array of int
        Rows of the training and of the test part, one pair per realization.
    seed : int, default=0
        Source of the draws of the methods.

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
                "GivenSplits needs as many training as test parts, and at least one; got "
                f"{len(self.trains)} and {len(self.tests)}."
            )
        for i, (train, test) in enumerate(zip(self.trains, self.tests, strict=True)):
            n_common = len(np.intersect1d(train, test))
            if not len(train) or not len(test) or n_common:
                raise InvalidParameter(
                    f"GivenSplits needs training and test rows that do not overlap; split {i} has "
                    f"{len(train)} and {len(test)} with {n_common} in both."
                )

    def __len__(self) -> int:
        return len(self.trains)

    def first(self, n: int) -> Self:
        """The plan of the first ``n`` splits."""
        return replace(self, trains=self.trains[:n], tests=self.tests[:n])

    def label(self, realization: int) -> str:
        """Text that tells this split from any other, the number and the seed left out."""
        train, test = self.trains[realization], self.tests[realization]
        digest = sha256(train.tobytes() + b"|" + test.tobytes()).hexdigest()[:16]
        return f"GivenSplits({digest})"

    def split(self, y: NDArray[Any], name: str, realization: int) -> Split:
        """Rows of one split."""
        split = Split(self.trains[realization], self.tests[realization])
        least, most = min(map(np.min, split[:2])), max(map(np.max, split[:2]))
        if least < 0 or most >= len(y):
            raise InvalidParameter(
                f"GivenSplits names row {least if least < 0 else most}; {name} has {len(y)} rows, "
                "counted from 0."
            )
        return split

    def __repr__(self) -> str:
        return f"<GivenSplits: {len(self)} realizations>"


#: Which rows train and which test.
Plan = Realizations | CrossValidation | GivenSplits
