"""The tasks of an experiment: every method on every realization of every data set."""

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import NamedTuple

from sklearn.base import BaseEstimator

from tamis.evaluation.protocol import Protocol
from tamis.evaluation.realizations import Plan
from tamis.evaluation.request import expression_of, metric_text
from tamis.evaluation.row import Address
from tamis.evaluation.sources import Source


class Task(NamedTuple):
    """One method on one realization of one data set, before it is done."""

    address: Address
    method: str
    source: Source
    realization: int

    @property
    def key(self) -> str:
        """Short name of all that the outcome depends on."""
        return self.address.key


def tasks_of(
    methods: Mapping[str, BaseEstimator],
    sources: Mapping[str, Source],
    plan: Plan,
    protocol: Protocol,
    durable: bool,
) -> Iterator[Task]:
    """All tasks; ``durable`` where their keys must outlive this process."""
    expressions = {name: expression_of(method, durable) for name, method in methods.items()}
    measured = {
        "estimators": {n: expression_of(e, durable) for n, e in protocol.estimators.items()},
        "metrics": [metric_text(item) for item in protocol.metrics.values()],
        "normalise": protocol.normalise,
    }
    if protocol.losses:  # else left out, so that addresses stay what they were
        measured["losses"] = True
    ours = version("tamis")
    for realization in range(len(plan)):
        sizes = protocol.at(realization).sizes
        whole = {**measured, "sizes": sizes, "plan": plan.label(realization)}
        text = json.dumps(whole, sort_keys=True, default=repr)
        for source in sources.values():
            for name, expression in expressions.items():
                address = Address(
                    expression,
                    source.name,
                    source.fingerprint,
                    realization,
                    plan.seed,
                    ours,
                    text,
                )
                yield Task(address, name, source, realization)
