"""Parameters of a file beside the tree of parameters, until nothing of a load can fail any more.

No other thread sees them before, so a load that fails has nothing to take back: what others write or take stays.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .. import _core, _files
from .._scope import parts_of
from ..parameter import get_parameters, parameter_scope, set_parameter


class StagedParameters:
    """What the current scope will have: its parameters, and those of a file.

    Args:
        function: Name of the calling function, for errors.
        records: The parameters of the file.

    Attributes:
        scope: A scope of its own with all of them, for the networks of the file.

    Raises:
        ValueError: If one of them does not fit the current scope.
    """

    def __init__(self, function: str, records: list[_files.Parameter]) -> None:
        self.scope: OrderedDict[str, Any] = OrderedDict()
        self._function = function
        names = ["/".join(parts_of(name)) for name, *_ in records]
        self._values = {name: (array, grad) for name, (_, array, grad) in zip(names, records, strict=True)}
        self._before = get_parameters(grad_only=False)
        staged = dict(zip(names, _core.stage_parameters(function, records), strict=True))
        self._before.update((name, v) for name, (v, is_new) in staged.items() if not is_new)
        with parameter_scope("", self.scope):
            for name, v in {**self._before, **{name: v for name, (v, _) in staged.items()}}.items():
                set_parameter(name, v)

    def commit(self) -> None:
        """Put the new ones, those that networks have made among them, and the file's values into the current scope."""
        with parameter_scope("", self.scope):
            found = get_parameters(grad_only=False).items()
        to_put = [(name, v, v != self._before.get(name), self._values.get(name)) for name, v in found]
        _core.put_parameters(self._function, [p for p in to_put if p[2] or p[3] is not None])
