"""Where a page is written to."""

from html import escape
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import ClassVar

from tamis._files import replace_text
from tamis.exceptions import MissingExtra


class Page:
    """Facts that can be looked at as one page.

    ``drawn_by`` names the module whose ``page_of`` puts them into a template: gathering needs none
    of what drawing does.
    """

    drawn_by: ClassVar[str]

    def html(self) -> str:
        """The page as text."""
        try:
            writing = import_module(self.drawn_by)
        except ImportError as error:
            if error.name not in ("jinja2", "markupsafe"):
                raise
            raise MissingExtra(
                "A report needs jinja2, which is not installed. Write pip install 'tamis[app]'."
            ) from None
        page: str = writing.page_of(self)
        return page

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page: one file that loads nothing and sends nothing.

        Parameters
        ----------
        path : str or path
            Such as "report.html"; a file that is there is replaced.
        """
        write_report(self, path)

    def _repr_html_(self) -> str:
        # a frame of its own: the style of a page must not leak into a notebook
        page = escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:0"></iframe>'


def write_report(report: Page, path: str | PathLike[str]) -> None:
    """Write a report as one file that loads nothing and sends nothing.

    The file is there whole or not at all: a full disk leaves what was there before.

    Parameters
    ----------
    report : Report, ComparisonReport or tamis_book.ReproductionReport
        Of :func:`tamis.report.report` and its like.
    path : str or path
        Such as "report.html"; a file that is there is replaced.
    """
    replace_text(Path(path), report.html())
