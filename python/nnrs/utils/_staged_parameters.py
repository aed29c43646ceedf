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
        self._before = get_parameters(grad_only=False)
        names = ["/".join(parts_of(name)) for name, *_ in records]
        self._values = {name: (array, grad) for name, (_, array, grad) in zip(names, records, strict=True)}
        staged = dict(zip(names, _core.stage_parameters(function, records), strict=True))
        with parameter_scope("", self.scope):
            for name, v in {**self._before, **staged}.items():
                set_parameter(name, v)

    def commit(self) -> None:
        """Put the new ones, those that networks have made among them, and the file's values into the current scope."""
        with parameter_scope("", self.scope):
            found = get_parameters(grad_only=False)
        for name, v in self._before.items():
            if name not in self._values and found.get(name) is v:
                del found[name]
        _core.put_parameters(self._function, [(name, v, self._values.get(name)) for name, v in found.items()])
