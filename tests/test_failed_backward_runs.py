"""Backward runs that fail on one process and are caught there: an error on all, and the steps behind are right again.

Threads stand for processes; tests/mpi/hostile.py has processes.
"""

from __future__ import annotations

import contextlib
import re
import threading

import numpy as np
import pytest

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
from thread_transport import Board, ThreadTransport, run_threads


class Failure(Exception):
    """What rank 1 raises."""


class Raises(C.CommunicatorBackwardCallback):
    def on_finish_backward(self):
        raise Failure("no")


def leaves(*values, size=2):
    made = [nn.Variable.from_numpy_array(np.full(size, v, np.float32), need_grad=True) for v in values]
    for v in made:
        v.grad.zero()
    return made


def fails_at(name, beside=lambda f: None):
    """A hook that fails at the function of that name."""

    def hook(f):
        if f.name == name:
            raise Failure("no")
        beside(f)

    return hook


def train(comm, y, parameters, options):
    """Five steps, of which rank 1 fails in two; `options(step, fails)` are backward's.

    Gives of each step the gradients, or who has failed: "own", or "told" by another one.
    """
    found = []
    for step in range(5):
        for p in parameters:
            p.grad.zero()
        y.forward()
        try:
            y.backward(**options(step, comm.rank == 1 and step in (1, 2)))
            found.append([float(p.g.flat[0]) for p in parameters])
        except Failure:
            found.append("own")
        except ValueError as error:
            told = r"Communicator\.\w+: rank \d of group '\w+' has given its backward run up: (.*)Failure: no"
            assert re.match(told, str(error)), error
            found.append("told")
    return found


def check(results, *expected):
    """Of each rank its gradients, or the same of all."""
    for rank, found in enumerate(results):
        assert found[1:3] == ["own" if rank == 1 else "told"] * 2, (rank, found)
        for got in (found[0], *found[3:]):
            np.testing.assert_allclose(got, expected[min(rank, len(expected) - 1)], rtol=1e-5)


@pytest.mark.parametrize("where", ["below", "before", "behind"])
def test_a_failure_behind_the_last_gradients(where):
    """It was an error on that process alone, and the others made the update."""

    def work(comm):
        a, b = leaves(comm.rank + 1.0, 3)
        y = F.sum(F.exp(F.sin(a)) * b)
        callback = comm.all_reduce_callback([b.grad], 1)
        bad = [Raises(), callback] if where == "before" else [callback, Raises()]

        def options(step, fails):
            if where == "below":
                hook = fails_at("Sin") if fails else None
                return {"communicator_callbacks": callback, "function_post_hook": hook}
            return {"communicator_callbacks": bad if fails else callback}

        return train(comm, y, [b], options)

    check(run_threads(3, work), [sum(np.exp(np.sin(v)) for v in (1, 2, 3))])


@pytest.mark.parametrize("wrong", ["grad", "function_post_hook", "communicator_callbacks"])
def test_wrong_arguments_of_backward(wrong):
    """It was an error on that process alone, and the others took its next step's gradients."""

    def work(comm):
        (w,) = leaves(comm.rank + 1.0)
        y, callback, found = F.sum(F.pow_scalar(w, 2)), comm.all_reduce_callback([w.grad], 1), []
        for step in range(4):
            w.grad.fill(step)
            y.forward()
            bad = {"grad": np.ones(7), "function_post_hook": 3, "communicator_callbacks": [3, callback]}
            more = {wrong: bad[wrong]} if (comm.rank, step) == (1, 2) else {}
            try:
                y.backward(**{"communicator_callbacks": callback, **more})
                found.append(float(w.g[0]))
            except (TypeError, ValueError) as error:
                assert wrong in str(error)
        return found

    assert run_threads(3, work) == [[12.0, 15.0, 21.0]] * 3


