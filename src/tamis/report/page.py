"""Base class of all reports: common facts, and writing of the page."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tamis._files import replace_text
from tamis.exceptions import MissingExtra


class Caveat(NamedTuple):
    """A limitation of the results, and its consequence for the reader."""

    fact: str
    consequence: str = ""


@dataclass(frozen=True, repr=False, kw_only=True)
class Page(ABC):
    """A report that can be written as a single HTML page."""

    #: Template in the folder ``assets`` of tamis.report, or ``package:name`` for another package.
    template: ClassVar[str]

    made: date = field(default_factory=date.today)
    cares: Sequence[Caveat] = ()
    details: Sequence[tuple[str, str]] = ()
    command: str | None = None

    @abstractmethod
    def _context(self) -> dict[str, Any]:
        """Return charts and tables for the template. Drawing modules are imported here, lazily."""

    def html(self) -> str:
        """Return the page as HTML."""
        try:
            from tamis.report.template import render

            return render(self, self._context())
        except ImportError as error:
            if error.name not in ("jinja2", "markupsafe"):
                raise
            raise MissingExtra(
                "A report needs jinja2, which is not installed. Run pip install 'tamis[app]'."
            ) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page as a single file without external resources.

        Parameters
        ----------
        path : str or path
            File name such as "report.html". An existing file is replaced.
        """
        write_report(self, path)

    def _repr_html_(self) -> str:
        # an iframe, so that the page's style does not affect the notebook
        page = escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:0"></iframe>'


def write_report(report: Page, path: str | PathLike[str]) -> None:
    """Write a report as a single HTML file without external resources.

    The file is written completely or not at all: after an error, an existing file is unchanged.

    Parameters
    ----------
    report : Report, ComparisonReport or tamis_book.ReproductionReport
        Result of :func:`tamis.report.report` or :func:`tamis.report.compared`.
    path : str or path
        File name such as "report.html". An existing file is replaced.
    """
    replace_text(Path(path), report.html())
