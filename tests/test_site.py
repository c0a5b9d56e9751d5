"""The documentation site: it builds without a broken link, loads nothing over the network, and works in a browser."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import require

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / ".venv" / "notebooks"

pytestmark = pytest.mark.slow

# Attributes whose address a browser loads by itself; those of links to follow are none.
_LOADING = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("use", "href"),
    ("link", "href"),
}
# Relations of a `link` that load nothing.
_STILL = {"canonical", "prev", "next"}


class _Loads(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name, value in attrs:
            if (tag, name) in _LOADING and value and not (tag == "link" and values.get("rel") in _STILL):
                self.addresses.append(value)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it, in a folder of its own."""
    lacking = [name for name in ("material", "nbclient", "ipykernel") if importlib.util.find_spec(name) is None]
    if lacking:
        reason = f"{', '.join(lacking)} not installed: make .venv/.site"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("site")
    program = [sys.executable, str(ROOT / "scripts" / "notebooks.py"), str(NOTEBOOKS)]
    subprocess.run(program, check=True, timeout=900, cwd=ROOT)
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=600, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_loads_nothing_over_the_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 70
    for page in pages:
        found = _Loads()
        found.feed(page.read_text("utf-8"))
        assert found.addresses, page
        foreign = [address for address in found.addresses if re.match(r"(?:https?:)?//", address)]
        assert foreign == [], page
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//", style.read_text("utf-8")) == [], style


def test_notebooks_are_shown_with_their_output(site: Path) -> None:
    for name in ("question", "own-scheduler", "own-bitrate-rule"):
        page = (site / "notebooks" / f"{name}.html").read_text("utf-8")
        assert "Traceback" not in page
        assert len(re.findall(rf'<img[^>]*src="{name}-\d+\.png"', page)) >= 1, name
        assert "is the reference of" in page, name


def test_the_reference_of_the_package_has_signatures_and_docstrings(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text("utf-8")
    asked = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "reference" / "python.md").read_text("utf-8"), re.MULTILINE)
    assert len(asked) > 40
    for name in asked:
        assert f'id="{name}"' in page, name
    assert "Keys to override, dotted" in page


@pytest.fixture
def open_page(site: Path) -> Iterator[Any]:
    """Opens a page of the site as a file; whatever it would load from elsewhere is noted and refused."""
    require("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def opened(page: str, *, width: int = 1280, dark: bool = False) -> tuple["Page", list[str]]:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
            )
            asked: list[str] = []

            def refused(route: "Route") -> None:
                asked.append(route.request.url)
                route.abort()

            context.route(re.compile("^https?:"), refused)
            shown = context.new_page()
            shown.on("pageerror", lambda error: asked.append(str(error)))
            shown.goto((site / page).as_uri())
            return shown, asked

        yield opened
        browser.close()


def test_search_works_without_a_server(open_page: Any) -> None:
    shown, asked = open_page("index.html")
    shown.locator(".md-search__input").first.click()
    shown.keyboard.type("head-of-line blocking")
    shown.locator(".md-search-result__item a").first.wait_for(timeout=20_000, state="attached")
    assert "concepts/blocking" in (shown.locator(".md-search-result__list").inner_html())
    assert asked == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "page",
    [
        "index.html",
        "tutorial/own-question.html",
        "algorithms/schedulers/earliest.html",
        "algorithms/index.html",
        "reference/python.html",
        "validation/one-pipe.html",
        "notebooks/own-scheduler.html",
        "faq.html",
    ],
)
def test_a_page_fits_its_window(open_page: Any, page: str, dark: bool, width: int) -> None:
    shown, asked = open_page(page, width=width, dark=dark)
    # What is too wide scrolls by itself, and not the page.
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate("[...document.images].filter(image => image.complete && !image.naturalWidth).length") == 0
    assert shown.evaluate("document.body.dataset.mdColorScheme") == ("slate" if dark else "default")
    assert asked == []