@pytest.mark.parametrize("hook", ["function_pre_hook", "function_post_hook"])
@pytest.mark.parametrize("group", ["world", "pair"])
@pytest.mark.parametrize("where", ["Sum", "Mul2", "Exp", "Sin"])
def test_other_collectives_within_a_run(hook, group, where):
    """After a failure that was caught one process was a step ahead for good."""

    def work(comm):
        comm.new_group(("pair", [1, 0]))
        a, b = leaves(comm.rank + 1.0, 3)
        y = F.sum(F.exp(F.sin(a)) * b)
        callback = comm.all_reduce_callback([a.grad, b.grad], 1)
        ranks = comm.find_group(group) if comm.rank in comm.find_group(group) else [comm.rank]

        def options(step, fails):
            def sums(f):
                x = nn.NdArray.from_numpy_array(np.float32([10 * comm.rank + step]))
                comm.all_reduce(x, group=group)
                assert x.data[0] == sum(10 * rank + step for rank in ranks)

            return {"communicator_callbacks": callback, hook: fails_at(where, sums) if fails else sums}

        return train(comm, y, [a, b], options)

    a = 3 * sum(np.exp(np.sin(v)) * np.cos(v) for v in (1, 2, 3))
    check(run_threads(3, work), [a, sum(np.exp(np.sin(v)) for v in (1, 2, 3))])


@pytest.mark.parametrize("group", ["world", "pair"])
def test_synchronized_normalization_within_a_run(group):
    """Also where the run that fails is the first one."""

    def work(comm):
        comm.new_group(("pair", [0, 1]))
        beta, gamma = leaves(0.5, 2, size=(1, 2))
        x = nn.Variable.from_numpy_array(
            np.random.default_rng(comm.rank).normal(size=(3, 2)).astype(np.float32), need_grad=True
        )
        sync = F.sync_batch_normalization(F.exp(x), beta, gamma, None, None, comm, group, batch_stat=True)
        y = F.sum(F.sin(sync))
        callback, found = comm.all_reduce_callback([beta.grad, gamma.grad], 1), []
        for step in range(4):
            for v in (x, beta, gamma):
                v.grad.zero()
            y.forward()
            hook = fails_at("Sin") if comm.rank == 1 and step < 2 else None
            try:
                y.backward(communicator_callbacks=callback, function_post_hook=hook)
                found.append((x.g.copy(), beta.g.copy(), gamma.g.copy()))
            except (Failure, ValueError) as error:
                assert step < 2, error
        y.forward()
        for v in (x, beta, gamma):
            v.grad.zero()
        y.backward()
        comm.all_reduce([beta.grad, gamma.grad])
        assert len(found) == 2
        for got in found:
            for v, g in zip((x, beta, gamma), got, strict=True):
                np.testing.assert_allclose(v.g, g, rtol=1e-5, atol=1e-6)

    run_threads(3, work)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("where", ["Sum", "Add2", "Exp", "Sin"])
def test_callbacks_of_two_groups_with_functions_of_one_rank(order, where):
    """They said in two groups at once that they had given up, each in the other order, until time was up."""

    def work(comm):
        comm.new_group(("one", [0, 1]))
        comm.new_group(("other", [1, 0]))
        a, b = leaves(comm.rank + 1.0, comm.rank + 3.0)
        y = F.sum(F.exp(a) + F.sin(b))
        both = [comm.all_reduce_callback(a.grad, 1, group="one"), comm.all_reduce_callback(b.grad, 1, group="other")]

        def options(step, fails):
            hook = {"function_post_hook": fails_at(where)} if fails else {}
            return {"communicator_callbacks": [both[i] for i in order], **hook}

        return train(comm, y, [a, b], options)

    check(run_threads(2, work), [np.exp(1) + np.exp(2), np.cos(3) + np.cos(4)])


def test_a_group_of_which_not_all_are_in_the_run():
    """What is said of a run meets the collective of one that is not in it, which is done all the same."""

    def work(comm):
        comm.new_group(("pair", [0, 1]))
        (a,) = leaves(comm.rank + 1.0)
        y = F.sum(F.exp(a))
        callback, found = comm.all_reduce_callback([a.grad], 1, group="pair"), []

        def of_all(f=None):
            if f is None or f.name == "Exp":
                comm.all_reduce(nn.NdArray.from_numpy_array(np.float32([1])))

        for step in range(5):
            is_bad = step in (1, 2)
            a.grad.zero()
            y.forward()
            try:
                if comm.rank < 2:
                    hook = fails_at("Sum", of_all) if comm.rank == 1 and is_bad else of_all
                    y.backward(communicator_callbacks=callback, function_post_hook=hook)
                elif not is_bad:
                    of_all()
            except (Failure, ValueError) as error:
                assert is_bad and "no" in str(error)
            x = nn.NdArray.from_numpy_array(np.float32([comm.rank + step]))
            comm.all_reduce(x)
            found.append((float(x.data[0]), None if is_bad else float(a.g[0])))
        return found

    for rank, found in enumerate(run_threads(3, work)):
        gradient = 0 if rank == 2 else np.exp(np.float32([1, 2])).sum()
        assert [x for x, _ in found] == [3, 6, 9, 12, 15]
        np.testing.assert_allclose([found[i][1] for i in (0, 3, 4)], [gradient] * 3, rtol=1e-5)


