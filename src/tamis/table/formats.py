"""File formats by name, extension and first bytes."""

#: File extensions of each format.
_ENDINGS = {
    "csv": ("csv", "txt"),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "excel": ("xlsx", "xls", "xlsb", "ods"),
    "arff": ("arff",),
    "libsvm": ("libsvm", "svmlight", "svm"),
}
#: Allowed values of ``--format``.
FORMATS = tuple(_ENDINGS)
EXTENSIONS = {f".{end}": kind for kind, endings in _ENDINGS.items() for end in endings}

#: Compression for each file extension, which follows the extension of the format.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

#: First bytes of each format and compression, by which input without a file name is recognised.
BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"PK\x03\x04": "excel",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
}
