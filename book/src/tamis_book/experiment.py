"""A published table and how to compute it again: the contents of an experiment file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from tamis._arrays import is_int
from tamis._checks import (
    NONE,
    Constraint,
    Constraints,
    check_parameters,
    instance_of,
    integer,
    number,
    one_of,
)
from tamis.evaluation import CrossValidation, Realizations
from tamis.evaluation.realizations import Plan

#: Metrics that are printed in two tables of the same realizations.
TWINS = ("mse", "scc")

TEXT = instance_of(str, "a text")
TEXTS = Constraint(
    ("a text for every name",),
    lambda value: isinstance(value, Mapping) and all(isinstance(v, str) for v in value.values()),
)
INTS = Constraint(("a list of ints",), lambda value: all(is_int(k) for k in value))

#: For each method one number per size or step, None if the table has none.
Numbers = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class Part:
    """One block of a table: a data set with a number of training rows.

    Attributes
    ----------
    name : str
        Heading.
    data : dict
        ``load``: name of a table; or ``make``: name of a problem, with its arguments, drawn once
        from ``seed`` or, with ``fresh = true``, again for every realization; or ``read``: a table
        in a file next to the experiment, with ``target`` and optionally ``task``, ``drop`` and
        ``keep``. ``relevant`` names the columns that matter if the data do not.
    train, test, validation : int, float or None
    stratify : bool or None
        As in :class:`tamis.evaluation.Realizations`.
    folds : int or None
        Number of stratified folds, in place of ``train``: each is a realization, with other folds
        when all are used up.
    splits : str
        Name of the splits that came with the table: its arrays ``NAME_train_idx`` and
        ``NAME_test_idx`` are the rows, in place of ``train``.
    sizes : tuple of int
        Numbers of columns to measure at; without any, each method's own number.
    steps : tuple of int
        Steps of each method's trace to measure after, in place of sizes.
    methods : dict of str to str
        In addition to, or in place of, those of the experiment.
    published, published_columns : dict of str to tuple of float or None
        For each method one number, or one per size or step; and the mean numbers of columns printed
        with them.
    signs : dict of str to tuple of str
        For each method and size "+" if the reference is printed to win, "-" to lose, or "".
    estimators : dict of str to str
        In place of those of the experiment.
    unsound : str
        Why the published numbers of this part are not a target; empty if they are.
    unsound_above : float or None
        Only numbers above this are unsound; None for all.
    note : str
    """

    _constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("name", "splits", "unsound", "note"), TEXT),
        **dict.fromkeys(("methods", "estimators"), TEXTS),
        **dict.fromkeys(("sizes", "steps"), INTS),
        "unsound_above": number() | NONE,
    }

    name: str
    data: Mapping[str, Any]
    train: int | float = Realizations.train
    test: int | float | None = None
    validation: int | float | None = None
    stratify: bool | None = None
    folds: int | None = None
    splits: str = ""
    sizes: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    methods: Mapping[str, str] = field(default_factory=dict)
    published: Numbers = field(default_factory=dict)
    published_columns: Numbers = field(default_factory=dict)
    signs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    estimators: Mapping[str, str] = field(default_factory=dict)
    unsound: str = ""
    unsound_above: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def points(self) -> tuple[int | None, ...]:
        """Sizes or steps at which methods are measured; None for a method's own size."""
        return self.sizes or self.steps or (None,)

    def where(self, point: int | None) -> dict[str, Any]:
        """Return a point as arguments of :meth:`tamis.evaluation.Results.values`."""
        return {"rule": f"step {point}"} if self.steps else {"size": point}

    def at(self, table: Numbers, method: str, point: int | None) -> float | None:
        """Return the published number of a method at a point, if there is one."""
        row = table.get(method)
        return None if row is None else row[0 if point is None else self.points.index(point)]

    def is_sound(self, published: float) -> bool:
        """Whether a published number is a target."""
        above = self.unsound_above
        return not self.unsound or (above is not None and published <= above)


@dataclass(frozen=True, repr=False)
class Experiment:
    """A published table and how to compute it again; the attributes are the words of a file.

    Attributes
    ----------
    name, title, source : str
        The name is that of the file.
    parts : tuple of Part
    metric : str
        Such as "hit", "error", "mse" or "stability".
    agreement : {"chance", "range"} or float
        The rule by which ours and a published number agree: "chance", if they differ no more than
        means or counts of that many realizations do; "range", for the number of a single
        realization, if it lies between the least and the greatest of ours; or a greatest
        difference.
    realizations : int
    scale : float
        Factor of the published numbers.
    seed : int
    methods : dict of str to str
        Recipes, or expressions that may call the estimators.
    baselines : dict of str to str
        Other methods, shown next to every number of ours with the same number of columns in every
        realization.
    estimators : dict of str to str
        Models that are trained on the selected columns.
    tuning : dict or None
        How hyper-parameters were chosen; it is done on request.
    reference : str or None
        The method that the printed tests compare with the others.
    unsound : dict of str to str
        Methods whose published numbers are not a target, and why.
    notes : tuple of str
    cost : float or None
        About how many processor seconds a realization takes, by which the shortest run first.
    """

    _constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("title", "source", "metric"), TEXT),
        **dict.fromkeys(("methods", "baselines", "estimators", "unsound"), TEXTS),
        "agreement": one_of("chance", "range") | number(least=0),
        "realizations": integer(1),
        "scale": number(),
        "seed": integer(),
        "reference": TEXT | NONE,
        "cost": number(least=0) | NONE,
    }

    name: str
    title: str
    source: str
    parts: tuple[Part, ...]
    metric: str = "error"
    agreement: str | float = "chance"
    realizations: int = 30
    scale: float = 1.0
    seed: int = 0
    methods: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[str, str] = field(default_factory=dict)
    estimators: Mapping[str, str] = field(default_factory=dict)
    tuning: Mapping[str, Any] | None = None
    reference: str | None = None
    unsound: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cost: float | None = None

    def __post_init__(self) -> None:
        check_parameters(self)

    def plan(self, part: Part, realizations: int | None = None) -> Plan:
        """Return the realizations of one part."""
        n = self.realizations if realizations is None else realizations
        if part.folds is not None:
            return CrossValidation(part.folds, seed=self.seed).first(n)
        rows: dict[str, Any] = {
            "train": part.train,
            "test": part.test,
            "validation": part.validation,
        }
        return Realizations(n, **rows, stratify=part.stratify, seed=self.seed)

    @property
    def measured(self) -> str:
        """The metric of each realization; a stability is of all realizations together."""
        return "n_features" if self.metric == "stability" else self.metric

    @property
    def measured_together(self) -> tuple[str, ...]:
        """Metrics of each task: tables of errors and of correlations come as twins.

        The second of them finds the tasks of the first done, if they share a store.
        """
        return TWINS if self.measured in TWINS else (self.measured,)

    @property
    def is_range(self) -> bool:
        """Whether a published number agrees if it lies between ``low`` and ``high`` of a cell."""
        return self.agreement == "range" or self.metric == "stability"

    @property
    def all_methods(self) -> dict[str, str]:
        """Methods of the experiment and of its parts."""
        return {**self.methods, **{k: text for p in self.parts for k, text in p.methods.items()}}

    @property
    def decimals(self) -> int:
        """Number of decimals of the published numbers."""
        rows = [row for part in self.parts for row in part.published.values()]
        numbers = [Decimal(repr(value)) for row in rows for value in row if value is not None]
        return max((-int(number.as_tuple().exponent) for number in numbers), default=0)

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.title}>"
