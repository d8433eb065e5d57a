"""The selections that pictures and pages are made of."""

from tests.page_cases import eliminated, hostile, resampled, tuned, wine

__all__ = ["eliminated", "hostile", "resampled", "tuned", "wine"]
