"""Where a page is written to."""

import os
from importlib import import_module
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile

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
    page, path = html_of(report), Path(path)
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(page)
            file.close()
            Path(file.name).chmod(0o666 & ~_umask())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _umask() -> int:
    """The rights that this process withholds, which can only be read by setting them."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