def test_sums_over_rows_and_then_over_columns():
    """The second callback took the gradients before the first had brought its sums there."""

    def work(comm):
        row, column = comm.rank // 2, comm.rank % 2
        for i in range(2):
            comm.new_group((f"row{i}", [2 * i, 2 * i + 1]))
            comm.new_group((f"column{i}", [i, i + 2]))
        found = []
        for sizes in ([1], [1, 1], [3, 2], [40_000], [40_000, 3], [3, 40_000]):
            parameters = [leaves(comm.rank + 1.0, size=size)[0] for size in sizes]
            y = F.sum(F.concatenate(*(F.pow_scalar(p, 2) for p in parameters), axis=0))
            grads = [p.grad for p in parameters]
            callbacks = [comm.all_reduce_callback(grads, 1 << 20, group=g) for g in (f"row{row}", f"column{column}")]
            y.forward()
            y.backward(communicator_callbacks=callbacks)
            found += [set(p.g) for p in parameters]
        return found

    assert run_threads(4, work) == [[{20.0}] * 10] * 4


def test_an_unknown_group_is_an_error_for_one_process_too():
    x = nn.Variable.from_numpy_array(np.ones((2, 2), np.float32))
    with pytest.raises(
        ValueError, match=r"sync_batch_normalization: argument 'group': expected one of 'world', got 'x'"
    ):
        F.sync_batch_normalization(x, None, None, None, None, C.Communicator(), group="x")


@pytest.mark.parametrize("fails", [0, 2])
@pytest.mark.parametrize("where", ["hook", "inner", "inner in the same group"])
def test_a_group_that_the_failing_process_has_not_come_to(fails, where):
    """Others waited there until time was up; a run within the run, begun on one alone, left them a step apart."""

    def work(comm):
        other = comm.new_group(("other", [1, 0]))
        a, b, c = leaves(comm.rank + 1.0, 1, 1)
        y, z = F.sum(F.exp(F.sin(a)) * b), F.sum(c * 5.0)
        inner = comm.all_reduce_callback([c.grad], 1, group="world" if "same" in where else other)
        outer, found = comm.all_reduce_callback([a.grad, b.grad], 1), []

        for step in range(7):
            is_bad = step in (fails, fails + 2)

            def hook(f, step=step, is_bad=is_bad):
                if f.name != "Exp":
                    return
                if comm.rank == 1 and is_bad:
                    raise Failure("no")
                if where == "hook":
                    x = nn.NdArray.from_numpy_array(np.float32([step]))
                    comm.all_reduce(x, group=other)
                    found.append(x.data[0])
                elif step != fails + 2:
                    c.grad.fill(step)
                    z.forward()
                    z.backward(communicator_callbacks=inner)
                    found.append(c.g[0])

            a.grad.zero(), b.grad.fill(step)
            y.forward()
            try:
                y.backward(communicator_callbacks=outer, function_post_hook=hook)
                assert not is_bad
                np.testing.assert_allclose(b.g, np.exp(np.sin([1, 2])).sum() + 2 * step, rtol=1e-6)
            except (Failure, ValueError) as error:
                assert is_bad and "no" in str(error)
        return found

    inside = [step for step in range(7) if step not in (fails, fails + 2)]
    expected = [2 * step if where == "hook" else 2 * (step + 5) for step in inside]
    assert run_threads(2, work) == [expected] * 2


