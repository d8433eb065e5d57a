"""The formats of tables, by name and by extension."""

#: What ``--format`` takes.
FORMATS = ("csv", "tsv", "parquet", "arrow", "excel", "arff", "libsvm")

EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
    ".xls": "excel",
    ".xlsb": "excel",
    ".ods": "excel",
    ".arff": "arff",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}

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
