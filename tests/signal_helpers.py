"""What a signal handler of the user's raises, at each place where it may."""

from __future__ import annotations

import dis
import sys


class Late(Exception):
    """What a signal handler of the user's raises."""


# After these CPython looks for signals.
PLACES = ("RESUME", "CALL", "JUMP_BACKWARD", "JUMP_ABSOLUTE")


def raising_at(at, error):
    """A trace function that raises at one of the places in nnrs where a signal handler may; counts them."""
    last = {}

    def trace(frame, event, arg):
        if not frame.f_globals.get("__name__", "").startswith("nnrs"):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            trace.seen += last.get(frame, "").startswith(PLACES)
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if trace.seen == at:
                sys.settrace(None)
                last.clear()
                raise error
        return trace

    trace.seen = 0
    return trace
