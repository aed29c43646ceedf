"""The PTX in cuda/ptx is of the sources beside it, and NVIDIA's assembler takes it (tools/cuda-requirements.txt)."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import ptx

STEMS = list(ptx.sources())
# Kernels that may keep values in memory for want of registers.
SPILLING: set[str] = set()


def ptxas() -> str | None:
    """The assembler in NVIDIA's wheel beside this Python."""
    spec = find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or []:
        for file in Path(folder).glob("cuda_nvcc/bin/ptxas"):
            return str(file)
    return None


def variants(stem: str) -> dict[int, str]:
    """The PTX for each capability."""
    parts = ptx.unpacked(stem).split("// nnrs sm_")[1:]
    return {int(number): text for number, text in (part.split("\n", 1) for part in parts)}


def test_none_is_stale() -> None:
    assert not ptx.stale(), "run tools/ptx.py"
    assert {p.stem for p in ptx.FOLDER.glob("*.lzma")} == set(STEMS)


@pytest.mark.parametrize("stem", STEMS)
def test_a_source_is_named_after_the_code_that_launches_it(stem: str) -> None:
    """`<name>.cu` for kernel/<name>/ or cuda/<name>.rs; `<name>_<part>.cu` for kernel/<name>/cuda/<part>.rs."""
    kernels = ptx.CUDA.parent / "kernels/src"
    name, _, part = stem.partition("_")
    homes = [
        *kernels.glob(f"kernel/{stem}/cuda.rs"),
        *kernels.glob(f"kernel/{stem}/cuda/mod.rs"),
        kernels / f"cuda/{stem}.rs",
    ]
    homes.append(kernels / f"kernel/{name}/cuda/{part}.rs")
    assert any(home.exists() and f'launch("{stem}"' in home.read_text() for home in homes)


@pytest.mark.parametrize("stem", STEMS)
def test_old_drivers_read_it(stem: str) -> None:
    found = variants(stem)
    assert min(found) == 70
    for capability, text in found.items():
        assert ".version 8.0" in text and f".target sm_{capability}" in text
        assert ".entry" in text


@pytest.mark.long  # the hashes, which are checked with each lint, tell whether it is fresh
@pytest.mark.parametrize("stem", STEMS)
def test_it_is_what_the_compiler_makes_of_the_source(stem: str) -> None:
    nvrtc = ptx.compiler()
    if nvrtc is None:
        pytest.skip("NVRTC 12.0 is not installed: pip install --require-hashes -r tools/cuda-requirements.txt")
    assert ptx.compiled(nvrtc, stem, ptx.sources()[stem]) == ptx.unpacked(stem)


# For one GPU each, another one for the next source; for all in the long test. The three that take half of the time are
# for the oldest.
ASSEMBLED = [
    pytest.param(stem, capability, marks=[] if (i + k) % len(ptx.CAPABILITIES) == 1 else pytest.mark.long)
    for i, stem in enumerate(STEMS)
    for k, capability in enumerate(ptx.CAPABILITIES)
]


@pytest.mark.parametrize(("stem", "capability"), ASSEMBLED)
def test_it_is_assembled_without_spills(stem: str, capability: int, tmp_path: Path) -> None:
    assembler = ptxas()
    if assembler is None:
        pytest.skip("ptxas is not installed: pip install --require-hashes -r tools/cuda-requirements.txt")
    found = variants(stem)
    file = tmp_path / "kernels.ptx"
    file.write_text(found[max(c for c in found if c <= capability)])
    command = [assembler, "-v", f"-arch=sm_{capability}", "-o", str(tmp_path / "kernels.cubin"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    entry = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores", re.DOTALL)
    spilling = {name for name, spilled in entry.findall(done.stderr) if int(spilled)}
    assert spilling <= SPILLING, done.stderr
