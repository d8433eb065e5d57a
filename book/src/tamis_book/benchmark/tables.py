"""Tables of the benchmark: from the user's folders or from public sources, and their preparation.

A table is looked up in the folders named by the environment variables ``TAMIS_BENCH`` and
``TAMIS_DATA``. If it is in neither, it is downloaded from OpenML or scikit-feature.
"""

import os
import tomllib
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.datasets import fetch_openml, get_data_home

from tamis._arrays import Array, Subset
from tamis._files import replace_bytes
from tamis._format import did_you_mean
from tamis._seeds import stream
from tamis.datasets import load
from tamis.exceptions import InvalidTable

#: Environment variables that name folders with tables, in the order in which they are searched.
FOLDERS = ("TAMIS_BENCH", "TAMIS_DATA")
#: Tables that scikit-learn includes.
BUNDLED = ("iris", "wdbc", "wine")
SCIKIT_FEATURE = "https://github.com/jundongl/scikit-feature/raw/master/skfeature/data/"
#: Strength of the shrinkage of category means. The overall mean is weighted like this number of
#: rows, so rare categories are coded near the overall mean.
PRIOR_ROWS = 10
#: Number of folds used to code the categories of training rows out of fold.
FOLDS = 5
#: Share of the columns that are copied with permuted rows to measure validity.
NOISE = 0.2


class BenchmarkTable(NamedTuple):
    """A table and its target.

    Attributes
    ----------
    name : str
        Name of the table.
    X : DataFrame
        Numbers and text columns, with missing values.
    y : ndarray
        Class numbers (int64) or a numeric target (float64).

    Examples
    --------
    >>> load_table("iris").kinds()
    ['classes', 'few rows']
    """

    name: str
    X: pd.DataFrame
    y: NDArray[Any]

    @property
    def is_classes(self) -> bool:
        """Whether the target consists of classes."""
        return self.y.dtype.kind == "i"

    @property
    def n_categories(self) -> int:
        """Number of text columns."""
        return self.X.shape[1] - self.X.select_dtypes("number").shape[1]

    def kinds(self) -> list[str]:
        """Return the kinds of table for which separate rankings are shown."""
        n, d = self.X.shape
        if not self.is_classes:
            return ["numeric target"]
        rarest = np.bincount(self.y).min() / n
        kinds = {
            "classes": True,
            "wide": d > n,
            "few rows": n <= 500,
            "many rows": n >= 2000,
            "categories": self.n_categories >= d / 2,
            "rare classes": rarest < 0.05,
        }
        return [kind for kind, applies in kinds.items() if applies]

    def facts(self) -> dict[str, Any]:
        """Return the facts about the table that are stored in its result file."""
        digest = sha256(self.y.tobytes())
        digest.update(self.X.select_dtypes("number").to_numpy(dtype=float).tobytes())
        for _, texts in self.X.select_dtypes(exclude="number").items():
            digest.update("\n".join(texts.fillna("missing").astype(str)).encode())
        n, d = self.X.shape
        return {
            "rows": n,
            "columns": d,
            "categories": self.n_categories,
            "classes": len(np.unique(self.y)) if self.is_classes else 0,
            "kinds": self.kinds(),
            "hash": digest.hexdigest()[:16],
        }


