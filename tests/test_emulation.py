"""The emulated GPU finds what a GPU would leave undefined, and lets through what is right (`cuda/emulate.hpp`)."""

import ctypes
import os
import shutil
import subprocess

import pytest

from fake_driver import COMPILER, kernels_of

THREADS = 64

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"there is no C++ compiler {COMPILER!r}")

# Name, body of the kernel (`s`: 64 words of shared memory, `t`: the thread), and a part of the error.
RACE = "by another thread, and no barrier lies between"
WRONG = [
    ("written_then_read", "s[t] = 0; __syncthreads(); s[t] = t; y[t] = s[63 - t];", RACE),
    ("read_then_written", "s[t] = t; __syncthreads(); y[t] = s[63 - t]; s[t] = 0;", RACE),
    ("written_twice", "s[t / 2] = t;", f"is written after it was written {RACE}"),
    ("lanes_alone", "s[t] = 0; __syncthreads(); s[t] = t; __syncwarp(); y[t] = s[63 - t];", RACE),
    ("shuffles_are_no_barrier", "s[t] = t; __shfl_xor_sync(~0u, t, 1); y[t] = s[t ^ 1];", RACE),
    ("counted_then_read", "s[t] = 0; __syncthreads(); atomicAdd(&s[0], 1); y[t] = s[0];", RACE),
    ("never_written", "if (t != 40) s[t] = t; __syncthreads(); y[t] = s[t];", "read before it is written, at index 40"),
    ("beyond_shared", "s[t + 1] = t;", "index 64 of shared memory of 64 elements"),
    ("negative", "s[t - 1] = t;", "index -1 of shared memory"),
    ("half_at_barrier", "if (t < 32) __syncthreads();", "32 of 64 threads wait at a barrier"),
    ("no_array", "y[t] = *(int *)8;", "access to memory of no array, at address 0x8"),
]
RIGHT = [
    ("reversed", "s[t] = t; __syncthreads(); y[t] = s[63 - t];", [63 - t for t in range(THREADS)]),
    ("in_warps", "s[t] = t; __syncwarp(); y[t] = s[t ^ 1]; __syncwarp(); s[t] = 0;", [t ^ 1 for t in range(THREADS)]),
    ("read_by_all", "s[t] = t; __syncthreads(); y[t] = s[0] + s[t]; __syncthreads(); s[t] = 1;", list(range(THREADS))),
    ("counted", "s[t] = 0; __syncthreads(); atomicAdd(&s[t % 2], 1); __syncthreads(); y[t] = s[t % 2];", [32] * 64),
    ("shuffled", "y[t] = __shfl_xor_sync(~0u, t, 3);", [t ^ 3 for t in range(THREADS)]),
    ("votes", "y[t] = __popc(__ballot_sync(~0u, t % 3 == 0));", [11] * 32 + [11] * 32),
]  # fmt: skip
# The same for memory of arrays, which is watched in a build of its own; each block has 64 elements, after 64 of all.
RACES = [
    ("one_for_all", "y[0] = t;", "is used after it was written"),
    ("in_place", "int v = y[63 - t]; y[t] = v;", RACE),
    ("of_other_blocks", "y[t] = y[t - 64];", RACE),
    ("blocks_have_no_barrier", "if (blockIdx.x) y[t] = y[t - 64]; else y[t] = 1; __syncthreads(); y[t] = 2;", RACE),
    ("counted_and_read", "atomicAdd(&y[0], 1); if (*(volatile int *)y < 0) y[t] = 1;", RACE),
    ("parts_of_a_word", "((char *)y)[t] = 1; ((short *)y)[t] = 1;", RACE),
]
APART = [
    ("own", "y[t] = t; y[t] += 1;"),
    ("after_a_barrier", "y[t] = t; __syncthreads(); s[t] = y[63 - t]; __syncthreads(); y[t] = s[t];"),
    ("all_read", "const int *all = y - 64 * (1 + blockIdx.x); y[t] = all[0] + all[t];"),
    ("all_count", "atomicAdd(&y[0], 1); atomicMax(&y[0], 3);"),
    ("bytes", "((char *)y)[t] = 1;"),
]


def watches() -> bool:
    command = [COMPILER, "-dM", "-E", "-fsanitize=thread", "-x", "c++", os.devnull]
    return "__SANITIZE_THREAD__" in subprocess.run(command, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not watches():
        pytest.skip(f"{COMPILER} does not tell of accesses to memory")
    text = ""
    for name, body in [*(race[:2] for race in RACES), *APART]:
        text += f"static void {name}(int *y) {{ NNRS_SHARED(int, s, 64); (void)s; int t = threadIdx.x; "
        text += f"y += 64 * (1 + blockIdx.x); {body} }}\nNNRS_ENTRY({name})\n"
    return ctypes.CDLL(str(kernels_of(text, "watched", tmp_path_factory.mktemp("watched"), "-fsanitize=thread")))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    text = ""
    for name, body, _ in [*WRONG, *RIGHT]:
        text += f"static void {name}(int *y) {{ NNRS_SHARED(int, s, 64); (void)s; int t = threadIdx.x; {body} }}\n"
        text += f"NNRS_ENTRY({name})\n"
    text += "static void last(int *y) { if (threadIdx.x == 0) *y = blockIdx.x; }\nNNRS_ENTRY(last)\n"
    return ctypes.CDLL(str(kernels_of(text, "kernels", tmp_path_factory.mktemp("emulation"))))


def run(kernels: ctypes.CDLL, name: str, blocks: int = 1) -> tuple[str | None, list[int]]:
    y = (ctypes.c_int * (THREADS * (1 + blocks)))()
    address = ctypes.c_void_p(ctypes.addressof(y))
    entry = kernels[f"launch_{name}"]
    entry.restype = ctypes.c_char_p
    grid = (ctypes.c_uint * 6)(blocks, 1, 1, THREADS, 1, 1)
    message = entry(grid, (ctypes.c_void_p * 1)(ctypes.addressof(address)))
    return message and message.decode(), y[:THREADS]


@pytest.mark.parametrize(("name", "part"), [(n, p) for n, _, p in WRONG], ids=[n for n, _, _ in WRONG])
def test_what_is_undefined_is_an_error(kernels: ctypes.CDLL, name: str, part: str) -> None:
    for _ in range(2):  # threads go upwards, and then downwards
        message = run(kernels, name)[0]
        assert message is not None
        assert part in message


@pytest.mark.parametrize(("name", "expected"), [(n, e) for n, _, e in RIGHT], ids=[n for n, _, _ in RIGHT])
def test_what_is_right_goes_through(kernels: ctypes.CDLL, name: str, expected: list[int]) -> None:
    for _ in range(2):
        assert run(kernels, name) == (None, expected)


def test_blocks_run_in_either_order(kernels: ctypes.CDLL) -> None:
    assert {run(kernels, "last", blocks=5)[1][0] for _ in range(4)} == {0, 4}


@pytest.mark.parametrize(("name", "part"), [(n, p) for n, _, p in RACES], ids=[n for n, _, _ in RACES])
def test_races_for_memory_are_errors(watched: ctypes.CDLL, name: str, part: str) -> None:
    for _ in range(4):
        message = run(watched, name, blocks=2)[0]
        assert message is not None
        assert part in message


@pytest.mark.parametrize("name", [n for n, _ in APART])
def test_threads_that_keep_apart(watched: ctypes.CDLL, name: str) -> None:
    for _ in range(4):
        assert run(watched, name, blocks=2)[0] is None
