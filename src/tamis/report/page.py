"""Facts that all pages have, and where pages are written to."""

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
    """A fact to know before the results are used, and what follows from it."""

    fact: str
    consequence: str = ""


@dataclass(frozen=True, repr=False, kw_only=True)
class Page(ABC):
    """Facts that can be shown as one page."""

    #: Its template in the folder ``assets`` of tamis.report, or of a package that stands before it.
    template: ClassVar[str]

    made: date = field(default_factory=date.today)
    cares: Sequence[Caveat] = ()
    details: Sequence[tuple[str, str]] = ()
    command: str | None = None

    @abstractmethod
    def _context(self) -> dict[str, Any]:
        """Return charts and tables; what draws is imported here, not to gather facts."""

    def html(self) -> str:
        """Return the page as text."""
        try:
            from tamis.report.template import render

            return render(self, self._context())
        except ImportError as error:
            if error.name not in ("jinja2", "markupsafe"):
                raise
            raise MissingExtra(
                "A report needs jinja2, which is not installed. Write pip install 'tamis[app]'."
            ) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page: one file that loads nothing and sends nothing.

        Parameters
        ----------
        path : str or path
            Such as "report.html"; an existing file is replaced.
        """
        write_report(self, path)

    def _repr_html_(self) -> str:
        # a frame of its own: the style of a page must not leak into a notebook
        page = escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:0"></iframe>'


def write_report(report: Page, path: str | PathLike[str]) -> None:
    """Write a report as one file that loads nothing and sends nothing.

    The file is written completely or not at all: a full disk leaves what was there before.

    Parameters
    ----------
    report : Report, ComparisonReport or tamis_book.ReproductionReport
        Of :func:`tamis.report.report` and its like.
    path : str or path
        Such as "report.html"; an existing file is replaced.
    """
    replace_text(Path(path), report.html())
