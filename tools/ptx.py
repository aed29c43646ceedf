"""Compiles cuda/*.cu to PTX for the extension, or checks that what is checked in is fresh.

    python tools/ptx.py            # needs NVRTC 12.0: pip install --require-hashes -r tools/cuda-requirements.txt
    python tools/ptx.py --check    # compares the hashes of the sources; with NVRTC also the PTX

cuda/ptx/<stem>.lzma holds, compressed, the PTX of each compute capability that differs from that of the one before it;
cuda/ptx/hashes.json the hash of what it was made from; cuda/ptx/modules.rs is the list of all stems.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from nvrtc import VERSION, WHEEL, Nvrtc, find_nvrtc

CUDA = Path(__file__).parent.parent / "cuda"
FOLDER = CUDA / "ptx"
HASHES = FOLDER / "hashes.json"
MODULES = FOLDER / "modules.rs"
CAPABILITIES = (70, 80, 90)
# The CPU does not fuse multiplications with additions either; products of matrices ask for it themselves (mad).
OPTIONS = ("--fmad=false", "--std=c++17")


def sources() -> dict[str, str]:
    """The kernels' files by their stems."""
    return {p.stem: p.read_text() for p in sorted(CUDA.glob("*.cu"))}


def headers() -> dict[str, str]:
    """What they may include."""
    return {p.name: p.read_text() for p in sorted(CUDA.glob("*.cuh"))}


def digest(source: str) -> str:
    """The hash of all that a file's PTX depends on."""
    parts = [source, json.dumps(headers()), WHEEL, repr(CAPABILITIES), repr(OPTIONS), "without comments"]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def compiled(nvrtc: Nvrtc, stem: str, source: str) -> str:
    """The PTX of all capabilities, those left out that are the one before but for the name of the target."""
    text, before = "", None
    for capability in CAPABILITIES:
        options = [f"--gpu-architecture=compute_{capability}", *OPTIONS]
        ptx = nvrtc.ptx(source, *options, headers=headers(), name=f"{stem}.cu")
        ptx = re.sub(r"[ \t]*//.*", "", ptx)  # with numbers that go on from program to program
        ptx = re.sub(r"\n+", "\n", ptx).lstrip()
        bare = re.sub(r"^\.target .*$", "", ptx, flags=re.MULTILINE)
        if bare != before:
            text += f"// nnrs sm_{capability}\n{ptx}"
        before = bare
    return text


def packed(text: str) -> bytes:
    """As the extension reads it. A reader has the dictionary in memory: no larger than the largest text needs."""
    filters = [{"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2 << 20}]
    return lzma.compress(text.encode(), lzma.FORMAT_ALONE, filters=filters)


def unpacked(stem: str) -> str:
    """The PTX that is checked in."""
    return lzma.decompress((FOLDER / f"{stem}.lzma").read_bytes()).decode()


def compiler() -> Nvrtc | None:
    """NVRTC, if it is the version that the PTX is made with."""
    path = find_nvrtc()
    nvrtc = Nvrtc(path) if path else None
    return nvrtc if nvrtc and nvrtc.version() == VERSION else None


def modules() -> str:
    """The list of all stems, for kernels/src/cuda/module.rs."""
    return "modules!(\n" + ",\n".join(f'    "{stem}"' for stem in sources()) + "\n);\n"


def stale() -> list[str]:
    """Files whose PTX is missing or of another source."""
    known = json.loads(HASHES.read_text()) if HASHES.exists() else {}
    found = {stem: digest(source) for stem, source in sources().items()}
    return sorted(stem for stem in known.keys() | found.keys() if known.get(stem) != found.get(stem))


def make(nvrtc: Nvrtc) -> None:
    """Compiles what is stale, and removes what has no source."""
    FOLDER.mkdir(exist_ok=True)
    todo, texts = stale(), sources()
    for stem in todo:
        if stem in texts:
            (FOLDER / f"{stem}.lzma").write_bytes(packed(compiled(nvrtc, stem, texts[stem])))
        else:
            (FOLDER / f"{stem}.lzma").unlink(missing_ok=True)
        print(f"cuda/ptx/{stem}.lzma")
    HASHES.write_text(json.dumps({stem: digest(text) for stem, text in texts.items()}, indent=1) + "\n")
    MODULES.write_text(modules())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    check = parser.parse_args().check
    nvrtc = compiler()
    if not check:
        if nvrtc is None:
            print(f"NVRTC 12.0 is not installed: pip install {WHEEL}", file=sys.stderr)
            return 1
        make(nvrtc)
        return 0
    wrong = stale()
    if not MODULES.exists() or MODULES.read_text() != modules():
        print("cuda/ptx/modules.rs is not the list of cuda/*.cu: run tools/ptx.py", file=sys.stderr)
        return 1
    if nvrtc and not wrong:
        wrong = [stem for stem, source in sources().items() if compiled(nvrtc, stem, source) != unpacked(stem)]
    for stem in wrong:
        print(f"cuda/ptx/{stem}.lzma is not of cuda/{stem}.cu: run tools/ptx.py", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
