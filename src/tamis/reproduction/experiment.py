"""A published table and how to compute it again: what an experiment file says."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tamis.evaluation import CrossValidation, Realizations
from tamis.evaluation.realizations import Plan

#: Metrics that are printed of the same realizations in two tables.
TWINS = ("mse", "scc")


@dataclass(frozen=True)
class Part:
    """One block of a table: a data set with a size of the training part.

    Attributes
    ----------
    name : str
        Heading.
    data : dict
        ``load``: name of a table; or ``make``: name of a maker, with its arguments, drawn once
        from ``seed`` or, with ``fresh = true``, anew for every realization; or ``read``: a table
        in a file beside the experiment, with ``target`` and, where they are needed, ``task``,
        ``drop`` and ``keep``. ``relevant`` names the columns that matter where the data do not
        say.
    train, test, validation : int, float or None
    stratify : bool or None
        As in :class:`tamis.evaluation.Realizations`.
    folds : int or None
        Stratified folds, in place of ``train``: each is a realization, with other folds when all
        are used up.
    splits : str
        Where the table came with splits, their name: its arrays ``NAME_train_idx`` and
        ``NAME_test_idx`` are the rows, and ``train`` and the like are left out.
    sizes : tuple of int
        Numbers of columns at which is measured; without any, what each method keeps.
    steps : tuple of int
        Steps of each method's trace after which is measured, in place of sizes.
    methods : dict of str to str
        Beside, or in place of, those of the experiment.
    published, published_columns : dict of str to tuple of float or None
        For each method one number, or one per size or step; and the mean numbers of columns printed
        with them.
    signs : dict of str to tuple of str
        For each method and size "+" where the reference is printed to win, "-" to lose, or "".
    estimators : dict of str to str
        In place of those of the experiment.
    unsound : str
        Why the published numbers of this part are no target; empty where they are.
    unsound_above : float or None
        The numbers above this are meant; None for all.
    note : str
    """

    name: str
    data: Mapping[str, Any]
    train: int | float
    test: int | float | None
    validation: int | float | None
    stratify: bool | None
    folds: int | None
    splits: str
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    methods: Mapping[str, str]
    published: Mapping[str, tuple[float | None, ...]]
    published_columns: Mapping[str, tuple[float | None, ...]]
    signs: Mapping[str, tuple[str, ...]]
    estimators: Mapping[str, str]
    unsound: str
    unsound_above: float | None
    note: str

    @property
    def points(self) -> tuple[int | None, ...]:
        """Where each method is measured: at these sizes, after these steps, or where it ends."""
        return self.sizes or self.steps or (None,)

    def where(self, point: int | None) -> dict[str, Any]:
        """How :meth:`tamis.evaluation.Results.values` is asked for a point."""
        return {"rule": f"step {point}"} if self.steps else {"size": point}

    def printed(self, method: str, point: int | None) -> float | None:
        """The published number of a method at a point, if there is one."""
        return self._at(self.published, method, point)

    def printed_columns(self, method: str, point: int | None) -> float | None:
        """The mean number of columns that was published with it."""
        return self._at(self.published_columns, method, point)

    def _at(
        self, table: Mapping[str, tuple[float | None, ...]], method: str, point: int | None
    ) -> float | None:
        row = table.get(method)
        return None if row is None else row[0 if point is None else self.points.index(point)]

    def is_sound(self, published: float) -> bool:
        """Whether a published number is a target."""
        return not self.unsound or (
            self.unsound_above is not None and published <= self.unsound_above
        )


@dataclass(frozen=True, repr=False)
class Experiment:
    """A published table and how to compute it again; the fields are those of the file.

    ``agreement`` says when ours and a published number agree: by "chance", where they differ no
    more than means or counts of so many realizations do; by "range", for the number of a single
    realization, where it lies between the least and the greatest of ours; or where they differ by
    no more than a given number. ``baselines`` are other methods, that stand beside every number of
    ours with the same number of columns in every realization. ``cost`` is about how many processor
    seconds a realization takes, by which the shortest can be run first.
    """

    name: str
    title: str
    source: str
    metric: str
    agreement: str | float
    realizations: int
    scale: float
    seed: int
    methods: Mapping[str, str]
    baselines: Mapping[str, str]
    estimators: Mapping[str, str]
    tuning: Mapping[str, Any] | None
    reference: str | None
    unsound: Mapping[str, str]
    notes: tuple[str, ...]
    parts: tuple[Part, ...]
    cost: float | None = None

    def plan(self, part: Part, realizations: int | None = None) -> Plan:
        """The realizations of one part."""
        n = self.realizations if realizations is None else realizations
        if part.folds is not None:
            return CrossValidation(part.folds, seed=self.seed).first(n)
        return Realizations(
            n,
            train=part.train,
            test=part.test,
            validation=part.validation,
            stratify=part.stratify,
            seed=self.seed,
        )

    @property
    def measured(self) -> str:
        """The metric of each realization; of stability, which all have together, there is none."""
        return "n_features" if self.metric == "stability" else self.metric

    @property
    def measured_together(self) -> tuple[str, ...]:
        """What is measured in each task: tables of errors and of correlations come as twins.

        The second of them finds the tasks of the first done, where they share a store.
        """
        return TWINS if self.measured in TWINS else (self.measured,)

    @property
    def decimals(self) -> int:
        """How many decimals the published numbers have."""
        rows = [row for part in self.parts for row in part.published.values()]
        numbers = [Decimal(repr(value)) for row in rows for value in row if value is not None]
        return max((-int(number.as_tuple().exponent) for number in numbers), default=0)

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.title}>"
