"""The command in a folder with a table, as the tests of the command line have it."""

from tests.cli.conftest import folder, frame, refused, tamis

__all__ = ["folder", "frame", "refused", "tamis"]