def test_two_communicators():
    """One for sums in a hook, another for gradients: the failure was told by the second alone."""
    board = Board()

    def work(comm):
        other = C.Communicator(ThreadTransport(board, comm.rank, comm.size))
        a, b = leaves(comm.rank + 1.0, 3)
        y = F.sum(F.exp(F.sin(a)) * b)
        callback = other.all_reduce_callback([b.grad], 1)

        def options(step, fails):
            def sums(f):
                x = nn.NdArray.from_numpy_array(np.float32([comm.rank + step]))
                comm.all_reduce(x)
                assert x.data[0] == 3 + 3 * step

            hook = fails_at("Mul2", sums) if fails else sums
            return {"communicator_callbacks": callback, "function_post_hook": hook}

        return train(comm, y, [b], options)

    check(run_threads(3, work), [sum(np.exp(np.sin(v)) for v in (1, 2, 3))])


def rows_and_columns(comm, rows, columns, fails, warm_up=0, common=False, first_sum=0):
    """Rows add gradients up, columns what is in a hook, from that step on; `fails` is (rank, step).

    Rank 0's row makes `warm_up` runs before; with `common` all have a callback without gradients.
    """
    for i, ranks in enumerate([*rows, *columns]):
        comm.new_group((f"g{i}", ranks))
    row = next(i for i, ranks in enumerate(rows) if comm.rank in ranks)
    column = next(i for i, ranks in enumerate(columns) if comm.rank in ranks)
    (a,) = leaves(comm.rank + 1.0)
    y = F.sum(F.exp(F.sin(a)))
    callbacks, found = [comm.all_reduce_callback([a.grad], 1, group=f"g{row}")], []
    if common:
        callbacks.append(comm.all_reduce_callback([], 1))
    for _ in range(0 if row else warm_up):
        y.forward()
        y.backward(communicator_callbacks=callbacks)
    for step in range(5):

        def sums(f, step=step):
            if f.name == "Exp" and step >= first_sum:
                x = nn.NdArray.from_numpy_array(np.float32([comm.rank + step]))
                comm.all_reduce(x, group=f"g{len(rows) + column}")
                assert x.data[0] == sum(r + step for r in columns[column])

        try:
            a.grad.zero()
            y.forward()
            hook = fails_at("Sum", sums) if (comm.rank, step) == fails else sums
            y.backward(communicator_callbacks=callbacks, function_post_hook=hook)
            np.testing.assert_allclose(a.g, sum(np.exp(np.sin(r + 1)) * np.cos(r + 1) for r in rows[row]), rtol=1e-5)
            found.append(step)
        except (Failure, ValueError) as error:
            assert "no" in str(error)
    return found


@pytest.mark.parametrize(
    ("rows", "columns", "more", "failing"),
    [
        ([[0, 1], [2, 3]], [[0, 2], [1, 3]], {}, 1),
        ([[0, 1], [2, 3]], [[0, 2], [1, 3]], {"warm_up": 1}, 0),
        ([[0, 1], [2, 3]], [[0, 2], [1, 3]], {"common": True}, 2),
        ([[0, 1], [2, 3]], [[0, 2], [1, 3]], {"first_sum": 4}, 2),
        ([[0, 1], [2]], [[0, 2], [1]], {}, 0),
        ([[0, 1], [2]], [[0, 2], [1]], {}, 2),
    ],
)
def test_a_process_that_shares_no_gradients_with_the_one_that_fails(rows, columns, more, failing):
    """Who is in the failing one's column alone is told, too, also one that is alone in its row."""
    found = run_threads(sum(map(len, rows)), lambda comm: rows_and_columns(comm, rows, columns, (failing, 2), **more))
    told = [r for ranks in rows for r in ranks if failing in ranks or not more.get("first_sum")]
    assert found == [[0, 1, 3, 4] if r in told else [0, 1, 2, 3, 4] for r in range(len(found))]


def test_a_run_of_some_that_fails_before_one_of_all():
    """Who was not in it had its next run ended, and the others took what came after for its gradients."""

    def work(comm):
        pair, found = comm.new_group(("pair", [0, 1])), []
        a, w = leaves(comm.rank + 1.0, comm.rank + 1.0)
        y, z = F.sum(F.exp(F.sin(a))), F.sum(F.pow_scalar(w, 2))
        own, everywhere = comm.all_reduce_callback(a.grad, 1, group=pair), comm.all_reduce_callback(w.grad, 1)
        for step in range(4):
            w.grad.fill(step)
            y.forward(), z.forward()
            if comm.rank < 2:
                with contextlib.suppress(Failure, ValueError):
                    hook = fails_at("Sum") if comm.rank == 1 and step in (0, 2) else None
                    y.backward(communicator_callbacks=own, function_post_hook=hook)
            z.backward(communicator_callbacks=everywhere)
            found.append(float(w.g[0]))
        return found

    assert run_threads(3, work) == [[12.0, 15.0, 18.0, 21.0]] * 3


