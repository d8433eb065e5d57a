"""Scraper of altair charts for sphinx-gallery."""

from typing import Any

from altair import TopLevelMixin


def altair_scraper(block: Any, block_vars: Any, gallery_conf: Any) -> str:
    """Save the altair charts that a block of an example assigns to a name."""
    from sphinx_gallery.scrapers import figure_rst  # only installed to build the pages

    drawn = block_vars.setdefault("charts", set())
    paths = []
    for name, item in block_vars["example_globals"].items():
        if isinstance(item, TopLevelMixin) and name not in drawn and name in block.content:
            path = str(next(block_vars["image_path_iterator"]))
            item.save(path, scale_factor=2)
            drawn.add(name)
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
