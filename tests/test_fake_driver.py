"""nnrs over a driver of our own (`tests/fake_driver`), by the way that it takes on a GPU: the tests of GPUs, errors of
the driver, and that the fake finds what a GPU would leave undefined.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fake_driver
from fake_driver import Done, use

pytestmark = pytest.mark.skipif(bool(fake_driver.why_not()), reason=fake_driver.why_not() or "it can be here")


@pytest.fixture(scope="module")
def built() -> Path:
    return fake_driver.build()


@pytest.fixture(scope="module")
def whole() -> Path:
    return fake_driver.build(whole=True)


# ---- The tests of GPUs


GPU = ["test_gpu", "test_gpu_captures", "test_gpu_random", "test_gpu_numbers"]
GRAPHS = [
    "graph",
    "solvers",
    "threads",
    "memory",
    "normalization",
    "in_place_updates",
    "mixed_precision",
    "shared_arrays",
]


def run_tests(built: Path, folder: Path, arguments: list[str], backend: str = "cpu", **settings: object) -> Done:
    env = fake_driver.environment(built, **settings) | {"NNRS_TEST_BACKEND": backend}
    done = fake_driver.run(["-m", "pytest", "-x", "-p", "no:cacheprovider", *arguments], env, folder)
    assert done.status == 0, done.output[-3000:] + done.errors[-1000:]
    assert not done.violations, done.violations[:3000]
    assert " failed" not in done.output and done.counts["kernels"] > 0
    return done


# How soon things happen: by and by, or only when the host waits for them.
@pytest.mark.long
@pytest.mark.parametrize("prob", [0.3, 0])
def test_the_tests_of_gpus(whole: Path, tmp_path: Path, prob: int) -> None:
    done = run_tests(whole, tmp_path, [f"tests/{name}.py" for name in GPU], devices=2, prob=prob, seed=int(10 * prob))
    for what in ("captures", "replays", "copies between devices", "pinned copies"):
        assert done.counts[what] > 0, done.counts


@pytest.mark.long
def test_graphs(whole: Path, tmp_path: Path) -> None:
    run_tests(whole, tmp_path, [f"tests/test_{name}.py" for name in GRAPHS], "cudnn", prob=0.1)


@pytest.mark.long
def test_functions(whole: Path, tmp_path: Path) -> None:
    run_tests(whole, tmp_path, ["tests/test_functions.py", "-k", "(forward or first) and not half"], "cudnn")


# Scripts that need a process of their own, or several.
@pytest.mark.parametrize("name", ["current_context", "two_inputs"])
def test_script(built: Path, tmp_path: Path, name: str) -> None:
    done = fake_driver.run([f"tests/fake_driver/{name}.py"], fake_driver.environment(built, devices=2), tmp_path)
    assert (done.status, done.output, done.errors, done.violations) == (0, "fine\n", "", ""), done


# How soon things happen; a member that never comes; an error that NCCL finds by itself.
@pytest.mark.parametrize(
    ("how", "settings"),
    [("well", {"prob": 0.3}), ("well", {"prob": 0}), ("late", {}), ("broken", {"fail": "asynchronous:6:1"})],
)
def test_nccl(built: Path, tmp_path: Path, how: str, settings: dict[str, object]) -> None:
    env = fake_driver.environment(built, devices=2, **settings) | nccl_of(built, tmp_path)
    done = fake_driver.run(["tests/fake_driver/nccl.py", how], env, tmp_path)
    assert (done.status, done.output, done.errors, done.violations) == (0, "fine\n", "", ""), done
    assert done.counts["collectives"] > 0


def nccl_of(built: Path, folder: Path) -> dict[str, str]:
    """The setting by which the fake is found as NCCL too."""
    (folder / "libnccl.so.2").symlink_to(built / "libcuda.so.1")
    return {"NNRS_CUDA_LIBRARY_PATH": str(folder)}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nccl": 20805}, "of NCCL before 2.10 (its version is 20805)"),
        ({"fail": "ncclGetUniqueId:5"}, "NCCL: ncclGetUniqueId: invalid usage"),
    ],
)
def test_an_nccl_that_cannot_be_used(built: Path, tmp_path: Path, settings: dict[str, object], said: str) -> None:
    env = fake_driver.environment(built, **settings) | nccl_of(built, tmp_path)
    script = fake_driver.USE + "graph()\nattempt(lambda: nn._core.nccl_id(0))"
    done = fake_driver.run(["-c", script], env, tmp_path)
    assert said in done.output, done


# ---- Errors of the driver


def test_an_old_driver(tmp_path: Path) -> None:
    text = use(tmp_path, "attempt(graph)", version=11080)
    assert text.startswith("UnsupportedError") and "driver is for CUDA 11.8; 12.0 (driver 525) or later" in text


def test_a_driver_without_gpus(tmp_path: Path) -> None:
    text = use(tmp_path, "attempt(graph)", devices=0)
    assert text.startswith("UnsupportedError") and "driver knows no GPU" in text


def test_the_toolkits_stub(tmp_path: Path) -> None:
    text = use(tmp_path, "attempt(graph)", fail="cuInit:34")
    assert "toolkit's stub" in text and "LD_LIBRARY_PATH" in text


def test_a_gpu_without_memory(tmp_path: Path) -> None:
    """Room for one array: the second one is too much, until the first is gone."""
    script = "y = graph()\nattempt(y.forward)\ny = None\nx = F.tanh(nn.Variable((3,)))\nx.forward()\nprint('fine')"
    text = use(tmp_path, script, memory=400_000)
    assert text.startswith("OutOfMemoryError Error MemoryError"), text
    assert "out of memory on GPU 0" in text and "the largest arrays: " in text and text.endswith("fine\n")


def test_no_captured_runs(tmp_path: Path) -> None:
    script = "y = graph()\nfor _ in range(6):\n    y.forward()\nprint(y.d.any(), cuda.graphs(y))"
    text = use(tmp_path, script, fail="cuGraphInstantiateWithFlags:2")
    assert text.startswith("False ['forward: not captured") and "making a CUDA graph" in text


# ---- The fake itself

CALLS = """
import ctypes
from ctypes import byref, c_size_t, c_uint, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")
INVALID, WRONG_CONTEXT, WRONG_HANDLE, ILLEGAL, TOO_MANY, UNSUPPORTED, INVALIDATED = 1, 201, 400, 700, 701, 900, 901
BYTES = c_size_t(64)

