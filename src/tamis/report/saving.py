"""Where a page is written to."""

from importlib import import_module
from os import PathLike
from pathlib import Path

from tamis._files import replace_text
from tamis.exceptions import MissingExtra
from tamis.report.facts import Report


def html_of(report: Report) -> str:
    """The page of a report as text."""
    try:
        writing = import_module("tamis.report.writing")
    except ImportError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise MissingExtra(
            "A report needs jinja2, which is not installed. Write pip install 'tamis[app]'."
        ) from None
    page: str = writing.page_of(report)
    return page


def write_report(report: Report, path: str | PathLike[str]) -> None:
    """Write a report as one file that loads nothing and sends nothing.

    The file is there whole or not at all: a full disk leaves what was there before.

    Parameters
    ----------
    report : Report
        Of :func:`tamis.report.report`.
    path : str or path
        Such as "report.html"; a file that is there is replaced.
    """
    replace_text(Path(path), html_of(report))