@cache
def _listed() -> dict[str, dict[str, str]]:
    path = Path(__file__).with_name("tables.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def omitted() -> dict[str, str]:
    """Return why tables are not in the benchmark, by name."""
    return _listed()["omitted"]


def table_names() -> list[str]:
    """Return the names of all tables of the benchmark.

    >>> {"anneal", "yale"} <= set(table_names())
    True
    """
    return sorted({**_listed()["openml"], **_listed()["scikit-feature"]})


def load_table(name: str) -> BenchmarkTable:
    """Load a table from the user's folders or from scikit-learn, or download it.

    A folder holds ``NAME.parquet``, with the target in the column ``target``, or ``NAME.npz`` with
    the arrays ``X`` and ``y``.

    Parameters
    ----------
    name : str
        Name of a table of the benchmark, or of any other file in the folders.

    Raises
    ------
    InvalidTable
        If there is no such table, or it cannot be downloaded.
    """
    for path in _files(name):
        if path.is_file():
            return read_table(path)
    if name in BUNDLED:
        data = load(name)
        return _table(name, pd.DataFrame(data.X), data.y)
    sources = _listed()
    if address := sources["openml"].get(name):
        return _from_openml(name, *address.split("@"))
    if name in sources["scikit-feature"]:
        return _read_mat(name, _download(sources["scikit-feature"][name]))
    near = did_you_mean(name, table_names())
    raise InvalidTable(
        f"The benchmark needs a table, and {name!r} is neither in the folders named by "
        f"{' and '.join(FOLDERS)} nor available for download.{near} Write one of "
        f"{', '.join(table_names())}, or put {name}.parquet into a folder."
    )


def _files(name: str) -> Iterator[Path]:
    for variable in FOLDERS:
        if folder := os.environ.get(variable):
            yield Path(folder, f"{name}.parquet")
            yield Path(folder, f"{name}.npz")


def read_table(path: Path) -> BenchmarkTable:
    """Read a table from a Parquet file with the column ``target``, or from a NumPy archive."""
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        if "target" not in frame:
            raise InvalidTable(
                f"The benchmark needs the column 'target' in {path}, which has "
                f"{', '.join(map(str, frame.columns))}. Rename the column of the target."
            )
        return _from_frame(path.stem, frame.drop(columns="target"), frame["target"])
    with np.load(path, allow_pickle=False) as archive:
        if not {"X", "y"} <= set(archive.files):
            raise InvalidTable(
                f"The benchmark needs the arrays X and y in {path}, which has "
                f"{', '.join(archive.files)}. Write it with np.savez_compressed(path, X=X, y=y)."
            )
        X, y = archive["X"], archive["y"]
        rows = archive["train_idx"] if path.stem == "svmguide3" else np.arange(len(y))
    return _table(path.stem, pd.DataFrame(X[rows]), y[rows])  # test rows repeat training rows


def _from_openml(name: str, official: str, version: str) -> BenchmarkTable:
    try:
        data = fetch_openml(official, version=int(version), as_frame=True, parser="auto")
    except (OSError, ValueError) as error:
        raise _not_fetched(
            name, f"{official}, version {version}, from openml.org", error
        ) from error
    return _from_frame(name, data.data, data.target)


def _download(file: str) -> Path:
    """Return the path of a file of scikit-feature in scikit-learn's cache, downloaded once."""
    path = Path(get_data_home(), "tamis-benchmark", file)
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with urlopen(SCIKIT_FEATURE + file, timeout=60) as answer:
                content = answer.read()
        except (URLError, OSError) as error:
            raise _not_fetched(file, SCIKIT_FEATURE + file, error) from error
        replace_bytes(path, content)
    return path


def _not_fetched(name: str, source: str, error: Exception) -> InvalidTable:
    return InvalidTable(
        f"The benchmark could not download {name} from {source} ({error}). Check the connection, "
        f"or put the table into a folder named by {FOLDERS[0]}."
    )


def _read_mat(name: str, path: Path) -> BenchmarkTable:
    data = loadmat(path)
    return _table(name, pd.DataFrame(data["X"]), np.ravel(data["Y"]))


def _from_frame(name: str, X: pd.DataFrame, target: "pd.Series[Any]") -> BenchmarkTable:
    """Return a table. Its target is numeric if it consists of numbers, and classes otherwise."""
    is_real = pd.api.types.is_numeric_dtype(target.dtype)
    return _table(name, X, target.astype(float if is_real else str).to_numpy())


def _table(name: str, X: pd.DataFrame, y: NDArray[Any]) -> BenchmarkTable:
    """Return a table with class numbers or a numeric target, and columns of numbers or text."""
    texts = X.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes]]
    X = X.astype(dict.fromkeys(texts, object)).reset_index(drop=True)
    X.columns = X.columns.astype(str)
    if y.dtype.kind == "f":
        return BenchmarkTable(name, X, y.astype(np.float64))
    return BenchmarkTable(
        name, X, np.unique(y.astype(str), return_inverse=True)[1].astype(np.int64)
    )


