"""`LSTMCell`: a step of an LSTM that keeps its states, over `lstm_cell`."""

from __future__ import annotations

from typing import Any

from ._core import Variable
from ._parametric_api import Initializer


class LSTMCell:
    """An LSTM that is called step by step and keeps its states.

    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters
    >>> cell = LSTMCell(2, 4)
    >>> for _ in range(3):
    ...     h = cell(Variable((2, 3)))
    >>> h.shape, h is cell.h
    ((2, 4), True)
    >>> clear_parameters()
    """

    def __init__(
        self,
        batch_size: int,
        state_size: int,
        h: Variable | None = None,
        c: Variable | None = None,
        name: str | None = None,
    ) -> None:
        """Make a cell.

        Args:
            batch_size: Samples in a step.
            state_size: Size of the states.
            h: State h before the first step, of shape (batch_size, state_size); by default zeros.
            c: State c, likewise.
            name: Name of the scope that the cell's parameters are in.
        """
        self.batch_size = batch_size
        self.state_size = state_size
        self.name = name
        self.h: Variable = self._zeros() if h is None else h
        self.c: Variable = self._zeros() if c is None else c

    def _zeros(self) -> Variable:
        state = Variable((self.batch_size, self.state_size))
        state.data.zero()
        return state

    def reset_state(self) -> None:
        """Set the states to zero."""
        self.h.data.zero()
        self.c.data.zero()

    def __call__(
        self, x: Variable, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False
    ) -> Variable:
        """Do a step.

        Args:
            x: Input of shape (batch_size, inputs).
            w_init: Initial weights, as of `lstm_cell`.
            b_init: Initial biases.
            fix_parameters: Whether weights and biases stay as they are in training.

        Returns:
            The state h after the step.
        """
        from . import parametric_functions as PF

        call: Any = PF.lstm_cell
        step = (self.state_size, w_init, b_init, fix_parameters)
        self.h, self.c = call(x, self.h, self.c, *step, name=self.name)
        return self.h
