"""Loops that numba compiles, one module per topic.

Loading numba takes longer than evaluating most criteria, so these modules are imported lazily.
:mod:`tamis.compiled.thresholds` does not need numba. It holds the problem sizes from which a
compiled loop is faster than numpy. A compiled loop returns the same result as the numpy code that
it replaces.
"""

from collections.abc import Callable
from functools import cache as once
from multiprocessing import current_process
from typing import Any
from warnings import warn


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """Compile a function as :func:`numba.njit` does, also if its cache cannot be used.

    numba raises an error if it finds no writable folder, or a file that it can neither read nor
    replace. Here the function is compiled in each process instead.
    """
    import numba

    def decorate(function: Any) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache:
            try:
                dispatcher._cache = _cache_class()(function)
            except RuntimeError:  # numba found no folder that it can write to
                _warn_once()
        return dispatcher

    return decorate


@once
def _cache_class() -> Any:
    """Return numba's cache of a function, without its errors for files of other processes."""
    from pickle import UnpicklingError

    from numba.core.caching import FunctionCache

    class OptionalCache(FunctionCache):  # type: ignore[misc]
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                found = super().load_overload(sig, target_context)
            except (OSError, EOFError, UnpicklingError):
                return None
            # two processes that save at the same time may give their files the same name
            return found if found is None or tuple(found.signature.args) == tuple(sig) else None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except (OSError, EOFError, UnpicklingError):
                _warn_once()

    return OptionalCache


@once
def _warn_once() -> None:
    """Warn that compiled loops are not stored. Worker processes do not repeat the warning."""
    from tamis.exceptions import CacheUnusable

    if current_process().name == "MainProcess":
        warn(
            "numba needs a writable folder to store compiled loops, got none, so each process "
            "compiles them again. Set NUMBA_CACHE_DIR to a folder of your own.",
            CacheUnusable,
            stacklevel=2,
        )
