"""The command line in a folder with a table, as in the tests of the command line."""

from tests.cli.conftest import folder, frame, refused, tamis

__all__ = ["folder", "frame", "refused", "tamis"]
