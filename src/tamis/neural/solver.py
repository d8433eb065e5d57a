"""How gates, and weights that are learned with them, find their minimum."""

from typing import Any

from sklearn.base import BaseEstimator

from tamis._arrays import Array, is_int, is_real
from tamis.exceptions import InvalidParameter
from tamis.neural._checks import check_among
from tamis.neural._optimise import BatchObjective, Watch, adam, lbfgs
from tamis.neural._training import batches

SOLVERS = ("lbfgs", "adam")


class GateSolver(BaseEstimator):
    """Minimiser of a :class:`GateSelector`.

    Before the same network both kinds end at the same linear gates; bounded ones, which stay open
    or closed, may be decided differently.

    Parameters
    ----------
    kind : {"lbfgs", "adam"}, default="lbfgs"
    max_iter : int, default=1000
        Iterations of L-BFGS, or epochs of Adam, at the most.
    tol : float, default=1e-5
        Relative change of the objective below which gates are at rest.
    learning_rate : float, default=0.02
        Of Adam.
    batch_size : int or None, default=None
        Rows of each step of Adam; None for all.

    Examples
    --------
    >>> from tamis.neural import GateSelector, GateSolver
    >>> GateSelector(solver=GateSolver("adam", max_iter=200)).get_params()["solver__max_iter"]
    200
    """

    def __init__(
        self,
        kind: str = "lbfgs",
        *,
        max_iter: int = 1000,
        tol: float = 1e-5,
        learning_rate: float = 0.02,
        batch_size: int | None = None,
    ):
        self.kind = kind
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.batch_size = batch_size

    def check(self) -> None:
        """Refuse parameters that cannot work."""
        check_among(self, {"kind": SOLVERS})
        if not (is_int(self.max_iter) and self.max_iter >= 1):
            raise InvalidParameter(
                f"GateSolver needs max_iter as an int of at least 1, not {self.max_iter!r}."
            )
        if not (is_real(self.tol) and self.tol >= 0):
            raise InvalidParameter(f"GateSolver needs tol >= 0, not {self.tol!r}.")
        if not (is_real(self.learning_rate) and self.learning_rate > 0):
            raise InvalidParameter(
                f"GateSolver needs learning_rate > 0, not {self.learning_rate!r}."
            )
        if self.batch_size is not None and not (is_int(self.batch_size) and self.batch_size >= 1):
            raise InvalidParameter(
                "GateSolver needs batch_size as an int of at least 1 or None, not "
                f"{self.batch_size!r}."
            )

    def minimised(
        self,
        objective: BatchObjective,
        start: Array,
        *,
        n_samples: int,
        seed: int,
        longest: float,
        lowest: Array,
        watch: Watch,
    ) -> tuple[Array, Array]:
        """Where every run ends, and its value there."""
        common: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "watch": watch}
        if self.kind == "lbfgs":
            return lbfgs(objective, start, longest=longest, lowest=lowest, **common)
        rows = batches(n_samples, self.batch_size, seed)
        return adam(objective, start, learning_rate=self.learning_rate, batches=rows, **common)
