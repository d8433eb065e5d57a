"""Tables as people have them: files, kinds of columns, alerts, and selections from any frame.

:func:`read` and :func:`inspect` say what a table holds; :class:`TableSelector` selects from frames
with gaps, categories and dates; :func:`add_calendar` adds month, weekday and hour of dates.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.table.alerts import Alert
    from tamis.table.dates import add_calendar
    from tamis.table.encoder import TableEncoder
    from tamis.table.selector import TableSelector
    from tamis.table.table import Table, inspect, read

__all__ = ["Alert", "Table", "TableEncoder", "TableSelector", "add_calendar", "inspect", "read"]

#: Where each name is; polars takes its time, and the command line asks for formats alone.
_HOMES = {
    "Alert": "alerts",
    "Table": "table",
    "TableEncoder": "encoder",
    "TableSelector": "selector",
    "add_calendar": "dates",
    "inspect": "table",
    "read": "table",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tamis.table' has no attribute {name!r}")
    value = getattr(import_module(f"tamis.table.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
