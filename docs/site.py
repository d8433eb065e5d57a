"""Add built pages to the documentation site: ``python -m docs.site BUILD SITE REF``.

``SITE`` has one folder for each minor release and one named ``dev`` for branches. ``versions.json``
lists them for the menu in the header, and ``index.html`` leads to the newest release.
"""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"][
    "Documentation"
]


def folder_of(ref: str) -> str:
    """Return the folder of a tag (v0.1.2: 0.1) or of a branch (dev)."""
    tag = re.fullmatch(r"v(\d+\.\d+)(\..*)?", ref)
    return tag[1] if tag else "dev"


def add_pages(build: Path, site: Path, ref: str) -> None:
    """Replace the folder of a version by the built pages, and write the list of versions."""
    folder = site / folder_of(ref)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(build, folder)
    found = [path.name for path in site.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    releases = sorted(found, key=lambda name: tuple(map(int, name.split("."))), reverse=True)
    names = releases + ["dev"] * (site / "dev").is_dir()
    versions = [
        {"version": name, "url": f"{ADDRESS}/{name}/", "preferred": name == names[0]}
        for name in names
    ]
    (site / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>tamis</title>'
        f'<meta http-equiv="refresh" content="0; url={names[0]}/">\n',
        encoding="utf-8",
    )
    (site / ".nojekyll").touch()  # pages in folders such as _static are served as they are


if __name__ == "__main__":
    add_pages(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
