"""What the documentation shows is true: its snippets, and the examples in docstrings, run and print what they say."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
import tempfile
import warnings
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


@pytest.fixture(autouse=True)
def no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What examples write into temporary folders lies in the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


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


# What the examples of some docstrings need beside nnrs.
PACKAGES = {
    "nnrs.autolog": "mlflow",
    "nnrs.mlflow_save_load_model": "mlflow",
    "nnrs.models.object_detection.draw_utils.DrawBoundingBoxes": "PIL",
    "nnrs.monitor.MonitorTensorBoard": "tensorboardX",
    "nnrs.utils.cli._images.shaped": "PIL",
    "nnrs.utils.cli.create_image_classification_dataset": "PIL",
    "nnrs.utils.cli.create_object_detection_dataset": "PIL",
    "nnrs.utils.cli.plot": "matplotlib",
}


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    tests = [test for test in doctest.DocTestFinder().find(importlib.import_module(name)) if test.examples]
    able = [test for test in tests if importlib.util.find_spec(PACKAGES.get(test.name, "nnrs"))]
    if tests and not able:
        pytest.skip(f"{PACKAGES[tests[0].name]} is not installed")
    runner = doctest.DocTestRunner()
    nn.clear_parameters()
    nn.seed(313)
    with warnings.catch_warnings():
        if any(PACKAGES.get(test.name) == "mlflow" for test in able):  # which warns of itself
            warnings.simplefilter("ignore")
        results = [runner.run(test) for test in able]
    nn.clear_parameters()
    assert results and not any(result.failed for result in results)


def public_modules() -> dict[str, ast.Module]:
    """The modules whose dotted names have no part that begins with an underscore, parsed."""
    folder = ROOT / "python"
    files = {p: p.relative_to(folder).with_suffix("").parts for p in (folder / "nnrs").rglob("*.py")}
    names = {p: [part for part in parts if part != "__init__"] for p, parts in files.items()}
    public = {p: ".".join(parts) for p, parts in names.items() if not any(part.startswith("_") for part in parts)}
    return {name: ast.parse(p.read_text(encoding="utf-8")) for p, name in sorted(public.items())}


def has_names_of_its_own(module: ast.Module) -> bool:
    """Whether it defines a function, class or public value, or takes a name in its `__all__` from a private module.

    The others pass names of public modules on, which have their examples, or have modules in them and nothing else:
    an `__all__` and a `__getattr__` that imports these are no names of its own.
    """
    definitions = [n for n in module.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    if any(n.name != "__getattr__" or "module_of" not in ast.unparse(n) for n in definitions):
        return True
    assigned = {ast.unparse(n.targets[0]): n.value for n in module.body if isinstance(n, ast.Assign)}
    assigned |= {ast.unparse(n.target): n.value for n in module.body if isinstance(n, ast.AnnAssign) and n.value}
    if any(not name.startswith("_") for name in assigned):
        return True
    exported = set(ast.literal_eval(assigned["__all__"])) if "__all__" in assigned else set()
    imports = [n for n in module.body if isinstance(n, ast.ImportFrom)]
    private = [n for n in imports if any(part.startswith("_") for part in (n.module or "").split("."))]
    return any((alias.asname or alias.name) in exported for n in private for alias in n.names)


def has_an_example(module: ast.Module) -> bool:
    """Whether a docstring has an example that is not skipped; `test_examples_in_docstrings_run` runs them."""
    documented = [n for n in ast.walk(module) if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef)]
    texts = [ast.get_docstring(n) or "" for n in documented]
    examples = [e for text in texts for e in doctest.DocTestParser().get_examples(text)]
    return any(not e.options.get(doctest.SKIP) for e in examples)


def names_in(code: str) -> set[str]:
    """The dotted names that a program imports, or uses below a name that it has imported."""
    nodes = list(ast.walk(ast.parse(code)))
    bound: dict[str, str] = {}
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            roots = {alias.name.split(".")[0] for alias in node.names if alias.asname is None}
            bound |= {root: root for root in roots} | {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom):
            made = {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {node.module or "", *made.values()}
            bound |= made
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in bound:
                found.add(f"{bound[first]}.{rest}")
    return found


PUBLIC = public_modules()
NAMELESS = {name for name, module in PUBLIC.items() if not has_names_of_its_own(module)}
NAMED_ON_PAGES = {name for page in PAGES if page.startswith("docs/") for name in names_in(script(page))}


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - NAMELESS))
def test_a_public_module_has_an_example_that_runs(name: str) -> None:
    """In a docstring of its own, or in a snippet of a page in docs/."""
    has_one = has_an_example(PUBLIC[name]) or name in NAMED_ON_PAGES
    assert has_one, f"{name} has no `>>>` in a docstring, and no snippet in docs/ uses it"


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
