"""Tables larger than memory, as sources of row blocks.

A search accepts a source in place of ``X`` if its criterion can learn from row blocks. It also
accepts everything that :func:`as_blocks` turns into a source: the path of a Parquet file or folder
with ``target="name"``, ``.npy`` files, and Dask collections. The result does not depend on how the
rows are divided into blocks.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
