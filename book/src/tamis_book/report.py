"""From an experiment that was computed again to all that its page says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar

from tamis._format import format_count
from tamis.contract.record import installed_versions
from tamis.evaluation import Contrast
from tamis.exceptions import InvalidParameter
from tamis.plot.style import harmless
from tamis.report.facts import Care
from tamis.report.saving import Page
from tamis_book.layout import CellTable, contrasts, footnotes, lay_out
from tamis_book.reproduction import Reproduction

#: Realizations from which tests are told: of fewer, differences that are equal by chance, as of
#: hits, look like certainty.
TESTED = 5


@dataclass(frozen=True, repr=False)
class ReproductionReport(Page):
    """All that a page says of an experiment, as plain data.

    :func:`tamis_book.reproduced` gathers it; ``save`` writes the page.

    Attributes
    ----------
    found : Reproduction
        The numbers, ours and the published ones.
    tables : list of CellTable
        The same as they stand in print.
    tests : list of (str, Contrast)
        For each part the reference against the other methods.
    notes : list of str
    made : date
    cares : list of Care
    details : list of (str, str)
        How it was computed.
    command : str or None
        What to write on a command line to get the same.
    """

    drawn_by: ClassVar[str] = "tamis_book.page"

    found: Reproduction
    tables: Sequence[CellTable]
    tests: Sequence[tuple[str, Contrast]]
    notes: Sequence[str]
    made: date
    cares: Sequence[Care] = field(default_factory=list)
    details: Sequence[tuple[str, str]] = field(default_factory=list)
    command: str | None = None

    def __repr__(self) -> str:
        return f"<ReproductionReport of {self.found.experiment.name}>"


def reproduced(found: Reproduction, *, command: str | None = None) -> ReproductionReport:
    """Gather all that there is to say of an experiment that was computed again.

    Parameters
    ----------
    found : Reproduction
        Of :func:`tamis_book.reproduce`.
    command : str, optional
        What to write on a command line to get the same.

    Returns
    -------
    ReproductionReport
        ``save("table.html")`` writes the page.

    Examples
    --------
    >>> from tamis_book import Cell, Reproduction, read, reproduced
    >>> hits = Cell("100", "FisherS", None, 4, 0.5, 0, 1, 30, 2, "=", None, None)
    >>> reproduced(Reproduction(read("thesis-3.2"), (hits,), ()))  # or reproduce("thesis-3.2")
    <ReproductionReport of thesis-3.2>
    """
    if not isinstance(found, Reproduction):
        raise InvalidParameter(
            "reproduced needs the Reproduction of tamis_book.reproduce(name), not "
            f"{type(found).__name__}."
        )
    return ReproductionReport(
        found=found,
        tables=lay_out(found),
        tests=contrasts(found) if _realizations(found) >= TESTED else [],
        notes=[*found.settings, *found.remarks, *footnotes(found)],
        made=date.today(),
        cares=_cares(found),
        details=_details(found),
        command=command,
    )


def _cares(found: Reproduction) -> list[Care]:
    """What to know before the numbers are compared."""
    cares = [Care(harmless(sentence), "") for sentence in found.missing]
    n = _realizations(found)
    if 0 < n < found.experiment.realizations and found.is_published:
        cares.insert(
            0,
            Care(
                f"{format_count(n, 'realization')} of {found.experiment.realizations}.",
                "Fewer than were published: only large differences show.",
            ),
        )
    return cares


def _realizations(found: Reproduction) -> int:
    """How many there are of every number."""
    return min((cell.n_realizations for cell in found.cells), default=0)


def _details(found: Reproduction) -> list[tuple[str, str]]:
    experiment = found.experiment
    lines = [(f"Method {name}", text) for name, text in experiment.all_methods.items()]
    lines += [(f"Beside {name}", text) for name, text in experiment.baselines.items()]
    lines += [(f"Estimator {name}", text) for name, text in experiment.estimators.items()]
    lines.append(("Seed", str(experiment.seed)))
    versions = ", ".join(f"{name} {v}" for name, v in installed_versions().items())
    return [*lines, ("Versions", versions)]
