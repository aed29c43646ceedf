"""Parameters of a file beside the tree of parameters, until nothing of a load can fail any more.

No other thread sees them before, so a load that fails has nothing to take back: what others write or take stays.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .. import _core, _files
from .._scope import parts_of, walk
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
        all_of_them = walk(self.scope, "")
        new = [(name, v) for name, v in all_of_them if name in self._values or v is not self._before.get(name)]
        _core.put_parameters(self._function, [(name, v, self._values.get(name)) for name, v in new])
