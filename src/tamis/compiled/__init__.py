"""Loops that numba compiles, one module per topic.

Loading numba takes longer than evaluating most criteria, so these modules are imported lazily.
:mod:`tamis.compiled.thresholds` does not need numba. It contains the problem sizes from which a
compiled loop is faster than numpy. A compiled loop returns the same result as the numpy code that
it replaces.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache as once
from multiprocessing import current_process
from os.path import expanduser
from typing import Any
from warnings import warn


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """Compile a function like :func:`numba.njit`, even if numba's cache cannot be used.

    numba raises an error if no cache folder is writable, or if it cannot read or replace a file.
    With this function, loops that are already stored are still read, and all other loops are
    compiled in each process.
    """
    import numba

    def decorate(function: Any) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache:
            dispatcher._cache = _cache_class()(function)
        return dispatcher

    return decorate


@once
def _cache_class() -> Any:
    """Return numba's cache of a function, without its errors for files that cannot be used."""
    from numba import config
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    given, in_package, *others = CompileResultCacheImpl._locator_classes
    if expanduser("~") == "~":  # no home folder: numba would make a folder named ~
        others = [each for each in others if "UserWide" not in each.__name__]

    folder: Any = given if vars(config)["CACHE_DIR"] else in_package

    class ReadOnlyFolder(folder):
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            return cls(py_func, py_file)  # skips numba's test that the folder is writable

    class Files(CompileResultCacheImpl):
        _locator_classes = [given, in_package, *others, ReadOnlyFolder]  # noqa: RUF012

    class OptionalCache(FunctionCache):
        _impl_class = Files

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                found = super().load_overload(sig, target_context)
            except OSError:  # for example, a file of another user
                return None
            except Exception:  # reading a damaged file can raise any error
                with suppress(OSError):
                    self.flush()
                return None
            # two processes that save at the same time may give their files the same name
            return found if found is None or tuple(found.signature.args) == tuple(sig) else None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except OSError:
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
