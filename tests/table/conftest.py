"""The folder with tables of the command line's tests."""

from tests.cli.conftest import folder, frame, libsvm, refused, tamis

__all__ = ["folder", "frame", "libsvm", "refused", "tamis"]
