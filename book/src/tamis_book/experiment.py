"""An experiment: a published table, and how to reproduce it."""

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
from tamis.evaluation.metrics import metric
from tamis.evaluation.realizations import Plan

TEXT = instance_of(str, "a text")
TEXTS = Constraint(
    ("a text for every name",),
    lambda value: isinstance(value, Mapping) and all(isinstance(v, str) for v in value.values()),
)
NAMES = Constraint(
    ("a list of texts",),
    lambda value: isinstance(value, tuple) and all(isinstance(name, str) for name in value),
)
INTS = Constraint(("a list of ints",), lambda value: all(is_int(k) for k in value))

#: Marks of published numbers that are not compared with ours, by the first words of the reason.
UNSOUND = {"impossible": "!", "not specified": "?", "contradicted": "~"}
BEGIN = "a text that begins with " + " or ".join(f"'{kind}: '" for kind in UNSOUND)
REASON = Constraint(
    (BEGIN,), lambda value: isinstance(value, str) and unsound_mark(value) is not None
)
REASONS = Constraint(
    (f"for every name {BEGIN}",),
    lambda value: isinstance(value, Mapping) and all(map(REASON.accepts, value.values())),
)


def unsound_mark(reason: str) -> str | None:
    """Return the mark for the reason why a published number is not compared with ours.

    >>> unsound_mark("not specified: the number of bins")
    '?'
    """
    return UNSOUND.get(reason.partition(": ")[0])


#: For each method, one number per size or step, or None if the table has none.
Numbers = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class Part:
    """A block of a table: a data set with a number of training rows.

    Attributes
    ----------
    name : str
        Heading of the block.
    data : dict
        The data, given by one of three keys. ``load`` is the name of a table. ``make`` is the name
        of a synthetic problem, with its arguments. The problem is generated once from ``seed`` or,
        with ``fresh = true``, for every realization. ``read`` is a table in a file next to the
        experiment, with ``target`` and optionally ``task``, ``drop`` and ``keep``. ``relevant``
        lists the relevant columns if the data do not.
    train, test, validation : int, float or None
    stratify : bool or None
        As in :class:`tamis.evaluation.Realizations`.
    folds : int or None
        Number of stratified folds, instead of ``train``. Each fold is a realization. If more are
        needed, the cross-validation is repeated.
    splits : str
        Name of the splits that came with the table, instead of ``train``. The table's arrays
        ``NAME_train_idx`` and ``NAME_test_idx`` hold the rows.
    sizes : tuple of int
        Numbers of columns. If empty, each method's own number is used.
    steps : tuple of int
        Steps of each method's search path, instead of sizes.
    methods : dict of str to str
        Methods of this part. They are added to the methods of the experiment, or replace methods
        with the same name.
    published, published_columns : dict of str to tuple of float or None
        Published numbers of each method (a single number, or one per size or step), and published
        mean numbers of columns.
    signs : dict of str to tuple of str
        Published signs for each method and size: "+" if the reference is better, "-" if it is
        worse, or "".
    estimators : dict of str to str
        Models of this part. They are added to the models of the experiment, or replace models with
        the same name.
    unsound : str
        Why the published numbers of this part are not compared with ours. Empty if they are.
    note : str
        A remark about the part.

    Examples
    --------
    >>> from tamis_book import Part
    >>> Part("wine", {"load": "wine"}, train=100, sizes=(2, 4)).points
    (2, 4)
    """

    _constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("name", "splits", "note"), TEXT),
        **dict.fromkeys(("methods", "estimators"), TEXTS),
        **dict.fromkeys(("sizes", "steps"), INTS),
        "unsound": REASON | one_of(""),
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
    note: str = ""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def points(self) -> tuple[int | None, ...]:
        """Sizes or steps of the part. None means each method's own size."""
        return self.sizes or self.steps or (None,)

    def where(self, point: int | None) -> dict[str, Any]:
        """Return a size or step as arguments for :meth:`tamis.evaluation.Results.values`."""
        return {"rule": f"step {point}"} if self.steps else {"size": point}

    def at(self, table: Numbers, method: str, point: int | None) -> float | None:
        """Return the number of a method at a size or step, or None if there is none."""
        row = table.get(method)
        return None if row is None else row[0 if point is None else self.points.index(point)]


@dataclass(frozen=True, repr=False)
class Experiment:
    """A published table, and how to reproduce it. The attributes are the keys of a TOML file.

    Attributes
    ----------
    name, title, source : str
        Name of the file, title of the table, and its publication.
    parts : tuple of Part
        The blocks of the table.
    metric : str
        Name of the metric, such as "hit", "error", "mse" or "stability".
    also : tuple of str
        Metrics of other tables with the same realizations. Tasks are computed once for all tables.
    agreement : {"chance", "range"} or float
        The rule by which our number and a published number agree. "chance": the difference between
        the means or counts is not significant, given the published number of realizations.
        "range": the published number, from a single realization, lies within the range of ours. A
        number is the maximum difference allowed.
    realizations : int
        Published number of realizations.
    scale : float
        Factor by which our numbers are multiplied, such as 100 for percentages.
    seed : int
        Seed of the splits, the methods and the models.
    methods : dict of str to str
        Recipes or expressions. Expressions may call the estimators.
    baselines : dict of str to str
        Methods that are shown for comparison. In every realization, they use the same number of
        columns as our method.
    estimators : dict of str to str
        Models that are trained on the selected columns.
    tuning : dict or None
        How the publication tuned hyper-parameters.
    reference : str or None
        The method that the published tests compare with the others.
    unsound : dict of str to str
        Methods whose published numbers are not compared with ours, and why. A reason begins with
        "impossible: " (a proof follows), "not specified: " (what the publication does not state) or
        "contradicted: " (by another number of the same publication).
    notes : tuple of str
        Remarks about the table.
    cost : float or None
        Approximate processor seconds of a realization. The fastest experiments run first.

    Examples
    --------
    >>> from tamis_book import read
    >>> read("thesis-3.2").metric
    'hit'
    """

    _constraints: ClassVar[Constraints] = {
        **dict.fromkeys(("title", "source", "metric"), TEXT),
        **dict.fromkeys(("methods", "baselines", "estimators"), TEXTS),
        "unsound": REASONS,
        "also": NAMES,
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
    also: tuple[str, ...] = ()
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
        """Return the plan of a part: the training and test rows of its realizations."""
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
        """Metric that is computed in each realization.

        For a stability this is "n_features", because a stability is computed from all realizations
        together.
        """
        return "n_features" if self.metric == "stability" else self.metric

    @property
    def greater_is_better(self) -> bool:
        """Whether a greater number is better, as for hits and accuracies."""
        return metric(self.metric).greater_is_better

    @property
    def is_range(self) -> bool:
        """Whether a published number agrees if it lies in the range ``low`` to ``high`` of ours."""
        return self.agreement == "range" or self.metric == "stability"

    @property
    def all_methods(self) -> dict[str, str]:
        """All methods of the experiment and of its parts."""
        return {**self.methods, **{k: text for p in self.parts for k, text in p.methods.items()}}

    @property
    def decimals(self) -> int:
        """Greatest number of decimals among the published numbers."""
        rows = [row for part in self.parts for row in part.published.values()]
        numbers = [Decimal(repr(value)) for row in rows for value in row if value is not None]
        return max((-int(number.as_tuple().exponent) for number in numbers), default=0)

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.title}>"