def new(function, *arguments):
    made = c_void_p()
    assert function(byref(made), *arguments) == 0
    return made

def wait():
    return cuda.cuStreamSynchronize(stream)

def capture():
    assert cuda.cuStreamBeginCapture_v2(stream, 2) == 0

contexts = [new(cuda.cuDevicePrimaryCtxRetain, device) for device in (0, 1)]
cuda.cuCtxSetCurrent(contexts[0])
stream, event = new(cuda.cuStreamCreate, 1), new(cuda.cuEventCreate, 0)
a, b = (new(cuda.cuMemAlloc_v2, BYTES) for _ in range(2))
pinned = new(cuda.cuMemHostAlloc, BYTES, 0)

def copy(to=a, of=b):
    return cuda.cuMemcpyDtoDAsync_v2(to, of, BYTES, stream)

def downloaded(at):
    host = ctypes.create_string_buffer(64)
    assert cuda.cuMemcpyDtoHAsync_v2(host, at, BYTES, stream) == 0 and wait() == 0
    return host.raw

PTX = b".visible .entry write( .param .u64 write_param_0 ) .maxntid 64, 1, 1 { }"
module = new(cuda.cuModuleLoadData, PTX)
write = new(cuda.cuModuleGetFunction, module, b"write")

def launch(to=a, threads=64, blocks=1):
    arguments = (c_void_p * 1)(ctypes.addressof(to))
    sizes = [c_uint(n) for n in (blocks, 1, 1, threads, 1, 1, 0)]
    return cuda.cuLaunchKernel(write, *sizes, stream, arguments, None)
