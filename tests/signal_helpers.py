"""What a signal handler of the user's raises, at each place where it may."""

from __future__ import annotations

import dis
import functools
import sys

from thread_helpers import parallel


class Late(Exception):
    """What a signal handler of the user's raises."""


def on_a_thread(test):
    """The test on a thread of its own: one that traces keeps what was caught where a trace has raised amid `except`."""

    @functools.wraps(test)
    def wrapped(**kwargs):
        parallel(lambda: test(**kwargs))

    return wrapped


# After these CPython looks for signals.
PLACES = ("RESUME", "CALL", "JUMP_BACKWARD", "JUMP_ABSOLUTE")


def raising_at(at, error, modules=("nnrs",)):
    """A trace function that raises at one of the places in these modules where a signal handler may; counts them."""
    last = {}

    def trace(frame, event, arg):
        if not frame.f_globals.get("__name__", "").startswith(modules):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = last.get(frame, "")
            trace.seen += before.startswith(PLACES) and not before.startswith("CALL_INTRINSIC")
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if trace.seen == at:
                sys.settrace(None)
                last.clear()
                raise error
        return trace

    trace.seen = 0
    sys._getframe().f_trace_opcodes = True  # CPython 3.12 looks for this when the trace is set, and not after
    return trace
