"""The formats of tables, by name and by extension."""

#: Extensions of each format.
_ENDINGS = {
    "csv": ("csv", "txt"),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "excel": ("xlsx", "xls", "xlsb", "ods"),
    "arff": ("arff",),
    "libsvm": ("libsvm", "svmlight", "svm"),
}
#: What ``--format`` takes.
FORMATS = tuple(_ENDINGS)
EXTENSIONS = {f".{end}": kind for kind, endings in _ENDINGS.items() for end in endings}

#: Ways to compress a file, by the extension behind that of the format.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

#: The first bytes that tell a format or a compression, for input that has no name.
BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"PK\x03\x04": "excel",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
}
