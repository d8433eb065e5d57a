"""Sphinx configuration: numpydoc, an executed gallery, the PyData theme."""

import tamis

project = "tamis"
author = "The tamis developers"
copyright = "2026, The tamis developers"
version = release = tamis.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
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
html_theme = "pydata_sphinx_theme"
html_title = "tamis"
html_sidebars = {"**": []}  # the pages are few, and the code wants the width
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "reset_modules": ("matplotlib",),
}
