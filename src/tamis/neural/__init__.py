"""Selectors with gates on the columns, learned by gradients."""

from tamis.neural.sammon import UFeSCoR

__all__ = ["UFeSCoR"]
