"""What `Variable.backward` tells while it goes on."""

from __future__ import annotations

from .._core import Function


class CommunicatorBackwardCallback:
    """Told about a backward run while it goes on: `y.backward(communicator_callbacks=callback)`, one or a list.

    Make a class of your own from it and override one or both methods. They are called on the thread that runs
    backward; an exception stops the run.

    The functions come in the order of the run, the same each time: from the highest rank down. After the call for the
    last function that reads a variable, the variable's gradient is final, and it stays at its address until it is
    zeroed or cleared, so it can be added up over processes while others are still computed.

    >>> import numpy as np, nnrs as nn, nnrs.functions as F
    >>> class Names(nn.communicators.CommunicatorBackwardCallback):
    ...     def on_finish_function_backward(self, function):
    ...         print(function.name, function.inputs[0].g)
    ...     def on_finish_backward(self):
    ...         print("done")
    >>> x = nn.Variable.from_numpy_array(np.float32([3]), need_grad=True)
    >>> x.g = 0
    >>> y = F.mul_scalar(F.pow_scalar(x, 2), 5)
    >>> y.forward()
    >>> y.backward(communicator_callbacks=Names())
    MulScalar [5.]
    PowScalar [30.]
    done
    """

    def on_finish_function_backward(self, function: Function) -> None:
        """`function` has added its part to the gradients of its inputs (called after its post-hooks)."""

    def on_finish_backward(self) -> None:
        """The run is over, and nothing has failed."""

    # What the engine tells the callbacks of this package: the number of a run in this process, that all callbacks have
    # come to its end, or that it has failed.

    def _on_begin_backward(self, run: int) -> None: ...

    def _on_close_backward(self, run: int) -> None: ...

    def _on_failed_backward(self, run: int, why: str) -> None: ...
