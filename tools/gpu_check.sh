#!/usr/bin/env bash
# Installs nnrs and what its tests need into target/gpu-site, then runs tools/gpu_check.py. Takes everything from
# gpu-bundle/ if that is there (wheels, crates); the wheel in it is used as it is unless NNRS_BUILD=1 asks for a build from
# source. It is this machine's own Python that runs, so what it has beside (torch, NVIDIA's wheels) is seen, also in a
# virtual environment, of which another environment would see nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
site=$PWD/target/gpu-site
rm -rf "$site" && mkdir -p "$site" out
pip=("$python" -m pip install -q --disable-pip-version-check --upgrade --target "$site")
if [ -d gpu-bundle ]; then pip+=(--no-index --find-links gpu-bundle); fi
if [ -d gpu-bundle ] && [ "${NNRS_BUILD:-0}" != 1 ]; then
  "${pip[@]}" --no-deps gpu-bundle/nnrs-*.whl
else
  "${pip[@]}" maturin
  if [ -f gpu-bundle/crates.tar.xz ]; then
    rm -rf target/vendor target/cargo-home && tar -xJf gpu-bundle/crates.tar.xz -C target
    export CARGO_HOME=$PWD/target/cargo-home CARGO_NET_OFFLINE=true
  fi
  rm -rf target/wheels-gpu
  PYTHONPATH=$site "$site/bin/maturin" build --release --locked --out target/wheels-gpu --interpreter "$python"
  "${pip[@]}" --no-deps target/wheels-gpu/*.whl
fi
"${pip[@]}" numpy pytest pytest-xdist h5py || "$python" -c 'import numpy, pytest, h5py' # a bundle for another Python has no fitting NumPy
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
exec "$python" tools/gpu_check.py --output out/gpu-check.txt "$@"
