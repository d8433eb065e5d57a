"""Twenty-five gated networks trained at once, against one torch module for each.

    python -m benchmarks.gates

Each network has one tanh layer, with sigmoid gates on its inputs. Weights and gates are trained
together, on the training rows of five folds with five seeds each. Both sides start from the same
weights and minimise the same objective. A run of torch (Adam, single precision, best learning
rate) stops when its objective is within SLACK of ours, or after MOST_EPOCHS. Torch is timed on one
seed of each fold, and the time is scaled to all seeds. The data are sonar and SRBCT, if the folder
in TAMIS_DATA has them, or random data of the same sizes.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks import medians
from tamis._arrays import standardised
from tamis.neural import GateSelector, NetworkClassifier, Sparsity
from tamis.neural._objectives import GateFolds, Stack
from tamis.neural.gate_runs import GateRuns, learn_gates
from tamis.neural.gates import GATES
from tamis.neural.redundancy import dependences

N_FOLDS, N_SEEDS, HIDDEN = 5, 5, 12
MU, LAM, DECAY = 0.1, 0.1, 1e-3
#: Torch stops if its objective exceeds ours by at most this share, or after this number of epochs.
SLACK, MOST_EPOCHS = 0.01, 3000
#: Learning rates of Adam that are tried, on the first run.
RATES = (0.01, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Size:
    """Rows, columns and classes of a data set, and the smallest accepted ratio."""

    name: str
    n_samples: int
    n_features: int
    n_classes: int
    goal: float


SIZES = [Size("sonar", 208, 60, 2, 15), Size("srbct", 83, 2308, 4, 2.5)]


def table(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Return the data, or Gaussian classes that differ in 10 % of the columns."""
    file = Path(os.environ.get("TAMIS_DATA", "")) / f"{size.name}.npz"
    if file.is_file():
        data = np.load(file)
        X, y = data["X"].astype(float), data["y"]
    else:
        draw = np.random.default_rng(0)
        y = np.arange(size.n_samples) % size.n_classes
        centres = draw.normal(size=(size.n_classes, size.n_features))
        centres[:, size.n_features // 10 :] = 0
        X = draw.normal(size=(size.n_samples, size.n_features)) + 0.5 * centres[y]
    order = np.argsort(y, kind="stable")  # rows sorted by class, as GateSelector sorts them
    return standardised(X)[order], y[order]


def selector() -> GateSelector:
    """Return the selector with the objective that both sides minimise."""
    network = NetworkClassifier(HIDDEN, decay=DECAY)
    return GateSelector(gate="sigmoid", joint=True, mu=MU, lam=LAM, network=network)


def folds(X: np.ndarray, y: np.ndarray) -> GateFolds:
    """Return the folds, with random networks for all seeds, and correlations of the columns."""
    used = np.ones((N_FOLDS, len(y)), dtype=bool)
    for k, (_, test) in enumerate(StratifiedKFold(N_FOLDS).split(X, y)):
        used[k, test] = False
    stack = Stack.drawn(0, N_FOLDS * N_SEEDS, X.shape[1], HIDDEN, int(y.max()) + 1)
    return GateFolds(X, y, used, stack, [dependences("pearson", X[rows]) for rows in used])


def learned(parts: GateFolds) -> GateRuns:
    """Train all networks with tamis."""
    fold = np.repeat(np.arange(N_FOLDS), N_SEEDS)
    weights = (np.full((len(fold), 1), weight) for weight in (MU, LAM))
    settings = selector()._settings(0, 0, parts.X.shape[1])
    return learn_gates(settings, parts, fold, *weights)


def module(parts: GateFolds, run: int) -> Any:
    """Return a torch module whose call is the objective of one run."""
    import torch

    rows = parts.used[run // N_SEEDS]
    X = torch.tensor(parts.X[rows], dtype=torch.float32)
    y = torch.tensor(parts.codes[rows])
    phi = torch.tensor(parts.redundancy[run // N_SEEDS][0].phi, dtype=torch.float32)
    n_features, width = X.shape[1], Sparsity().width

    class Gates(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.b = torch.nn.Parameter(torch.full((n_features,), GATES["sigmoid"].start))
            self.inner = torch.nn.Linear(n_features, HIDDEN)
            self.outer = torch.nn.Linear(HIDDEN, int(y.max()) + 1)
            with torch.no_grad():
                for layer, weight in (
                    (self.inner, parts.stack.inner[run]),
                    (self.outer, parts.stack.outer[run]),
                ):
                    layer.weight.copy_(torch.tensor(weight.T))
                    layer.bias.zero_()

        def forward(self) -> Any:
            gate = torch.sigmoid(self.b)
            scores = self.outer(torch.tanh(self.inner(X * gate)))
            loss = torch.nn.functional.cross_entropy(scores, y)
            sparsity = (1 - torch.exp(-(gate**2) / (2 * width**2))).mean()
            pairs = n_features * (n_features - 1)
            redundancy = gate @ (phi @ gate) / pairs
            squares = (self.inner.weight**2).sum() + (self.outer.weight**2).sum()
            return loss + MU * sparsity + LAM * redundancy + DECAY / 2 * squares

    return Gates()


def trained(
    parts: GateFolds, run: int, target: float, rate: float, epochs: int
) -> tuple[float, int]:
    """Run Adam until it reaches the target. Return the lowest objective and the epochs."""
    import torch

    objective = module(parts, run)
    optimiser = torch.optim.Adam(objective.parameters(), lr=rate)
    best = np.inf
    for epoch in range(epochs):
        optimiser.zero_grad()
        value = objective()
        best = min(best, value.item())
        if best <= target:
            return best, epoch
        value.backward()
        optimiser.step()
    return best, epochs


def best_rate(parts: GateFolds, target: float) -> float:
    """Return the learning rate that reaches the target in the fewest epochs.

    If no rate reaches the target, the rate with the lowest objective is returned.
    """
    ends = {rate: trained(parts, 0, target, rate, MOST_EPOCHS) for rate in RATES}
    return min(RATES, key=lambda rate: (max(ends[rate][0], target), ends[rate][1]))


def compare(size: Size) -> list[str]:
    """Print the ratio for one size. Return missed goals."""
    parts = folds(*table(size))
    targets = (1 + SLACK) * learned(parts).values
    rate = best_rate(parts, targets[0])
    ends: dict[int, tuple[float, int]] = {}

    def theirs() -> None:
        for run in range(0, len(targets), N_SEEDS):
            ends[run] = trained(parts, run, targets[run], rate, MOST_EPOCHS)

    slow, fast = medians(theirs, lambda: learned(parts))
    ratio = N_SEEDS * slow / fast
    close = sum(best <= targets[run] for run, (best, _) in ends.items())
    epochs = np.mean([epoch for _, epoch in ends.values()])
    what = f"{len(targets)} gated networks, {size.n_samples} x {size.n_features}"
    print(
        f"  {what}: torch {N_SEEDS * slow:.1f} s ({epochs:.0f} epochs at rate {rate}, {close} of "
        f"{len(ends)} runs as low), tamis {fast:.2f} s, ratio {ratio:.1f} (goal {size.goal:g})",
        flush=True,
    )
    return [] if ratio >= size.goal else [f"{what}: slower than promised"]


def main() -> None:
    """Print the ratios; exit with an error if one misses its goal."""
    print("gates, processor seconds on one thread")
    try:
        import torch
    except ImportError:
        print("  torch is not installed: pip install torch")
        return
    torch.set_num_threads(1)
    missed = [line for size in SIZES for line in compare(size)]
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
