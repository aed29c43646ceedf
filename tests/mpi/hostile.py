"""Random collectives over three ranks, one wrong use in their midst, and random collectives again where all may go on.

python hostile.py SEED WRONG...    # WRONG: one of those below, or one after the other
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F

seed, wrong = int(sys.argv[1]), ""
comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
comm.init()
rank, same = comm.rank, random.Random(seed)  # draws alike on all ranks
bad = False
pair = comm.new_group(("pair", same.sample(range(comm.size), 2)))


def array(size, dtype="float32"):
    made = nn.NdArray.from_numpy_array(np.full(size, rank + 1.0))
    made.cast(dtype)
    return made


def good():
    """A few collectives, whose results are known."""
    for _ in range(same.randrange(1, 4)):
        size, dtype = same.choice((0, 1, 7, 5000)), same.choice(("float32", "float16", "int32"))
        what, root = same.choice(("all_reduce", "bcast", "all_gather", "barrier", "pair")), same.randrange(comm.size)
        x = array(size, dtype)
        if what == "all_reduce":
            comm.all_reduce(x, division=same.random() < 0.5)
        elif what == "bcast":
            comm.bcast([x, array(2)], root)
            assert (x.data == root + 1).all()
        elif what == "all_gather":
            rows = [array(size, dtype) for _ in range(comm.size)]
            comm.all_gather(x, rows)
            assert all((row.data == i + 1).all() for i, row in enumerate(rows))
        elif what == "pair":
            comm.all_reduce(x, group=pair)
        else:
            comm.barrier()


def refused(call):
    """Runs what all are to be refused; says what they are told."""
    try:
        call()
    except ValueError as error:
        print(f"{wrong} refused:", " ".join(str(error).split())[:160], flush=True)
    else:
        raise AssertionError(f"{wrong}: no error")


def other_order():
    calls = [lambda: comm.all_reduce(array(3)), lambda: comm.bcast(array(3), 0)]
    for call in calls[::-1] if bad else calls:
        refused(call)


def forgotten_parameter():
    made = {name: nn.Variable.from_numpy_array([1.0], grad=[2.0]) for name in "abc"}
    comm.add_context_and_parameters((nn.get_current_context(), made))
    comm.allreduce()
    comm.remove_context_parameters(["b"] if bad else [])
    refused(comm.allreduce)
    comm.remove_context_parameters(["b"])
    comm.allreduce(division=True)


def graph():
    v = nn.Variable.from_numpy_array([2.0, 3.0], need_grad=True)
    v.grad.zero()
    y = F.sum(F.exp(v))
    y.forward()
    return v, y


def other_gradients():
    v, y = graph()
    w = nn.Variable.from_numpy_array([1.0], need_grad=True)
    callback = comm.all_reduce_callback([v.grad, w.grad] if bad else [v.grad], 1)
    refused(lambda: y.backward(communicator_callbacks=callback))


def fails_on_one(y, callback):
    """A backward run that fails on one rank alone, which goes on."""

    def fail(f):
        if bad:
            raise ValueError("a bad sample")

    refused(lambda: y.backward(communicator_callbacks=callback, function_post_hook=fail))


def failed_run():
    v, y = graph()
    callback = comm.all_reduce_callback([v.grad], 1)
    fails_on_one(y, callback)
    v.grad.zero()
    y.backward(communicator_callbacks=callback)
    np.testing.assert_allclose(v.g, comm.size * np.exp([2.0, 3.0]), rtol=1e-6)


def failed_last_steps():
    """One that has failed in its last steps ends when the others know."""
    v, y = graph()
    callback = comm.all_reduce_callback([v.grad], 1)
    for _ in range(2):
        time.sleep(0 if bad else 0.2)
        fails_on_one(y, callback)
    print(f"rank {rank} is well", flush=True)
    sys.exit(0)


class Alarm(Exception):
    pass


def alarm():
    """A handler of a signal raises in a wait: in backward, and in a sum, which is made all the same."""

    def ring(number, frame):
        raise Alarm

    signal.signal(signal.SIGALRM, ring)
    v, y = graph()
    callback = comm.all_reduce_callback([v.grad], 1)
    x = array(3)
    for step in range(4):
        v.grad.zero()
        time.sleep(0 if bad else 0.3)
        try:
            if bad and step % 2 == 0:
                signal.setitimer(signal.ITIMER_REAL, 0.1)
            y.backward(communicator_callbacks=callback) if step else comm.all_reduce(x)
            assert not (bad and step % 2 == 0)
        except Alarm:
            print("alarm", flush=True)
        except ValueError as error:
            assert step == 2, error
            print(f"{wrong} refused:", " ".join(str(error).split())[:160], flush=True)
    comm.barrier()
    assert (x.data == 6).all()
    np.testing.assert_allclose(v.g, comm.size * np.exp([2.0, 3.0]), rtol=1e-6)


def rows():
    """Nobody can say which run of another row has failed, where one row makes two more of them: the end."""
    own, column = comm.new_group(("row", [0, 1])), comm.new_group(("column", [0, 2]))
    v, y = graph()
    callback = comm.all_reduce_callback([v.grad], 1, group=own)

    def sum_of_column(f):
        if rank == 0 and v.grad.data[0] < 0:
            raise ValueError("a bad sample")
        comm.all_reduce(array(2), group=column)

    for _ in range(3):
        for _ in range(2 if rank < 2 else 1):
            v.grad.fill(-1e9)
            y.backward(communicator_callbacks=callback)
        with contextlib.suppress(ValueError):
            y.backward(communicator_callbacks=callback, function_pre_hook=sum_of_column)


def dropped():
    """What communicators have that nobody holds any more, others have after them."""
    from nnrs._communication import mpi, sockets

    kept = []
    for i in range(20):
        other = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
        other.init()
        group = other.new_group((f"some{i}", [0, 2]))
        x = array(5000)
        other.all_reduce(x, group=group)
        assert (x.data == (4 if rank in (0, 2) else rank + 1)).all()
        if i in (3, 4):
            kept.append(other)
    made = sockets._process.controls if sockets._process else mpi._worlds
    assert len(made) == 4, len(made)
    sums = [array(9000) for _ in kept]
    for other, x in zip(kept, sums, strict=True):
        other.all_reduce(x)
        assert (x.data == 6).all()


def overflow():
    """What is too large for a type is infinite, as in a sum, whatever NumPy and the warnings are told."""
    np.seterr(all="raise")
    warnings.simplefilter("error")
    x = nn.NdArray.from_numpy_array([1e30 if bad else 1.0])
    rows = [array(1, "float16") for _ in range(comm.size)]
    comm.all_gather(x, rows)
    assert sorted(float(row.data[0]) for row in rows) == [1, 1, np.inf]
    y = array(1, "float16")
    comm.reduce_scatter([x] * comm.size, y)
    assert np.isinf(y.data[0])


def other_communicator():
    """Two that wait by two communicators are told so of each other."""
    other = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
    other.init()
    (comm if bad else other).all_reduce(array(3))


def ends_before_init():
    if bad:
        sys.exit(0)
    C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=100).init()


def gone():
    """The callback of a communicator that nobody holds any more works."""
    other = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
    other.init()
    v, y = graph()
    callback = other.all_reduce_callback([v.grad], 1, division=True)
    del other
    gc.collect()
    y.backward(communicator_callbacks=callback)
    np.testing.assert_allclose(v.g, np.exp([2.0, 3.0]), rtol=1e-6)


def outside():
    """Who is not in a group comes back at once, and is refused where it is the root."""
    comm.all_reduce(array(3), group=pair)
    others = [r for r in range(comm.size) if r not in comm.find_group(pair)]
    refused(lambda: comm.bcast(array(3), others[0], group=pair))


def fork():
    """The fork is refused. It ends by _exit, for MPI's own end in it would not come back."""
    child = os.fork() if bad else 0
    if bad and child == 0:
        try:
            comm.all_reduce(array(3))
        except RuntimeError as error:
            print("fork:", " ".join(str(error).split())[:160], flush=True)
        v, y = graph()
        other = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
        for call in (other.init, lambda: y.backward(communicator_callbacks=comm.all_reduce_callback([v.grad], 1))):
            try:
                call()
            except C.CommunicatorError as error:
                print("fork, too:", error, flush=True)
        os._exit(0)
    if bad:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def two_threads():
    """Collectives of several threads of one process stand in one line, but in no order: a mistake, and no hang."""
    errors = []

    def call(size):
        try:
            comm.all_reduce(array(size))
        except (ValueError, C.CommunicatorError) as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(size,)) for size in ((4, 3) if bad else (3, 4))]
    for t in threads:
        t.start()
        t.join() if same.random() < 0.5 else None
    for t in threads:
        t.join()