def test_steps_in_threads_of_their_own_on_one_process():
    """A new thread counted from the beginning."""

    def work(comm):
        (a,) = leaves(comm.rank + 1.0)
        y, found = F.sum(F.exp(F.sin(a))), []
        callback = comm.all_reduce_callback([a.grad], 1)

        def one(step):
            hook = fails_at("Exp") if (comm.rank, step) in ((1, 1), (0, 3)) else None
            a.grad.zero()
            y.forward()
            with contextlib.suppress(Failure, ValueError):
                y.backward(communicator_callbacks=callback, function_post_hook=hook)
                found.append(step)
            comm.barrier()

        for step in range(6):
            if comm.rank == 0:
                own = threading.Thread(target=one, args=(step,))
                own.start()
                own.join()
            else:
                one(step)
        return found

    assert run_threads(2, work) == [[0, 2, 4, 5]] * 2


def test_a_communicator_that_another_thread_used_first():
    """The thread that runs backward did not tell its processes."""
    board = Board()

    def work(comm):
        other = C.Communicator(ThreadTransport(board, comm.rank, comm.size))
        first = threading.Thread(target=comm.barrier)
        first.start()
        first.join()
        (a,) = leaves(comm.rank + 1.0)
        y = F.sum(F.exp(F.sin(a)))
        callback = other.all_reduce_callback([a.grad], 1)

        def options(step, fails):
            hook = fails_at("Exp", lambda f: comm.barrier()) if fails else lambda f: comm.barrier()
            return {"communicator_callbacks": callback, "function_post_hook": hook}

        return train(comm, y, [a], options)

    check(run_threads(2, work), [sum(np.exp(np.sin(v)) * np.cos(v) for v in (1, 2))])


def test_one_callback_in_a_run_and_in_a_run_within():
    """It was told of both as of one run, and the inner one's gradients were not summed at its end."""

    def work(comm):
        w, q = leaves(comm.rank + 1.0, comm.rank + 1.0)
        y, z, found = F.sum(F.tanh(w * 0.0) + w * 2.0), F.sum(F.pow_scalar(q, 2)), []
        callback = comm.all_reduce_callback([q.grad, w.grad], 1)

        def hook(f):
            if f.name == "Tanh":
                q.grad.zero()
                z.forward()
                z.backward(communicator_callbacks=[callback, callback])
                found.append(float(q.g[0]))

        y.forward()
        y.backward(communicator_callbacks=callback, function_post_hook=hook)
        return [*found, float(w.g[0])]

    assert run_threads(2, work) == [[6.0, 4.0]] * 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_callbacks_without_gradients(order):
    """A process whose callback has nothing to send was not told."""

    def work(comm):
        (a,) = leaves(comm.rank + 1.0)
        y = F.sum(F.exp(F.sin(a)))
        empty = comm.all_reduce_callback([], 1)

        def options(step, fails):
            both = [[empty, C.CommunicatorBackwardCallback()], [Raises()]][fails] + [empty] * fails
            return {"communicator_callbacks": [both[i] for i in order]}

        return train(comm, y, [a], options)

    check(run_threads(2, work), *([np.exp(np.sin(v)) * np.cos(v)] for v in (1, 2)))


@pytest.mark.parametrize("pack_size", [1, 2, 1 << 20])
def test_sums_of_sums_are_made_in_the_order_of_the_callbacks(pack_size):
    """The second one's pack went first where it was ready first."""

    def work(comm):
        comm.new_group(("pair", [0, 1]))
        w, v, u = leaves(1, 1, 1)
        y = F.sum(F.tanh(F.tanh(v * 0.0)) + w * float(comm.rank + 1) + F.tanh(u * 0.0))
        groups = [("world", [w, v]), ("pair", [w, u]), ("world", [u, w])]
        callbacks = [comm.all_reduce_callback([p.grad for p in some], pack_size, group=g) for g, some in groups]
        y.forward()
        y.backward(communicator_callbacks=callbacks)
        return float(w.g[0])

    assert run_threads(3, work) == [12 + 12 + 6] * 3
