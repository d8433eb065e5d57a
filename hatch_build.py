"""The README in the metadata of the wheel, whose links lead to the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README. A registry shows it without the files that it links to."""
        home = metadata["urls"]["Source"]
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{home}/raw/main/", text)
        text = re.sub(r"(\]\()(?!https?:)", rf"\1{home}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
