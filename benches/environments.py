"""Finds an interpreter for each engine, or makes an environment for it under .bench/."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".bench"
PACKAGES = {"torch": ["torch==2.13.0", "numpy"], "nnabla": ["nnabla==1.39.0", "numpy<2"]}
READY = {"torch": "/opt/nnrs-env/torch/bin/python", "nnabla": "/opt/nnrs-env/oracle/bin/python"}


def interpreter(engine: str) -> str:
    """Path of a Python that can import the engine. Raises RuntimeError saying why there is none."""
    named = os.environ.get(f"NNRS_BENCH_{engine.upper()}")
    if named:
        return named
    if engine == "nnrs":
        return own()
    if Path(READY[engine]).exists():
        return READY[engine]
    return made(engine)


def own() -> str:
    path = ROOT / ".venv" / "bin" / "python"
    if not path.exists():
        raise RuntimeError("no .venv: run `make bench`, which builds nnrs in release mode and installs it there")
    return str(path)


def made(engine: str) -> str:
    base = (lambda: sys.executable) if engine == "torch" else python310
    return environment(HOME / engine, base, lambda: PACKAGES[engine])


def environment(folder: Path, base: Callable[[], str], packages: Callable[[], list[str]]) -> str:
    """The interpreter of a virtual environment with some packages, made once."""
    done = folder / "complete"  # written last: an environment whose installation was cut off is made again
    python = folder / "bin" / "python"
    if not done.exists():
        print(f"making {folder}", file=sys.stderr, flush=True)
        run(base(), "-m", "venv", "--clear", str(folder))
        run(str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages())
        done.touch()
    return str(python)


def run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"`{' '.join(command)}` failed: {last}")


def python310() -> str:
    """NNabla has no wheels for a newer Python."""
    versions = Path.home() / ".pyenv" / "versions"
    found = [shutil.which("python3.10"), *map(str, versions.glob("3.10.*/bin/python"))]
    for path in filter(None, found):
        test = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2] == (3, 10))"], capture_output=True)
        if test.stdout.strip() == b"True":
            return path
    raise RuntimeError("no Python 3.10 found, and NNabla has no wheels for a newer one")
