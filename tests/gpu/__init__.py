"""Checks of a GPU: ``make test-gpu``, or ``python -m tests.gpu`` without pytest."""
