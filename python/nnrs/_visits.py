"""The order in which NNabla visits a graph, for names and listings that follow it."""

from __future__ import annotations

from ._core import Function, Variable


def functions_in_order(end: Variable) -> list[Function]:
    """The functions of a graph as NNabla visits them: depth first, those of a function's first input before the others.

    Names are made of that order, so it is the same here, where `Variable.visit` goes by rank.

    >>> from nnrs import functions as F
    >>> x = Variable((2,))
    >>> y = F.add2(F.exp(F.sin(x)), F.cos(x))
    >>> [f.name for f in functions_in_order(y)]
    ['Sin', 'Exp', 'Cos', 'Add2']
    """
    seen: set[Function] = set()
    found: list[Function] = []
    ahead = [(end.parent, False)]
    while ahead:
        f, is_done = ahead.pop()
        if f is None or (not is_done and f in seen):
            continue
        if is_done:
            found.append(f)
            continue
        seen.add(f)
        ahead.append((f, True))
        ahead.extend((v.parent, False) for v in reversed(f.inputs))
    return found
