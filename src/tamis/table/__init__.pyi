from tamis.table.alerts import Alert
from tamis.table.dates import add_calendar
from tamis.table.encoder import TableEncoder
from tamis.table.selector import TableSelector
from tamis.table.table import Table, inspect, read

__all__ = ["Alert", "Table", "TableEncoder", "TableSelector", "add_calendar", "inspect", "read"]
