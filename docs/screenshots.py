"""Reports of several tables, and screenshots of them on screen, phone and paper.

``make screenshots`` writes them to the folder ``screenshots``, and prints the size of each page and
the time to load it, compared with an empty page.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

import tamis
from tamis.criteria import ColumnSubset, FisherScore
from tamis.datasets import load, make_mixed
from tamis.evaluation import Realizations, evaluate, standings
from tamis.exceptions import TamisError
from tamis.report import compared, report, resampled
from tamis.search import Forward, Ranking
from tamis.svm import SVCPathCV
from tamis_book import reproduce, reproduced
from tests.browser import Browser

#: Number of loads for the median time.
LOADS = 5
#: Pixels of an A4 page inside its margins.
PAPER = 700, 990


def breast_cancer():
    """Two classes, thirty columns, everything measured."""
    table = load_breast_cancer(as_frame=True)
    X, y = table.data, np.array(["malignant", "benign"])[table.target]
    tuned = SVCPathCV("linear", cv=5, rule="one-standard-error").fit(scale(X), y)
    machine = SVC(kernel="linear", C=tuned.best_C_)
    chosen = tamis.recipe("svm-rfe", C=tuned.best_C_, n_features_to_select=12).fit(X, y)
    results = resampled(chosen, X, y, 30, estimator=machine)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(chosen.transform(X), y)
    command = "tamis select breast_cancer.csv --target diagnosis svm-rfe --features 12"
    return report(
        chosen, X, y, results=results, tuned=tuned, model=model,
        source="breast_cancer.csv", target="diagnosis", command=command,
    )  # fmt: skip


def diabetes():
    """A real target."""
    table = load_diabetes(as_frame=True, scaled=False)
    X, y = table.data, table.target.to_numpy()
    chosen = tamis.recipe("ridge-regression-rfe", n_features_to_select=5).fit(X, y)
    results = resampled(chosen, X, y, 20)
    return report(chosen, X, y, results=results, source="diabetes.csv", target="progression")


def wine_without_a_target():
    """Report without a target."""
    wine = load("wine")
    chosen = Forward(ColumnSubset(), n_features_to_select=5).fit(wine.X)
    return report(chosen, wine.X, names=wine.feature_names, source="wine.csv")


def incomes():
    """Report of categories, missing values and numbers, without resamples."""
    table = make_mixed(600, random_state=0, like="incomes")
    chosen = tamis.select(table.to_frame(), table.y, n_features_to_select=5)
    return report(chosen, table.to_frame(), table.y, source="incomes.csv", target="income")


def ten_thousand():
    """Report of ten thousand columns."""
    rng = np.random.default_rng(0)
    y = np.repeat(["ill", "well"], 40)
    X = rng.normal(size=(80, 10_000))
    X[y == "ill", :30] += np.linspace(1.5, 0.3, 30)
    chosen = Ranking(FisherScore(), n_features_to_select=30).fit(X, y)
    names = [f"probe {j:05d}" for j in range(10_000)]
    results = resampled(chosen, X, y, 10)
    return report(
        chosen, X, y, results=results, names=names, source="ten_thousand.csv", target="state"
    )


def srbct():
    """Four classes, few rows, many columns; needs TAMIS_DATA."""
    table = load("srbct")
    chosen = tamis.recipe("svm-rfe", n_features_to_select=20).fit(table.X, table.y)
    results = resampled(chosen, table.X, table.y, 10)
    return report(chosen, table.X, table.y, results=results, source="srbct.csv", target="tumour")


def pairs():
    """Report of an interaction of two columns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 12))
    y = np.where((X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0, "high", "low")
    names = [f"column {j}" for j in range(12)]
    chosen = tamis.recipe("pair-scan", n_features_to_select=4).fit(X, y)
    return report(chosen, X, y, names=names, source="pairs.csv", target="kind")


def comparison():
    """Comparison of methods on three tables."""
    names = ("correlation", "mrmr", "jmi", "ridge-rfe")
    methods = {name: tamis.recipe(name, n_features_to_select=4) for name in names}
    methods["ridge-rfe"].set_params(n_features_to_select=1)
    baselines = {"all columns": make_pipeline(RidgeClassifier()), "baseline": DummyClassifier()}
    tables = [load(name) for name in ("wine", "wdbc", "iris")]
    data = {f"{table.name}.csv": (table.X, table.y) for table in tables}
    results = evaluate(
        methods | baselines,
        data,
        Realizations(10),
        estimators=RidgeClassifier(),
        sizes=[1, 2, 3, 4],
    )
    return compared(standings(results, baselines=tuple(baselines)))


def published_table():
    """Hits of several methods on a simulated problem, compared with a thesis."""
    return reproduced(reproduce("thesis-3.2", realizations=2))


PAGES = (
    breast_cancer, diabetes, wine_without_a_target, incomes, ten_thousand, srbct, pairs,
    comparison, published_table,
)  # fmt: skip


def taken(browser, page):
    """Save screenshots of a page: light, dark, narrow and printed."""
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(page)
        browser.settle()
        browser.picture(page.with_name(f"{page.stem}-{scheme}.png"))
    browser.prefer("light")
    browser.resize(390, 844)
    browser.settle()
    browser.picture(page.with_name(f"{page.stem}-narrow.png"))
    browser.printed(page.with_name(f"{page.stem}-print.pdf"))
    browser.show_as("print")
    browser.resize(*PAPER)
    browser.settle()
    browser.picture(page.with_name(f"{page.stem}-print.png"))
    browser.show_as("screen")
    browser.resize(1180, 900)


def load_time(browser, page):
    """Return the median load time in seconds."""
    return float(np.median([browser.open(page) for _ in range(LOADS)]))


def main(folder, *names):
    """Write all pages, or those with the given names, and their screenshots."""
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    empty = folder / "empty.html"
    empty.write_text("<!doctype html><title>empty</title>")
    with Browser() as browser:
        print(f"empty page: {load_time(browser, empty):.2f} s")
        for make in (make for make in PAGES if not names or make.__name__ in names):
            page = folder / f"{make.__name__}.html"
            try:
                make().save(page)
            except TamisError as error:
                print(f"{make.__name__} is left out: {error}")
                continue
            seconds = load_time(browser, page)
            print(f"{page}: {page.stat().st_size / 1000:.0f} kB, loaded in {seconds:.2f} s")
            taken(browser, page)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"), *sys.argv[2:])
