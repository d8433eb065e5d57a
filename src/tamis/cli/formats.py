"""The formats of tables, by name and by extension."""

#: What ``--format`` takes.
FORMATS = ("csv", "tsv", "parquet", "arff", "libsvm")

EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}
