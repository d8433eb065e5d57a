"""Figures of Yang (2011) from our own runs, written to ``_static/book``.

``python -m docs.thesis_pictures`` writes them. It needs sonar and svmguide3 in the folder named by
the environment variable TAMIS_DATA.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import laplace
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import SVR

from tamis.datasets import load
from tamis.svm import SVCPath, SVCPathCV

FOLDER = Path(__file__).parent / "_static" / "book"
LAMBDA = "lambda = 1 / C"


def figure_1_4(fig: Any) -> None:
    """Validation error of a linear SVM on sonar, for every lambda."""
    X, y, *_ = load("sonar")
    rows = train_test_split(np.arange(len(y)), train_size=0.75, stratify=y, random_state=0)
    search = SVCPathCV("linear", cv=[tuple(rows)], refit=False).fit(scale(X), y)
    ax = fig.subplots()
    _stairs(ax, search.curve_)
    ax.set_xscale("log", base=2)
    ax.set(xlabel=LAMBDA, ylabel="validation error")


def figure_4_1(fig: Any) -> None:
    """Density of the target of an SVR at a row, and with the only column permuted."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 60))
    y = np.sinc(x) + 0.1 * rng.normal(size=60)
    machine = SVR(C=10, gamma=0.5, epsilon=0.05).fit(x[:, None], y)
    widths = [np.abs(y - machine.predict(z[:, None])).mean() for z in (x, rng.permutation(x))]
    row, other = 30, 12
    grid = np.linspace(-1, 1.6, 300)
    ax = fig.subplots()
    for at, width, name in zip(
        (row, other), widths, ("p(y | x)", "p(y | x permuted)"), strict=True
    ):
        centre = machine.predict(x[[at], None])[0]
        ax.plot(grid, laplace.pdf(grid, centre, width), label=name)
    ax.plot(y[row], 0, "o", color="black", clip_on=False, label="target of the row")
    ax.set(xlabel="y", ylabel="density", ylim=(0, None))
    ax.legend()


def figure_6_1(fig: Any) -> None:
    """Multipliers of rows on the margin, and outputs of validation rows, near a few breakpoints."""
    X, y, *_ = load("sonar")
    train, rest = train_test_split(np.arange(len(y)), train_size=100, stratify=y, random_state=0)
    Z = scale(X)
    path = SVCPath("linear").fit(Z[train], y[train])
    some = path.breakpoints_[40:46]
    Cs = np.linspace(some[0], some[-1], 60)
    duals = np.array([np.abs(path.dual_coef(C)).ravel() / C for C in Cs])
    margin = np.flatnonzero((duals > 1e-9).all(axis=0) & (duals < 1 - 1e-9).all(axis=0))[:4]
    outputs = np.array([path.decision_function(Z[rest], C=C) / C for C in Cs])
    close = np.argsort(np.abs(outputs).min(axis=0))[:4]
    left, right = fig.subplots(1, 2)
    left.plot(1 / Cs, duals[:, margin])
    right.plot(1 / Cs, outputs[:, close])
    right.axhline(0, color="black", linewidth=0.5)
    for ax, title in (
        (left, "alpha of rows on the margin"),
        (right, "lambda f of validation rows"),
    ):
        for C in some:
            ax.axvline(1 / C, color="grey", linewidth=0.5, linestyle=":")
        ax.set(xlabel=LAMBDA, title=title)


def figure_6_2(fig: Any) -> None:
    """Cross-validated error on svmguide3, with the error of the first fold."""
    table = load("svmguide3")
    rows = table.extras["train_idx"]  # the test rows repeat training rows
    X, y = scale(table.X[rows]), table.y[rows]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    ax = fig.subplots()
    for part, name in ((folds, "five folds"), (folds[:1], "first fold")):
        search = SVCPathCV("linear", cv=part, refit=False).fit(X, y)
        _stairs(ax, search.curve_, label=name)
    ax.set_xscale("log", base=2)
    ax.set(xlabel=LAMBDA, ylabel="cross-validated error")
    ax.legend()


def _stairs(ax: Any, curve: Any, **style: Any) -> None:
    ax.stairs(curve.values[::-1], 1 / curve.breakpoints[::-1], baseline=None, **style)


def main() -> None:
    """Write all figures."""
    # imported here because the tests collect this module without the packages of the documentation
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # text as text, and the same file for the same figure
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tamis", "font.size": 9})
    FOLDER.mkdir(parents=True, exist_ok=True)
    for draw in (figure_1_4, figure_4_1, figure_6_1, figure_6_2):
        fig = Figure(figsize=(5.2, 2.8), layout="constrained")
        draw(fig)
        name = draw.__name__.replace("_", "-", 1).replace("_", ".")
        fig.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
