"""A method of the benchmark as a scikit-learn selector, with a limit of its processor time."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from types import SimpleNamespace
from typing import Any, ClassVar, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array
from tamis._seeds import draw_seed, stream
from tamis.evaluation.columns import chosen_columns
from tamis.exceptions import InvalidParameter, TamisError
from tamis_book.benchmark.methods import all_columns, first_columns

#: Processor seconds after which a selection fails.
CAP = 300.0


class CapReached(TamisError):
    """A selection took more than the permitted processor time."""


class MethodSelector(SelectorMixin, BaseEstimator):
    """A method of the benchmark as a selector for ``evaluate``.

    The method gets the columns in random order, so that ties do not favour the first ones.

    Parameters
    ----------
    select : callable
        The function of a :class:`Method`, or a scikit-learn selector.
    sizes : tuple of int
        Numbers of columns. Step i of ``trace_`` has the first ``sizes[i]`` columns. If the method
        chooses the number of columns itself, a last step with the chosen columns follows.
    cap : float
        Greatest number of processor seconds.
    random_state : int or None
    """

    #: Facts of the latest fit, which ``evaluate`` does not return: processor seconds, the error,
    #: and whether the method chose a number of columns.
    seconds: ClassVar[float] = 0.0
    error: ClassVar[Exception | None] = None
    chooses: ClassVar[bool] = False

    def __init__(
        self,
        select: Any,
        sizes: Sequence[int] = (),
        cap: float = CAP,
        random_state: int | None = None,
    ):
        self.select = select
        self.sizes = sizes
        self.cap = cap
        self.random_state = random_state

    def fit(self, X: Array, y: NDArray[Any]) -> Self:
        """Select columns, and measure the time."""
        # the random draws differ between resamples, even if these share the seed
        rng = stream(draw_seed(self.random_state), crc32(X.tobytes()))
        shown = (
            np.arange(X.shape[1]) if self.select is first_columns else rng.permutation(X.shape[1])
        )
        X, MethodSelector.error = np.asfortranarray(X[:, shown]), None
        start = process_time()
        try:
            with limit(self.cap):
                found = _call(self.select, X, y, max(self.sizes), rng)
        except Exception as error:
            MethodSelector.error = error
            raise
        finally:
            MethodSelector.seconds = process_time() - start
            if isinstance(MethodSelector.error, CapReached):  # the timer is coarse
                MethodSelector.seconds = max(MethodSelector.seconds, self.cap)
        is_selector = hasattr(found, "get_support") or hasattr(found, "support_")
        order, own = chosen_columns(found) if is_selector else (np.asarray(found), None)
        self.order_ = shown[_checked(order, X.shape[1])]
        sizes = [X.shape[1]] * len(self.sizes) if self.select is all_columns else self.sizes
        subsets = [np.sort(self.order_[:k]) for k in sizes]
        subsets += [] if own is None else [np.sort(shown[own])]
        self.trace_ = [SimpleNamespace(subset=subset) for subset in subsets]
        MethodSelector.chooses = own is not None
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self) -> Any:
        check_is_fitted(self, "trace_")
        return np.isin(np.arange(self.n_features_in_), self.trace_[-1].subset)


def _call(select: Any, X: Array, y: NDArray[Any], k: int, rng: np.random.Generator) -> Any:
    return select.fit(X, y) if hasattr(select, "fit") else select(X, y, k, rng)


def _checked(order: Any, n_columns: int) -> NDArray[np.intp]:
    order = np.asarray(order)
    valid = order.ndim == 1 and order.dtype.kind in "iu"
    if (
        not valid
        or len(set(order.tolist())) < len(order)
        or not set(order) <= set(range(n_columns))
    ):
        raise InvalidParameter(
            f"A method of the benchmark needs to return distinct column indices from 0 to "
            f"{n_columns - 1}, best first, or a fitted selector, got {order!r}."
        )
    return order.astype(np.intp)


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise an error in the main thread if the body takes more processor time.

    There is no limit in other threads, and on systems without timers of processor time.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "SIGPROF") or not is_main:
        yield
        return

    def stop(*_: Any) -> None:
        raise CapReached(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