def at_once(end):
    def do():
        if bad:
            end()

    return do


WRONG = {
    "shape": lambda: refused(lambda: comm.all_reduce(array(4 + bad))),
    "dtype": lambda: refused(lambda: comm.all_reduce(array(4, "float16" if bad else "float32"))),
    "root": lambda: refused(lambda: comm.bcast(array(4), int(bad))),
    "order": other_order,
    "group": outside,
    "parameters": forgotten_parameter,
    "gradients": other_gradients,
    "run": failed_run,
    "last": failed_last_steps,
    "alarm": alarm,
    "rows": rows,
    "dropped": dropped,
    "gone": gone,
    "overflow": overflow,
    "other": other_communicator,
    "init": ends_before_init,
    "fork": fork,
    "threads": two_threads,
    "exit": at_once(lambda: sys.exit(0)),
    "status": at_once(lambda: sys.exit(3)),
    "vanish": at_once(lambda: os._exit(0)),
    "raise": at_once(lambda: [][1]),
    "kill": at_once(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "term": lambda: time.sleep(1000) if bad else threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start(),
}
print("started", flush=True)
for wrong in sys.argv[2:]:
    bad = rank == same.randrange(comm.size)
    good()
    WRONG[wrong]()
    good()
comm.all_reduce(array(6))
print(f"rank {rank} is well", flush=True)
