# What one does with nnrs. Needs Rust (https://rustup.rs) and Python >= 3.10; everything else comes from crates.io and PyPI.
#
# Two builds, two environments: .venv holds the release wheel (demo, bench), .venv-test the development build, whose
# overflow checks and debug assertions the Python tests shall meet too. It shares its compiled dependencies with
# `cargo test`; clippy only checks types, so the engine is compiled once for each of: Rust tests, Python tests, release.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The first interpreter that is new enough and can make a virtual environment (`make PYTHON=... demo` to choose).
FITS := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))
CANDIDATES := python3 python python3.14 python3.13 python3.12 python3.11 python3.10 $(wildcard $(HOME)/.pyenv/versions/3.*/bin/python)
PYTHON ?= $(firstword $(shell for p in $(CANDIDATES); do "$$p" -c '$(FITS)' >/dev/null 2>&1 && echo "$$p" && break; done))

# NNabla's last wheels are for 3.10: only `soak-nnabla` wants it.
PYTHON310 ?= $(firstword $(shell for p in python3.10 $(wildcard $(HOME)/.pyenv/versions/3.10*/bin/python); do "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 10))' >/dev/null 2>&1 && echo "$$p" && break; done))

# What `cargo` keeps for the next edit costs a quarter when compiling for once, and with optimisation the linker at times
# misses symbols in it ("undefined hidden symbol").
export CARGO_INCREMENTAL ?= 0

# On all cores: tests know nothing of each other.
PYTEST := .venv-test/bin/python -m pytest -n auto --dist worksteal
PIP_QUIET := -q --disable-pip-version-check
SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md \
  $(shell find src kernels cuda python -type f -not -name '*.so' -not -path '*/__pycache__/*' 2>/dev/null)

.PHONY: help demo test soak bench wheel fmt clean generate tools lint lint-rust lint-plain lint-python build-rust test-rust test-python test-gpu
.PHONY: gpu-check gpu-bundle races soak-nnabla bench-against bench-page bench-functions bench-migration bench-distributed tune
.PHONY: test-all memcheck

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.installed ## Build nnrs, train on handwritten digits, write pictures and parameters to out/
	@.venv/bin/python examples/digits.py --at-least 0.98 --output-dir out

test: tools ## Check formats, lints and types; run all tests, Rust and Python; say what took how long
	@tools/parts.sh "-j3 build-rust lint-rust .venv-test/.tools" "-j2 test-rust .venv-test/.installed" lint-python test-gpu test-python

# All functions and graphs on the emulated GPU, the fake driver at all paces, long chains.
test-all: test lint-plain ## What takes longer too: all tests on the emulated GPU, random graphs and calls, races, valgrind where it is installed
	$(PYTEST) -m long
	NNRS_CUDA=emulate NNRS_TEST_BACKEND=cudnn $(PYTEST) -m "long or not long"
	NNRS_CUDA_COMPILER=always NNRS_CUDA_LIBRARIES=1 NNRS_CUDA=emulate NNRS_TEST_BACKEND=cudnn $(PYTEST) tests/test_functions.py -k arrays_that_are_given
	$(MAKE) soak SEED=1000000 COUNT=60000
	cd tests && ../.venv-test/bin/python -m calls 1 100000
	cd tests && ../.venv-test/bin/python -m calls graphs 1 100000
	$(MAKE) races
	$(MAKE) memcheck

# No AVX-512: valgrind does not know it.
memcheck: .venv-test/.installed ## Shapes that change in the middle of a graph under valgrind: no access beyond an array
	@if ! command -v valgrind >/dev/null; then echo "skipped: valgrind is not installed (on Debian: apt install valgrind)"; exit; fi; \
	PYTHONMALLOC=malloc NNRS_SIMD=avx2 NNRS_NUM_THREADS=1 valgrind -q --error-exitcode=9 --suppressions=tools/valgrind.supp \
	  --undef-value-errors=no .venv-test/bin/python -m pytest -x tests/test_changing_shapes.py -m "long or not long" -k "not thread"

soak: .venv-test/.installed ## Hold random graphs against a reference interpreter (SEED=1000000 COUNT=1000000)
	@cd tests && ../.venv-test/bin/python -m machine $(or $(SEED),1000000) $(or $(COUNT),1000000)

soak-nnabla: .venv-test/.installed ## Run random programs on nnrs and on NNabla, and compare (needs Python 3.10)
	@if [ -z "$(PYTHON310)" ]; then echo "skipped: NNabla 1.39 has wheels for Python 3.10 and older, and there is no Python 3.10"; exit; fi; \
	$(MAKE) .venv-nnabla/.installed && cd tests && \
	../.venv-nnabla/bin/python -m machine.beside $(or $(SEED),1000000) $(or $(COUNT),100000)

bench: .venv/.installed ## Measure nnrs beside torch and NNabla (ARGS="--quick --case conv" for a part)
	@.venv/bin/python benches/run.py $(ARGS)

tune: tools ## Measure which kernels are faster on this processor, into kernels/src/tuned/table.rs (leave the machine alone meanwhile)
	cargo bench --locked -p nnrs-kernels --bench tune
	cargo fmt

bench-page: .venv/.installed dist/.squeezed ## Measure everything, into docs/performance.md and README's table
	@.venv/bin/python benches/run.py && .venv/bin/python benches/page.py

bench-functions: .venv/.installed ## Measure every function beside NNabla and torch, into docs/function-speed.md (ARGS="--case functions.sort" to look)
	@.venv/bin/python benches/functions.py $(ARGS)

bench-migration: .venv/.installed ## Run the scripts of examples/migration on NNabla and on nnrs: series, times, memory (ARGS="gan vae" for some)
	@.venv/bin/python benches/migration.py $(ARGS)

bench-against: .venv/.installed ## Measure nnrs beside itself at another commit (REV=v0.1 ARGS="--case conv")
	@.venv/bin/python benches/against.py $(REV) $(ARGS)

bench-distributed: .venv/.installed ## Measure two ranks of one thread beside one process and beside torch's DDP (ARGS="--quick --case sums" to look)
	@.venv/bin/python benches/distributed.py $(ARGS)

# What it needs comes from gpu-bundle/ where that is there (made by gpu-bundle elsewhere, for machines without a network).
gpu-check: ## On a machine with a GPU: all GPU tests and the GPU bench, one report in out/gpu-check.txt
	@tools/gpu_check.sh $(ARGS)

gpu-bundle: dist/.built ## Put into gpu-bundle/ what gpu-check needs on a machine without a network (GPU_PYTHON=3.12)
	.venv/bin/python tools/gpu_bundle.py $(GPU_PYTHON)

wheel: dist/.squeezed ## Build the release wheel into dist/, packed as small as it gets
	@ls -l dist/*.whl

fmt: .venv-test/.tools ## Format Rust and Python
	cargo fmt
	.venv-test/bin/ruff check -q --fix-only .
	.venv-test/bin/ruff format -q .

# The generator asks the package as it is built; what it writes belongs to the package.
generate: .venv-test/.installed ## Write what follows from the registries (wrappers, pages, lists), and install it
	.venv-test/bin/python tools/generate.py
	@$(MAKE) .venv-test/.installed

lint: lint-rust lint-plain lint-python ## Check formats, lints and types only

clean: ## Remove what was built, the virtual environments included
	cargo clean
	rm -rf .venv .venv-test .venv-nnabla .bench dist out .pytest_cache .mypy_cache .ruff_cache

# The examples are there for the development dependencies: with them both have the same features in the crates below.
# Beside the build, in a folder of its own: cargo locks the other one, and both often keep one core busy alone.
lint-rust: tools
	cargo fmt --check
	CARGO_TARGET_DIR=target/lint cargo clippy --locked --workspace --all-targets --features python,cuda,emulate -- -D warnings

# Without features: what Rust programs get.
lint-plain: tools
	cargo clippy --locked --workspace --lib --examples -- -D warnings

build-rust: tools
	cargo test --locked --workspace --features cuda,emulate --no-run

test-rust: tools
	NNRS_CUDA=emulate:2 cargo test --locked --workspace --features cuda,emulate

lint-python: .venv-test/.installed
	.venv-test/bin/ruff check .
	.venv-test/bin/ruff format --check .
	.venv-test/bin/mypy python/nnrs
	.venv-test/bin/python -m mypy.stubtest nnrs._core
	.venv-test/bin/python tools/generate.py --check

# The CUDA backend on an emulated GPU: its own tests, the functions, what its libraries and its compiler make.
test-gpu: .venv-test/.installed
	NNRS_CUDA=emulate:2 $(PYTEST) tests/test_gpu.py tests/test_gpu_random.py tests/test_gpu_captures.py tests/test_gpu_numbers.py \
	  tests/test_gpu_normalization.py tests/test_counted_types.py
	NNRS_CUDA=emulate NNRS_TEST_BACKEND=cudnn $(PYTEST) tests/test_functions.py -k "first or test_forward"
	NNRS_CUDA_LIBRARIES=1 NNRS_CUDA=emulate NNRS_TEST_BACKEND=cudnn $(PYTEST) tests/test_gpu_libraries.py tests/test_gpu_compiled.py
	NNRS_CUDA_COMPILER=always NNRS_CUDA_LIBRARIES=1 NNRS_CUDA=emulate NNRS_TEST_BACKEND=cudnn $(PYTEST) tests/test_functions.py -k "leaky_relu or where"
	NNRS_CUDA_COMPILER=0 NNRS_CUDA_LIBRARIES=1 NNRS_CUDA=emulate:3 $(PYTEST) tests/test_gpu_nccl.py

# The tests that run kernels on sizes and values of their own; the others run the same ones.
KERNEL_TESTS := $(patsubst %,tests/test_%.py,functions random_functions array_sizes row_sizes layer_sizes empty_arrays \
  not_a_number mixed_precision solvers parametric_functions)

races: .venv-test/.installed ## Look for threads of a kernel that use one number of an array without a barrier between
	NNRS_EMULATE_RACES=1 NNRS_CUDA=emulate:2 $(PYTEST) tests/test_gpu.py tests/test_gpu_numbers.py
	NNRS_EMULATE_RACES=1 NNRS_CUDA=emulate NNRS_TEST_BACKEND=cudnn $(PYTEST) $(KERNEL_TESTS)
	NNRS_EMULATE_RACES=1 NNRS_CUDA_LIBRARIES=1 NNRS_CUDA=emulate NNRS_TEST_BACKEND=cudnn $(PYTEST) tests/test_gpu_libraries.py tests/test_gpu_compiled.py

# Last, and pytest last in it: its summary ends the output.
test-python: .venv-test/.installed
	.venv-test/bin/python examples/digits.py --epochs 3 --output-dir target/digits
	$(PYTEST)

tools:
	@command -v cargo >/dev/null || { echo "Rust is missing: see https://rustup.rs" >&2; exit 1; }
	@test -n "$(PYTHON)" || { echo "Python >= 3.10 with the venv module is missing (on Debian: apt install python3-venv)" >&2; exit 1; }

# Environments: .tools is there when the packages from PyPI are, .installed when the current nnrs is.

.venv/.tools: pyproject.toml | tools
	"$(PYTHON)" -m venv .venv
	.venv/bin/pip install $(PIP_QUIET) "maturin>=1.14,<2"
	@touch $@

dist/.built: $(SOURCES) .venv/.tools
	rm -rf dist
	.venv/bin/maturin build --release --locked --compression-level 9 --out dist --interpreter .venv/bin/python
	@touch $@

dist/.squeezed: dist/.built tools/squeeze_wheel.py
	.venv/bin/pip install $(PIP_QUIET) "zopflipy>=1.14,<2"
	.venv/bin/python tools/squeeze_wheel.py dist/*.whl
	@touch $@

.venv/.installed: dist/.built
	.venv/bin/pip install $(PIP_QUIET) --force-reinstall --no-deps dist/*.whl
	wheel=$$(ls dist/*.whl) && .venv/bin/pip install $(PIP_QUIET) "$$wheel[demo]"
	@touch $@

# NVIDIA's compilers are wheels for Linux on x86-64; tests that want them say so where they are not.
.venv-test/.tools: pyproject.toml tools/cuda-requirements.txt | tools
	"$(PYTHON)" -m venv .venv-test
	.venv-test/bin/pip install $(PIP_QUIET) "maturin>=1.14,<2"
	.venv-test/bin/python tools/extra.py test | .venv-test/bin/pip install $(PIP_QUIET) -r /dev/stdin
	[ "$$(uname -sm)" != "Linux x86_64" ] || .venv-test/bin/pip install $(PIP_QUIET) --require-hashes -r tools/cuda-requirements.txt
	@touch $@

.venv-test/.installed: $(SOURCES) .venv-test/.tools
	rm -rf target/wheels-test
	.venv-test/bin/maturin build --profile dev --locked --features python,cuda,emulate --out target/wheels-test --interpreter .venv-test/bin/python
	.venv-test/bin/pip install $(PIP_QUIET) --force-reinstall --no-deps target/wheels-test/*.whl
	wheel=$$(ls target/wheels-test/*.whl) && .venv-test/bin/pip install $(PIP_QUIET) "$$wheel[test]"
	@touch $@

.venv-nnabla/.tools:
	"$(PYTHON310)" -m venv .venv-nnabla
	.venv-nnabla/bin/pip install $(PIP_QUIET) "nnabla==1.39.0" "numpy<2"
	@touch $@

.venv-nnabla/.installed: .venv-test/.installed .venv-nnabla/.tools
	.venv-nnabla/bin/pip install $(PIP_QUIET) --force-reinstall --no-deps target/wheels-test/*.whl
	@touch $@
