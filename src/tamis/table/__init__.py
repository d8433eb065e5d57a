"""Files and frames: kinds of columns, alerts about them, and selection from frames.

:func:`read` and :func:`inspect` describe a table. :class:`TableSelector` selects from frames with
missing values, categories and dates. :func:`add_calendar` turns the month, weekday and hour of
dates into columns.
"""

from tamis._lazy import lazy_names

# names are imported lazily, because polars is slow to import and the command line often needs only
# the names of the file formats
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
