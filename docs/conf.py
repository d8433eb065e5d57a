"""Sphinx configuration: numpydoc, an executed gallery, the PyData theme."""

import sys
from pathlib import Path
from typing import Any

import tamis
from tamis.cli.catalogue import QUESTIONS, question_of, reads_of
from tamis.recipes.book import BOOK, Recipe, names

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # gallery_pictures and mathml; book.pages
project = "tamis"
author = "The tamis developers"
copyright = "2026, The tamis developers"
version = release = tamis.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
exclude_patterns = ["_build"]
source_suffix = [".rst", ".md"]
# docstrings inherited from scikit-learn refer to its own guide
suppress_warnings = ["ref.ref"]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "tamis"
html_static_path = ["_static"]
html_css_files = ["tamis.css"]
# sections of one page stand beside it, those of several in a sidebar; wide pages want the width
html_sidebars = {page: [] for page in ("index", "start", "peers", "evidence", "extend")}
html_theme_options = {"header_links_before_dropdown": 8, "show_toc_level": 2}
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "reset_modules": ("matplotlib",),
    "capture_repr": (),
    "image_scrapers": ("matplotlib", "gallery_pictures.altair_scraper"),
}


def catalogue_entry(recipe: Recipe) -> str:
    """A recipe with what it takes, its options and the expression it stands for."""
    options = ", ".join(f"``{name}={value!r}``" for name, value in recipe.parameters.items())
    lines = (
        recipe.name,
        "^" * len(recipe.name),
        f"{recipe.summary} *{recipe.reference}.*",
        "",
        f"Target: {' or '.join(sorted(recipe.targets))}. Reads {reads_of(recipe.make())}. "
        f"Options: {options}.",
        "",
        ".. code-block:: python",
        "",
        f"   {recipe.expression}",
        "",
    )
    return "\n".join(lines)


def write_catalogue(app: Any) -> None:
    """Write the page of all recipes from the recipes themselves, by the question they answer."""
    title = "Catalogue of recipes"
    page = [
        f"{title}\n{'=' * len(title)}\n\nWritten from the recipes themselves. "
        "``tamis.recipe(name, **options)`` makes the selector, ``tamis select table.csv name`` "
        "uses it, ``tamis methods name`` has its formula and cost besides.\n"
    ]
    asked = {name: question_of(BOOK[name].make()) for name in names()}
    for key, question in QUESTIONS.items():
        page.append(f"{question}\n{'-' * len(question)}\n")
        page += [catalogue_entry(BOOK[name]) for name in names() if asked[name] == key]
    Path(app.srcdir, "catalogue.rst").write_text("\n".join(page), encoding="utf-8")


def write_results(app: Any) -> None:
    """Write the pages of the experiments that were computed."""
    from book.pages import write_book

    write_book(Path(app.srcdir, "book"))


def setup(app: Any) -> None:
    """Have the catalogue and the book written before pages are read."""
    app.connect("builder-inited", write_catalogue)
    app.connect("builder-inited", write_results)
