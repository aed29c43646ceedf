"""All collectives on each process against NumPy: every process knows what the others have, from their numbers."""

from __future__ import annotations

import itertools
import sys

import numpy as np

import nnrs as nn
import nnrs.communicators as C

TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool"]


def array(values, dtype="float32"):
    made = nn.NdArray.from_numpy_array(np.asarray(values))
    made.cast(dtype)
    return made


def numbers(rank, size, dtype):
    """What a process has: small whole numbers, so that each type holds the sums."""
    return (np.arange(size) * (rank + 3) % 5).astype("bool" if dtype == "bool" else "float64")


def check(got, want, dtype):
    assert str(got.dtype) == dtype, (got.dtype, dtype)
    want = np.asarray(want) != 0 if dtype == "bool" else np.asarray(want)
    np.testing.assert_array_equal(np.asarray(got.data, "float64").reshape(-1), want.astype("float64"))


def each_type(comm, dtype, size, inplace):
    r, n = comm.rank, comm.size
    given = [numbers(q, size, dtype) for q in range(n)]
    total = np.sum(given, axis=0, dtype="float64")
    x = array(given[r], dtype)
    comm.all_reduce([x], inplace=inplace)
    check(x, total, dtype)
    x = array(given[r], dtype)
    comm.reduce(x, n - 1, inplace=inplace)
    check(x, total if r == n - 1 else given[r], dtype)
    x = array(given[r], dtype)
    comm.bcast(x, n - 1, inplace=inplace)
    check(x, given[-1], dtype)
    gathered = [array(np.zeros(size), dtype) for _ in range(n)]
    comm.all_gather(array(given[r], dtype), gathered)
    for q, found in enumerate(gathered):
        check(found, given[q], dtype)
    x = array(given[r], dtype)
    comm.reduce_scatter([array(np.roll(given[r], i), dtype) for i in range(n)], x)
    check(x, np.roll(total, r), dtype)


def lists_and_groups(comm):
    r, n = comm.rank, comm.size
    shapes = [(3, 2), (), (40000,), (0, 3), (7,)]
    kinds = ["float32", "float16", "float32", "float32", "float64"]
    made = [array(np.full(s, r + 1.0), k) for s, k in zip(shapes, kinds, strict=True)]
    comm.all_reduce(made, division=True)
    for x, s, k in zip(made, shapes, kinds, strict=True):
        check(x, np.full(s, (n + 1) / 2).reshape(-1), k)
    name = comm.new_group(("ends", [n - 1, 0] if n > 1 else [0]))
    assert name == "ends" and comm.find_group("ends") == ([n - 1, 0] if n > 1 else [0])
    x, there = array([r]), r in (0, n - 1)
    comm.all_reduce(x, group="ends")
    check(x, [n - 1 if there else r], "float32")
    both = [array([0]) for _ in comm.find_group("ends")]
    comm.all_gather(array([r]), both, group="ends")
    if there and n > 1:
        assert [float(v.data[0]) for v in both] == [n - 1, 0]
    x = array([r])
    comm.bcast(x, 0, group="ends")
    check(x, [0 if there else r], "float32")
    x = array([r + 7], "int32")
    comm.all_reduce(x, division=True)
    check(x, [sum(q + 7 for q in range(n)) // n], "int32")


def large(comm):
    count = 10**5 if sys.argv[2:] else 10**7
    given = [np.sqrt(np.arange(q, count + q, dtype="float32")) for q in range(comm.size)]
    y = nn.NdArray.from_numpy_array(given[comm.rank].copy())
    comm.all_reduce(y)
    assert (y.data == given[0] + given[1]).all()


def mistakes(comm):
    """Calls that differ are an error on all processes, and they may go on afterwards."""
    for call in (
        lambda: comm.all_reduce(array(np.zeros(2 + (comm.rank == 1)))),
        lambda: comm.all_reduce(array([1], "float16" if comm.rank == 1 else "float32")),
        lambda: comm.bcast(array([1]), int(comm.rank == 1)),
        lambda: comm.barrier() if comm.rank == 1 else comm.all_reduce(array([1])),
    ):
        try:
            call()
        except ValueError as error:
            assert "expected the same call on all processes" in str(error), error
            assert "rank 1" in str(error), error
        else:
            raise AssertionError("no error")
    comm.barrier()


def main():
    context = nn.ext_utils.get_extension_context(*sys.argv[2:] or ["cpu"])
    comm = C.MultiProcessDataParallelCommunicator(context)
    comm.init()
    comm.init()
    assert comm.size == int(sys.argv[1]) and comm.local_rank == comm.rank < comm.size
    context.device_id = str(comm.local_rank)  # which counts from the first array on
    for dtype, size in itertools.product(TYPES, (0, 1, 7)):
        each_type(comm, dtype, size, inplace=size == 7)
    lists_and_groups(comm)
    if comm.size > 1:
        mistakes(comm)
    if comm.size == 2:
        large(comm)
    theirs = C.MultiProcessDataParallelCommunicator(context, deterministic=False)
    theirs.init()
    x = array([1.0, comm.rank])
    theirs.all_reduce([x], division=True)
    check(x, [1, (comm.size - 1) / 2], "float32")
    if sys.argv[2:]:  # by NCCL itself
        for dtype in TYPES:
            each_type(theirs, dtype, 7, inplace=False)
    sys.stdout.write(f"rank {comm.rank} is well\n")


main()
