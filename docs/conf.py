"""Sphinx configuration: numpydoc, an executed gallery, the PyData theme."""

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import tamis
from tamis.cli.catalogue import QUESTIONS, question_of, reads_of
from tamis.recipes.book import BOOK, Recipe, names

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # gallery_pictures and mathml; book.pages
FIGURES = tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))
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
templates_path = ["_templates"]
autodoc_typehints = "none"  # the docstrings state the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
exclude_patterns = ["_build"]
source_suffix = [".rst", ".md"]
# docstrings inherited from scikit-learn refer to its own guide and glossary; several classes have
# attributes of the same name
suppress_warnings = ["ref.ref", "ref.term", "ref.python"]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "tamis"
html_static_path = ["_static"]
html_css_files = ["tamis.css"]
# pages without others of their section need no list of these
html_sidebars = {page: [] for page in ("index", "start")}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
}
if os.environ.get("TAMIS_DOCS_VERSIONS"):  # the pages become part of the site of all versions
    from docs.site import ADDRESS, folder_of

    html_theme_options |= {
        "switcher": {
            "json_url": f"{ADDRESS}/versions.json",
            "version_match": folder_of(os.environ.get("GITHUB_REF_NAME", "")),
        },
        "check_switcher": False,
        "navbar_start": ["navbar-logo", "version-switcher"],
    }
# every page may quote a measured figure as |name|
rst_epilog = "\n".join(f".. |{name}| replace:: {figure}" for name, figure in FIGURES.items())
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
    """Return the entry of a recipe: summary, reference, target, options, expression."""
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
    """Write the page that lists all recipes, grouped by the question they answer."""
    title = "Catalogue of recipes"
    page = [
        f"{title}\n{'=' * len(title)}\n\nA recipe is a method of the literature under its usual "
        "name. ``tamis.recipe(name, **options)`` returns the selector. ``tamis select table.csv "
        "name`` runs it on a file. ``tamis methods name`` also prints its formula and its cost.\n"
    ]
    asked = {name: question_of(BOOK[name].make()) for name in names()}
    for key, question in QUESTIONS.items():
        page.append(f"{question}\n{'-' * len(question)}\n")
        page += [catalogue_entry(BOOK[name]) for name in names() if asked[name] == key]
    Path(app.srcdir, "catalogue.rst").write_text("\n".join(page), encoding="utf-8")


def write_results(app: Any) -> None:
    """Write one page for each published table that was computed again."""
    from book.pages import write_book

    write_book(Path(app.srcdir, "book"))


def write_benchmark(app: Any) -> None:
    """Write the pages of the benchmark from its stored results."""
    from tamis_book.benchmark import write_pages

    write_pages(Path(app.srcdir, "field"))


def keep_numbers_together(app: Any, document: Any) -> None:
    """Put no line break into numbers such as 20 000, 0.055 ± 0.006 and 63 %."""
    from docutils import nodes  # the tests import this module without Sphinx

    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, nodes.literal | nodes.FixedTextElement):
            continue
        shown = re.sub(r"(?<=\d) (?=\d{3}(?!\d)|[±%])|(?<=±) ", "\N{NO-BREAK SPACE}", text)
        if shown != text:
            text.parent.replace(text, nodes.Text(shown))


def setup(app: Any) -> None:
    """Write the catalogue and the book before Sphinx reads the pages."""
    app.connect("doctree-read", keep_numbers_together)
    app.connect("builder-inited", write_catalogue)
    app.connect("builder-inited", write_results)
    app.connect("builder-inited", write_benchmark)
