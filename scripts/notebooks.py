"""Executes the notebooks of docs/notebooks, Python files with `# %%` between their inputs, and writes them as pages.

.venv/bin/python scripts/notebooks.py DIR                     writes DIR/NAME.md and its figures
.venv/bin/python scripts/notebooks.py DIR --ipynb question    also DIR/question.ipynb, for Jupyter; names: only these

A page is written again only if its notebook or the package has changed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "notebooks"
PACKAGE = ROOT / "python" / "anabranch"
# Seconds for one input, on a machine that does other things, too.
TIMEOUT_S = 600
_MARK = re.compile(r"^# %%( \[markdown\])?[^\n]*\n", re.MULTILINE)
# Escape sequences of colours in what is printed.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def read(source: Path) -> nbformat.NotebookNode:
    """The notebook that a file describes, without outputs."""
    notebook = nbformat.v4.new_notebook()
    parts = _MARK.split(source.read_text(encoding="utf-8"))
    if parts[0].strip():
        raise SystemExit(f"error: {source}: expected `# %%` in the first line")
    for number, (is_text, body) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
        if is_text:
            text = "\n".join(re.sub(r"^# ?", "", line) for line in body.strip().splitlines())
            part = nbformat.v4.new_markdown_cell(text)
        else:
            part = nbformat.v4.new_code_cell(body.strip())
        # Numbers, so that the same source gives the same notebook.
        part["id"] = f"part-{number}"
        notebook.cells.append(part)
    return notebook


def execute(notebook: nbformat.NotebookNode) -> None:
    """Runs all inputs in a folder of their own, which is removed. An exception ends it, with its traceback."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3", resources=resources).execute()


def page(notebook: nbformat.NotebookNode, name: str) -> tuple[str, dict[str, bytes]]:
    """An executed notebook as Markdown, and its figures by file name."""
    lines: list[str] = []
    figures: dict[str, bytes] = {}
    for part in notebook.cells:
        if part.cell_type == "markdown":
            lines.append(part.source)
            continue
        lines.append(f"```python\n{part.source}\n```")
        for output in part.outputs:
            lines += _shown(output, name, figures)
    return "\n\n".join(lines) + "\n", figures


def _shown(output: nbformat.NotebookNode, name: str, figures: dict[str, bytes]) -> Iterator[str]:
    """An output as Markdown; a figure is kept next to it."""
    if output.output_type == "stream":
        # Progress is a line that is written over, and of no interest afterwards.
        if output.text.strip() and "\r" not in output.text:
            yield f"```text\n{_COLOURS.sub('', output.text.rstrip())}\n```"
        return
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(figures) + 1}.png"
        figures[file] = base64.b64decode(data["image/png"])
        yield f"![Output of the code above]({file})"
    elif "text/html" in data:
        # Tables of data frames have a style sheet of their own, which the page does not need.
        html = re.sub(r"<style>.*?</style>\s*", "", data["text/html"], flags=re.DOTALL)

        def kept(found: re.Match[str]) -> str:
            file = f"{name}-{len(figures) + 1}.png"
            figures[file] = base64.b64decode(found[1])
            return f'src="{file}"'

        html = re.sub(r'src="data:image/png;base64,([^"]*)"', kept, html)
        yield f'<div class="output">\n{html.strip()}\n</div>'
    elif "text/plain" in data:
        yield f"```text\n{data['text/plain']}\n```"


def digest(source: Path) -> str:
    """What the page of a notebook follows from: its source, this program and the package."""
    found = hashlib.sha256()
    for file in [source, Path(__file__), *sorted(PACKAGE.rglob("*.py")), *sorted(PACKAGE.glob("*.so"))]:
        found.update(file.name.encode() + file.read_bytes())
    return found.hexdigest()


def write(source: Path, folder: Path, *, ipynb: bool = False) -> Path:
    """Executes a notebook and writes its page, unless the page is that of the same notebook."""
    file, mark = folder / f"{source.stem}.md", f"<!-- {digest(source)} -->"
    if file.exists() and file.read_text(encoding="utf-8").endswith(mark + "\n") and not ipynb:
        return file
    folder.mkdir(parents=True, exist_ok=True)
    notebook = read(source)
    execute(notebook)
    text, figures = page(notebook, source.stem)
    for name, content in figures.items():
        (folder / name).write_bytes(content)
    file.write_text(f"{text}\n{mark}\n", encoding="utf-8")
    if ipynb:
        nbformat.write(notebook, folder / f"{source.stem}.ipynb")
    return file


def main() -> None:
    """Executes what was asked for, or everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--ipynb", action="store_true", help="also write the executed notebook for Jupyter")
    arguments = parser.parse_args()
    # A kernel may find its own files in the folder of the environment only.
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    for source in sorted(SOURCES.glob("*.py")):
        if not arguments.names or source.stem in arguments.names:
            print(write(source, arguments.folder, ipynb=arguments.ipynb))


if __name__ == "__main__":
    main()
