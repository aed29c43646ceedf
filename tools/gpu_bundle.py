"""Puts into gpu-bundle/ what `make gpu-check` needs on a machine without a network: the wheel of nnrs, the wheels that
its tests and a build want, and all crates.

    python tools/gpu_bundle.py [VERSION OF THE PYTHON THERE, 3.12]

Fails if cargo could not build offline from the crates, or if the bundle and the repository are more than 64 MiB.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUNDLE = ROOT / "gpu-bundle"
LIMIT = 64 << 20
WHEELS = ["numpy", "pytest", "pytest-xdist", "h5py", "maturin"]
PLATFORMS = ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"]
# Relative to the folder in which cargo-home/ lies.
CARGO = '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n'


def download_wheels(python: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "-d", str(BUNDLE)]
    command += ["--only-binary=:all:", "--python-version", python, *WHEELS]
    subprocess.run(command + [f"--platform={p}" for p in PLATFORMS], check=True)
    for wheel in (ROOT / "dist").glob("*.whl"):
        shutil.copy(wheel, BUNDLE)


def empty(crate: Path) -> None:
    """Leaves of a crate what cargo must see of each one that Cargo.lock names, also of those that it never compiles."""
    manifest = (crate / "Cargo.toml").read_bytes()
    checksum = json.loads((crate / ".cargo-checksum.json").read_text())["package"]
    shutil.rmtree(crate)
    (crate / "src").mkdir(parents=True)
    (crate / "src/lib.rs").touch()
    (crate / "Cargo.toml").write_bytes(manifest)
    (crate / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}))


def pack_crates(folder: Path) -> None:
    vendor = folder / "vendor"
    subprocess.run(["cargo", "vendor", "--locked", "-q", str(vendor)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for crate in vendor.glob("win*"):
        if crate.name.startswith(("windows", "winapi")):
            empty(crate)
    (folder / "cargo-home").mkdir()
    (folder / "cargo-home/config.toml").write_text(CARGO)
    subprocess.run(
        ["tar", "-cJf", str(BUNDLE / "crates.tar.xz"), "-C", str(folder), "vendor", "cargo-home"], check=True
    )


def check_crates(folder: Path) -> None:
    """Cargo finds all it wants in what was packed."""
    subprocess.run(["tar", "-xJf", str(BUNDLE / "crates.tar.xz"), "-C", str(folder)], check=True)
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version=1", "--features=python,cuda"]
    env = {**os.environ, "CARGO_HOME": str(folder / "cargo-home")}
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)


def check_size() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    sources = sum((ROOT / name).stat().st_size for name in tracked.split("\0") if name and (ROOT / name).is_file())
    bundle = sum(file.stat().st_size for file in BUNDLE.iterdir())
    print(f"gpu-bundle: {bundle / 2**20:.1f} MiB, and the repository {sources / 2**20:.1f} MiB")
    if bundle + sources > LIMIT:
        sys.exit("that is more than the 64 MiB that may be carried")


def main() -> None:
    shutil.rmtree(BUNDLE, ignore_errors=True)
    BUNDLE.mkdir()
    download_wheels(sys.argv[1] if len(sys.argv) > 1 else "3.12")
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as unpacked:
        pack_crates(Path(made))
        check_crates(Path(unpacked))
    check_size()


if __name__ == "__main__":
    main()
