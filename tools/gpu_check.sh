#!/usr/bin/env bash
# Installs nnrs and what its tests need into .venv-gpu, then runs tools/gpu_check.py. Takes everything from gpu-bundle/ if
# that is there (wheels, crates); the wheel in it is used as it is unless NNRS_BUILD=1 asks for a build from source.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
# What the machine has beside (torch, scikit-learn) is seen too.
"$python" -m venv --system-site-packages .venv-gpu
pip=(.venv-gpu/bin/python -m pip install -q --disable-pip-version-check)
if [ -d gpu-bundle ]; then pip+=(--no-index --find-links gpu-bundle); fi
if [ -d gpu-bundle ] && [ "${NNRS_BUILD:-0}" != 1 ]; then
  "${pip[@]}" --force-reinstall --no-deps gpu-bundle/nnrs-*.whl
else
  "${pip[@]}" maturin
  if [ -f gpu-bundle/crates.tar.xz ]; then
    mkdir -p target && tar -xJf gpu-bundle/crates.tar.xz -C target
    export CARGO_HOME=$PWD/target/cargo-home && mkdir -p "$CARGO_HOME"
    printf '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "%s/target/vendor"\n' "$PWD" >"$CARGO_HOME/config.toml"
  fi
  rm -rf target/wheels-gpu
  .venv-gpu/bin/maturin build --release --locked --out target/wheels-gpu --interpreter .venv-gpu/bin/python
  "${pip[@]}" --force-reinstall --no-deps target/wheels-gpu/*.whl
fi
"${pip[@]}" numpy pytest
mkdir -p out
exec .venv-gpu/bin/python tools/gpu_check.py --output out/gpu-check.txt "$@"