def prepare(table: BenchmarkTable, train: Subset) -> Array:
    """Return a table as numbers. Everything is learned from the training rows.

    Missing numbers are replaced by the median. A category is replaced by the mean target of its
    training rows, which is shrunk towards the mean of all training rows. With several classes, it
    is replaced by the first principal component of the class frequencies of the categories. The
    code of a training row is computed from the other folds of the training rows. Missing values
    form a category.

    Parameters
    ----------
    table : BenchmarkTable
        The table.
    train : array of int
        Indices of the training rows.

    Returns
    -------
    array of shape (n_rows, n_columns)
    """
    coded = np.empty(table.X.shape)
    is_number = np.array([pd.api.types.is_numeric_dtype(kind) for kind in table.X.dtypes])
    if is_number.any():
        numbers = table.X.loc[:, is_number].to_numpy(dtype=float, na_value=np.nan)
        medians = pd.DataFrame(numbers[train]).median().fillna(0.0).to_numpy()
        coded[:, is_number] = np.where(np.isnan(numbers), medians, numbers)
    target = table.y[:, None].astype(float)
    if table.is_classes:
        target = (table.y[:, None] == np.unique(table.y)).astype(float)
    for j in np.flatnonzero(~is_number):
        coded[:, j] = _code(table.X.iloc[:, j], target, train)
    return coded


def _code(column: "pd.Series[Any]", target: Array, train: Subset) -> Array:
    """Return the codes of a category. A training row is coded by the rows of other folds.

    Otherwise a category with a single row would reveal the target of this row.
    """
    levels, level = np.unique(column.fillna("missing").astype(str), return_inverse=True)

    def means(rows: Subset) -> Array:
        counts = np.bincount(level[rows], minlength=len(levels))[:, None]
        sums = np.zeros((len(levels), target.shape[1]))
        np.add.at(sums, level[rows], target[rows] - target[rows].mean(axis=0))
        return sums / (counts + PRIOR_ROWS)

    whole = means(train)
    coded = whole[level]
    fold = stream(0, "codes").permutation(len(train)) % FOLDS
    for k in range(FOLDS):
        coded[train[fold == k]] = means(train[fold != k])[level[train[fold == k]]]
    if target.shape[1] == 1:
        return coded[:, 0]
    counts = np.bincount(level[train], minlength=len(levels))[:, None]
    axes = np.linalg.svd(np.sqrt(counts) * whole, full_matrices=False)[2]
    return np.asarray(coded @ axes[0])


def add_noise(table: BenchmarkTable, seed: int) -> BenchmarkTable:
    """Return a table with additional columns: permuted copies of a fifth of the columns."""
    rng, d = stream(seed, "noise", table.name), table.X.shape[1]
    chosen = rng.choice(d, size=int(np.ceil(NOISE * d)), replace=False)
    copies = {
        f"permuted {table.X.columns[j]}": table.X.iloc[rng.permutation(len(table.y)), j].to_numpy()
        for j in chosen
    }
    noise = pd.DataFrame(copies, index=table.X.index)
    return table._replace(X=pd.concat([table.X, noise], axis=1))


def sizes_of(n_columns: int) -> list[int]:
    """Return the numbers of columns at which methods are measured.

    They are ceil(d i / 6) for i from 1 to 5 if d is at most 100, and ceil(d^(i / 6)) otherwise.

    >>> sizes_of(30), sizes_of(2000), sizes_of(4)
    ([5, 10, 15, 20, 25], [4, 13, 45, 159, 564], [1, 2, 2, 3, 4])
    """
    d, steps = n_columns, range(1, 6)
    if d <= 100:
        return [-(-d * i // 6) for i in steps]
    return [int(np.ceil(d ** (i / 6) - 1e-9)) for i in steps]
