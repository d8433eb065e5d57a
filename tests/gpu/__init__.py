"""What must hold on a GPU: ``make test-gpu``, or without pytest ``python -m tests.gpu``."""
