"""What MkDocs does in addition to its own work: the executed notebooks become pages."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
# Where `make site` has scripts/notebooks.py write.
EXECUTED = ROOT / ".venv" / "notebooks"
SOURCES = ROOT / "docs" / "notebooks"
_LINK = re.compile(r"(\]\((?:[\w./-]*/)?)([\w-]+)\.py\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the notebooks, and their figures."""
    for source in sorted(SOURCES.glob("*.py")):
        if not (EXECUTED / f"{source.stem}.md").is_file():
            raise PluginError(f"{source.name} was not executed: `make site` does that first")
        for file in sorted(EXECUTED.glob(f"{source.stem}*")):
            if file.suffix == ".md" or re.fullmatch(rf"{source.stem}-\d+\.png", file.name):
                files.append(File.generated(config, f"notebooks/{file.name}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """In the repository links lead to the source of a notebook, on the site to its page."""
    names = {source.stem for source in SOURCES.glob("*.py")}

    def on_site(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}.md)" if found[2] in names else found[0]

    return _LINK.sub(on_site, markdown)