"""

# Name, what is done, and what is said of it.
WRONG = [
    ("freed_memory", "cuda.cuMemFree_v2(a); assert copy() == INVALID", "cuMemcpyDtoDAsync: memory that is no block's"),
    ("freed_twice", "cuda.cuMemFree_v2(a); assert cuda.cuMemFree_v2(a) == INVALID", "cuMemFree of what is no block"),
    (
        "freed_under_a_captured_run",
        "capture(); copy(); graph = new(lambda at: cuda.cuStreamEndCapture(stream, at))\n"
        "ready = new(cuda.cuGraphInstantiateWithFlags, graph, 0)\n"
        "cuda.cuMemFree_v2(b); cuda.cuGraphLaunch(ready, stream); wait()",
        "a copy that happens: memory that is no block's",
    ),
    (
        "freed_under_a_kernel",
        "capture(); launch(); graph = new(lambda at: cuda.cuStreamEndCapture(stream, at))\n"
        "cuda.cuMemFree_v2(a); cuda.cuGraphLaunch(graph, stream)\n"
        "assert wait() == ILLEGAL and copy(b, b) == ILLEGAL",
        "kernel write: access to memory of no array",
    ),
    ("beyond_a_block", "assert copy(c_void_p(a.value + 8)) == INVALID", "memory that is no block's"),
    ("beside_a_block", "assert launch(c_void_p(a.value + 64)) == 0; cuda.cuMemFree_v2(a)", "wrote beside a block"),
    ("no_context", "cuda.cuCtxSetCurrent(None); assert copy() == WRONG_CONTEXT", "cuMemcpyDtoDAsync without a context"),
    (
        "other_context",
        "cuda.cuCtxSetCurrent(contexts[1]); assert launch() == WRONG_CONTEXT",
        "work for a stream of another context",
    ),
    (
        "kernel_of_another_context",
        "cuda.cuCtxSetCurrent(contexts[1]); stream = new(cuda.cuStreamCreate, 1); assert launch() == WRONG_HANDLE",
        "a launch of write, which another context has loaded",
    ),
    ("freed_elsewhere", "cuda.cuCtxSetCurrent(contexts[1]); cuda.cuMemFree_v2(a)", "cuMemFree in another context"),
    ("no_stream", "stream = None; assert copy() == WRONG_HANDLE", "work for the stream of all"),
    ("blocking_stream", "new(cuda.cuStreamCreate, 0)", "a stream that waits for the stream of all"),
    (
        "waiting_while_capturing",
        "capture(); assert wait() == UNSUPPORTED\n"
        "assert cuda.cuStreamEndCapture(stream, byref(c_void_p())) == INVALIDATED",
        "cuStreamSynchronize while capturing",
    ),
    (
        "reading_while_capturing",
        "capture(); assert cuda.cuMemcpyDtoHAsync_v2(pinned, a, BYTES, stream) == UNSUPPORTED",
        "cuMemcpyDtoHAsync while capturing",
    ),
    ("loading_while_capturing", "capture(); new(cuda.cuModuleLoadData, PTX)", "cuModuleLoadData while capturing"),
    ("too_many_threads", "assert launch(threads=65) == TOO_MANY", "more threads than its .maxntid"),
    ("no_blocks", "assert launch(blocks=0) == INVALID", "a grid that cannot be"),
    ("old_event", "cuda.cuEventDestroy_v2(event); cuda.cuEventRecord(event, stream)", "was destroyed is recorded"),
]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel that writes 64 bytes."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "kernels").mkdir()
    source = "static void write(char *y) { y[threadIdx.x] = 1; }\nNNRS_ENTRY(write)\n"
    fake_driver.kernels_of(source, "write", folder / "kernels")
    return folder


def calls(built: Path, kernels: Path, folder: Path, script: str) -> str:
    """What the driver has to complain of."""
    env = fake_driver.environment(built, kernels, devices=2, prob=0)
    done = fake_driver.run(["-c", CALLS + script], env, folder)
    assert done.status == 0, done.errors
    return done.violations


@pytest.mark.parametrize(("script", "violation"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_what_is_wrong_is_found(built: Path, kernels: Path, tmp_path: Path, script: str, violation: str) -> None:
    assert violation in calls(built, kernels, tmp_path, script)


def test_what_is_right_is_no_violation(built: Path, kernels: Path, tmp_path: Path) -> None:
    """And pinned memory is read when the copy happens, which is when the host waits."""
    script = """
ctypes.memset(pinned, 1, 64)
assert cuda.cuMemcpyHtoDAsync_v2(b, pinned, BYTES, stream) == 0
assert cuda.fake_pending() == 1
ctypes.memset(pinned, 2, 64)
assert copy() == 0 and downloaded(a) == bytes([2] * 64)
capture()
assert launch() == 0
graph = new(lambda at: cuda.cuStreamEndCapture(stream, at))
ready = new(cuda.cuGraphInstantiateWithFlags, graph, 0)
assert downloaded(a) == bytes([2] * 64)
assert cuda.cuGraphLaunch(ready, stream) == 0 and downloaded(a) == bytes([1] * 64)
assert cuda.cuGraphExecDestroy(ready) == cuda.cuGraphDestroy(graph) == 0
assert cuda.cuMemFree_v2(a) == cuda.cuMemFree_v2(b) == 0
"""
    assert not calls(built, kernels, tmp_path, script)


def test_streams_go_on_by_lot(built: Path, kernels: Path, tmp_path: Path) -> None:
    """A copy that waits for nothing may be done before or after another stream's."""
    script = """
sides = [new(cuda.cuStreamCreate, 1) for _ in range(2)]
hosts = [new(cuda.cuMemHostAlloc, BYTES, 0) for _ in range(2)]
seen = set()
for _ in range(40):
    for k, side in enumerate(sides):
        ctypes.memset(hosts[k], k, 64)
        cuda.cuMemcpyHtoDAsync_v2(a, hosts[k], BYTES, side)
    for side in sides:
        cuda.cuStreamSynchronize(side)
    seen.add(downloaded(a)[0])
assert seen == {0, 1}, seen
"""
    assert not calls(built, kernels, tmp_path, script)
