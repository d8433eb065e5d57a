"""Loading of tables by name: scikit-learn's bundled sets, a local folder, OpenML.

An address states the source of a table:

=========================  ====================================================================
``sklearn:NAME``           bundled with scikit-learn, under scikit-learn's own name
``folder:NAME``            ``NAME.npz`` in the folder named by the environment variable TAMIS_DATA
``openml:NAME``            the active version on openml.org, fetched once and cached by scikit-learn
``openml:NAME@VERSION``    a given version on openml.org
``openml:ID``              the data set with a given number on openml.org
=========================  ====================================================================

A plain name is looked up among the bundled sets (``diabetes``, ``digits``, ``iris``, ``wdbc``,
``wine``), then in the folder, and never on the network. Two different data sets are called breast
cancer. ``wdbc`` is the Wisconsin data set, and is short for ``sklearn:breast_cancer``. The plain
name ``breast_cancer`` means the Ljubljana data set, and is looked up in the folder only.
"""

import os
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import datasets as bundled

from tamis._format import did_you_mean
from tamis._memory import NUMBER, check_fits
from tamis.exceptions import InvalidParameter, InvalidTable

FOLDER_VARIABLE = "TAMIS_DATA"
#: Bundled data sets: scikit-learn's name for each plain name.
_BUNDLED = {name: name for name in ("diabetes", "digits", "iris", "wine")}
_BUNDLED["wdbc"] = "breast_cancer"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Dataset(NamedTuple):
    """Table with its target, names, source and additional arrays.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The features as float64, without scaling or imputation.
    y : ndarray of shape (n_samples,)
        Class numbers from 0 (int64), or a numeric target (float64).
    feature_names : ndarray of str
        Name of each column.
    target_names : ndarray of str or None
        Names of the classes, indexed by ``y``; None for a numeric target.
    name : str
        The name without the source, such as "iris".
    source : str
        The address, with which :func:`load` loads the same table.
    extras : dict of str to ndarray
        All other arrays of a file, such as ``train_idx``, ``test_idx`` or ``relevant_idx``.

    Examples
    --------
    >>> from tamis.datasets import load
    >>> iris = load("iris")
    >>> iris.X.shape, iris.target_names.tolist()
    ((150, 4), ['setosa', 'versicolor', 'virginica'])
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    feature_names: NDArray[np.str_]
    target_names: NDArray[np.str_] | None
    name: str
    source: str
    extras: dict[str, NDArray[Any]]

    def __repr__(self) -> str:
        n, d = self.X.shape
        target = (
            "numeric target" if self.target_names is None else f"{len(self.target_names)} classes"
        )
        return f"<Dataset {self.name}: {n} samples, {d} features, {target}, from {self.source}>"


#: Former name of :class:`Dataset`.
Table = Dataset


def load(name: str) -> Dataset:
    """Load a table by name or address.

    Parameters
    ----------
    name : str
        A plain name or an address. A plain name is looked up among scikit-learn's bundled sets,
        then in the folder named by the environment variable TAMIS_DATA. The addresses are
        ``sklearn:NAME``, ``folder:NAME``, ``openml:NAME``, ``openml:NAME@VERSION`` and
        ``openml:ID``. Only ``openml:`` uses the network.

    Returns
    -------
    Dataset
        The data as float64, without scaling, with the names of columns and classes.

    Raises
    ------
    InvalidTable
        If there is no table with this name, or if the file does not contain a table.

    Notes
    -----
    A file in the folder is a NumPy archive with the arrays ``X`` (samples by features) and ``y``.
    ``feature_names`` and, for classes numbered from 0, ``target_names`` are optional. All other
    arrays become ``extras``. Files are read without pickling. Categories of nominal OpenML columns
    are replaced by their ranks, and missing values by NaN.

    References
    ----------
    Vanschoren, van Rijn, Bischl and Torgo (2013), OpenML: networked science in machine learning.

    Examples
    --------
    >>> from tamis.datasets import load
    >>> load("wdbc")
    <Dataset wdbc: 569 samples, 30 features, 2 classes, from sklearn:breast_cancer>
    >>> X, y, *_ = load("sklearn:diabetes")
    """
    if not isinstance(name, str):
        raise InvalidParameter(
            f'load needs the name of a data set, got {name!r}. Write load("iris").'
        )
    source, colon, rest = name.partition(":")
    if not colon:
        return _from_sklearn(_BUNDLED[name]) if name in _BUNDLED else _from_folder(name, name)
    if source == "sklearn":
        return _from_sklearn(rest)
    if source == "folder":
        return _from_folder(rest, name)
    if source == "openml":
        return _from_openml(rest)
    raise InvalidTable(
        f"load needs a source 'sklearn', 'folder' or 'openml' before ':{rest}', got {source!r}. "
        f'Write load("{rest}") or load("openml:{rest}").'
    )


def names() -> list[str]:
    """Return the names of all data sets that :func:`load` finds without the network.

    Returns
    -------
    list of str
        Sorted names of the bundled sets and of the files in the folder named by the environment
        variable TAMIS_DATA.

    Examples
    --------
    >>> from tamis.datasets import names
    >>> "iris" in names()
    True
    """
    return sorted({*_BUNDLED, *_files()})


def _from_sklearn(own_name: str) -> Dataset:
    if own_name not in _BUNDLED.values():
        raise _unknown(f"sklearn:{own_name}")
    data = getattr(bundled, f"load_{own_name}")()
    short = next(plain for plain, own in _BUNDLED.items() if own == own_name)
    parts = {key: data[key] for key in ("feature_names", "target_names") if key in data}
    return _table({"X": data.data, "y": data.target, **parts}, short, f"sklearn:{own_name}")


def _from_folder(stem: str, asked: str) -> Dataset:
    path = _files().get(stem)
    if path is None:
        raise _unknown(asked)
    return _table(_read(path), stem, f"folder:{stem}", where=str(path))


def _files() -> dict[str, Path]:
    """Return the paths of the archives in the user's folder, by name.

    The dict is empty if the environment variable TAMIS_DATA is not set.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return {}
    if not Path(folder).is_dir():
        raise InvalidTable(
            f"{FOLDER_VARIABLE} needs to name a folder of .npz files; {folder!r} is not a folder. "
            "Correct the variable or unset it."
        )
    return {path.stem: path for path in sorted(Path(folder).glob("*.npz"))}


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        # the file is opened here, because np.load does not close a file that is not an archive
        with path.open("rb") as stream:
            check_archive(str(path), stream)
            with np.load(stream, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
    except InvalidTable:
        raise
    except (OSError, ValueError, EOFError, TypeError, RuntimeError, BadZipFile, zlib.error) as e:
        raise InvalidTable(
            f"load needs a NumPy archive of plain arrays; {path} cannot be read as one ({e}). "
            "Write it with np.savez_compressed(path, X=X, y=y)."
        ) from e


def _from_openml(address: str) -> Dataset:
    name, _, version = address.partition("@")
    which: dict[str, Any] = {"data_id": int(name)} if name.isdecimal() else {"name": name}
    if version:
        which["version"] = int(version) if version.isdecimal() else version
    try:
        # this parser needs no pandas and returns nominal columns as ranks
        data = bundled.fetch_openml(**which, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise InvalidTable(
            f"load could not fetch 'openml:{address}' ({error}). Check the name on openml.org and "
            f"the connection, or put the table into the folder named by {FOLDER_VARIABLE}."
        ) from error
    source, y = f"openml:{address}", data.target
    if y is None or np.ndim(y) != 1:
        raise InvalidTable(
            f"load needs one target column; {source} has none or several. Choose another "
            f"version with openml:{name}@VERSION."
        )
    X = data.data.toarray() if issparse(data.data) else data.data
    parts = {"X": X, "y": y, "feature_names": data.feature_names}
    if not np.issubdtype(np.asarray(y).dtype, np.number):
        if missing := sum(label is None for label in y):
            raise _misfit(source, "a target in every row", f"{missing} missing ones")
        classes = np.asarray(y, dtype=str)
        parts["target_names"], parts["y"] = np.unique(classes, return_inverse=True)
    return _table(parts, data.get("details", {}).get("name", name), source)


def _table(parts: Mapping[str, Any], name: str, source: str, where: str | None = None) -> Dataset:
    """Return the data set of the given arrays, after checking that they fit together."""
    where = where or source
    if missing := [repr(key) for key in ("X", "y") if key not in parts]:
        held = ", ".join(map(repr, parts)) or "nothing"
        raise _misfit(where, "the arrays X and y", f"{held} without {', '.join(missing)}")
    X, y = _numbers(parts["X"], 2, "X", where), _numbers(parts["y"], 1, "y", where)
    if len(X) != len(y):
        raise _misfit(where, "one target per row", f"{len(X)} rows of X and {len(y)} of y")
    default = [f"x{j}" for j in range(X.shape[1])]
    features = np.asarray(parts.get("feature_names", default)).astype(str)
    if features.shape != (X.shape[1],):
        raise _misfit(where, f"{X.shape[1]} feature_names", f"{features.size}")
    y, classes = _target(y, parts.get("target_names"), where)
    known = ("X", "y", "feature_names", "target_names")
    extras = {key: value for key, value in parts.items() if key not in known}
    return Dataset(X.astype(np.float64), y, features, classes, name, source, extras)


def _numbers(values: Any, ndim: int, key: str, where: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != ndim or array.dtype.kind not in "biuf" or array.size == 0:
        needed = f"a numeric {key} of {ndim} dimension{'s' * (ndim > 1)}, not empty,"
        raise _misfit(where, needed, f"shape {array.shape} of {array.dtype}")
    return array


def _target(
    y: NDArray[Any], given: Any, where: str
) -> tuple[NDArray[Any], NDArray[np.str_] | None]:
    """Return class numbers and the names of the classes, or a numeric target and None."""
    if np.isnan(y).any():
        raise _misfit(where, "a target in every row", f"{int(np.isnan(y).sum())} missing ones")
    if given is None and np.issubdtype(y.dtype, np.floating):
        return y.astype(np.float64), None
    if given is None:
        given, y = np.unique(y, return_inverse=True)
    classes = np.asarray(given).astype(str)
    if not np.isin(y, np.arange(classes.size)).all():
        raise _misfit(where, f"class numbers from 0 to {classes.size - 1}", f"{np.unique(y)[:9]}")
    return y.astype(np.int64), classes


def _misfit(where: str, needed: str, came: str) -> InvalidTable:
    return InvalidTable(
        f"load needs {needed} in {where}; got {came}. Write the file with "
        "np.savez_compressed(path, X=X, y=y, feature_names=..., target_names=...)."
    )


def _unknown(name: str) -> InvalidTable:
    addresses = [*names(), *(f"sklearn:{own}" for own in _BUNDLED.values())]
    near = did_you_mean(name.rpartition(":")[2], addresses)
    folder = "" if os.environ.get(FOLDER_VARIABLE) else f", set {FOLDER_VARIABLE} to your folder"
    return InvalidTable(
        f"load cannot find a data set {name!r}.{near} Available are "
        f"{', '.join(map(repr, names()))}. Write one of these{folder}, or write "
        'load("openml:...") to fetch from openml.org.'
    )


def check_archive(where: str, stream: IO[bytes]) -> None:
    """Raise an error if a NumPy archive needs too much memory or has inconsistent headers.

    Only the headers of the arrays are read. Even in a small archive, a header may declare any size,
    and a compressed archive may actually contain that much data.
    """
    needed = 0
    with ZipFile(stream) as archive:
        for member in archive.infolist():
            with archive.open(member) as array:
                version = npy.read_magic(array)
                if version not in _HEADERS:
                    raise ValueError(f"{member.filename} has a header of an unknown version")
                shape, _, dtype = _HEADERS[version](array)
                if prod(shape) * dtype.itemsize > member.file_size:
                    raise ValueError(f"{member.filename} claims more numbers than it contains")
                needed += prod(shape) * max(dtype.itemsize, NUMBER)
    stream.seek(0)
    check_fits(where, needed)
