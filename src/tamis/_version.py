"""The version of tamis, read by the build as well."""

__version__ = "0.1.0"
