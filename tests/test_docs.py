"""What the documentation shows is true: its snippets, and the examples in docstrings, run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn

ROOT = Path(__file__).parent.parent
# docs/functions.md shows signatures, which tools/generate.py proves fresh.
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
PAGES.remove("docs/functions.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def blocks(page: str, language: str) -> Iterator[tuple[int, str]]:
    """The snippets of a page in that language, each with the number of lines before it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if found[1] == language:
            yield text.count("\n", 0, found.start(2)), found[2]


def script(page: str) -> str:
    """All Python snippets of a page as one program, each line at its place in the page."""
    lines: list[str] = []
    for before, code in blocks(page, "python"):
        lines += [""] * (before - len(lines)) + code.splitlines()
    return "\n".join(lines)


@pytest.mark.parametrize("page", [page for page in PAGES if script(page)])
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_says(page: str) -> None:
    code = script(page)
    start = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); exec(compile(sys.stdin.read(), {page!r}, 'exec'))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", start], input=code, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for expected in SHOWN.findall(code):
        matches = re.escape(expected).replace(r"\.\.\.", ".*")
        assert re.search(f"^{matches}$", done.stdout, re.MULTILINE), f"{expected!r} is not in {done.stdout!r}"


SOURCES = {
    "rust": [("src", "*.rs"), ("kernels/src", "*.rs")],
    "python": [("tests/function", "*.py")],
    "cuda": [("cuda", "*.cu")],
}
SHOWN_CODE = [(language, before, code) for language in SOURCES for before, code in blocks("CONTRIBUTING.md", language)]


def stripped(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()} | {""}


@pytest.mark.parametrize("language, line, code", SHOWN_CODE, ids=[f"{name}-{line}" for name, line, _ in SHOWN_CODE])
def test_code_that_contributing_shows_is_the_source(language: str, line: int, code: str) -> None:
    """All lines of a snippet stand in one file."""
    files = (file for folder, ending in SOURCES[language] for file in (ROOT / folder).rglob(ending))
    assert any(stripped(code) <= stripped(file.read_text(encoding="utf-8")) for file in files), code


FOLDERS = ("src", "kernels", "cuda", "python", "tests", "benches", "examples", "docs", "tools")
FILE_NAME = re.compile(r"(?<![\w./<>:-])[\w<][\w./<>-]*\.(?:rs|py|cu|cuh|hpp|cpp|md|json|toml)\b")
FOLDER_NAME = re.compile(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/(?:[\w<>-]+/)*(?![\w.])")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "DESIGN.md"])
def test_paths_that_a_page_names_exist(page: str) -> None:
    """Whole paths, or their ends (`plan/order.rs`); `<name>` stands for any name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = {"/" + p.relative_to(ROOT).as_posix() for top in FOLDERS for p in (ROOT / top).rglob("*")}
    paths |= {f"/{p.name}" for p in ROOT.iterdir() if p.is_file()} | {f"/{top}" for top in FOLDERS}
    named = set(FILE_NAME.findall(text)) | {name.rstrip("/") for name in FOLDER_NAME.findall(text)}
    ends = {name: re.compile(f"/{re.sub('<[a-z]+>', '[^/]+', name.replace('.', '[.]'))}$") for name in named}
    missing = [name for name, end in ends.items() if not any(map(end.search, paths))]
    assert named and not missing


def modules() -> list[str]:
    """The modules written by hand that have examples in their docstrings."""
    names = [m.name for m in pkgutil.walk_packages(nn.__path__, "nnrs.")]
    paths = {name: ROOT / "python" / f"{name.replace('.', '/')}.py" for name in names}
    return [name for name, path in paths.items() if path.exists() and ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_run(name: str) -> None:
    nn.clear_parameters()
    nn.seed(313)
    result = doctest.testmod(importlib.import_module(name))
    nn.clear_parameters()
    assert result.attempted and not result.failed


MEMBERS = [(c, n) for c in (nn.Variable, nn.NdArray, nn.Context) for n in dir(c) if not n.startswith("_")]


@pytest.mark.parametrize("owner, name", MEMBERS, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_members_of_the_core_are_documented_and_their_examples_run(owner: type, name: str) -> None:
    text = inspect.getdoc(getattr(owner, name))
    assert text and len(text) > 12
    globs = {"nn": nn, "F": importlib.import_module("nnrs.functions"), "np": np}
    test = doctest.DocTestParser().get_doctest(text, globs, name, None, None)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", ["get_auto_forward", "get_current_context", "get_num_threads"])
def test_functions_of_the_core_are_documented_and_their_examples_run(name: str) -> None:
    text = inspect.getdoc(getattr(nn, name))
    assert text, "the core was built before they had any"
    test = doctest.DocTestParser().get_doctest(text, {"nn": nn}, name, None, None)
    assert test.examples and doctest.DocTestRunner().run(test).failed == 0
