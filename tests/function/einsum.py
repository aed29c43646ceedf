"""`einsum`: Einstein's summation convention."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(*x: np.ndarray, equation: str = "") -> np.ndarray:
    # NumPy wants the axes of an ellipsis in the result.
    return np.asarray(x[0].sum() if equation in ("...->", "ij->...") else np.einsum(equation, *x))


FIRST = {"oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}


def case(equation: str, *shapes: tuple[int, ...], **more: object) -> Case:
    settings = {**({} if "oracle" in more else FIRST), **more}
    return Case(inputs=shapes, args={"equation": equation}, name=equation, **settings)


CASES = [
    case("ij,jk->ik", (2, 3), (3, 2)),
    case("ij,jk", (2, 3), (3, 2), second=False),
    case("ji,kj->ik", (2, 3), (3, 2), second=False),
    case("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    case("ij,jk,kl->il", (2, 2), (2, 3), (3, 2), second=False),
    case("ijk,jil->kl", (2, 3, 2), (3, 2, 2), second=False),
    case("ij,ij->", (2, 3), (2, 3)),
    case("i,i", (3,), (3,), second=False),
    case("i,j->ij", (2,), (3,)),
    case("i,j->ji", (2,), (3,), second=False),
    case("ij,ij->ij", (2, 2), (2, 2), second=False),
    case("ij,kj->i", (2, 3), (4, 3), second=False),
    case("bhwi,bhwj->bij", (1, 2, 2, 2), (1, 2, 2, 3), second=False),
    case("ii", (3, 3)),
    case("ii->i", (3, 3), second=False),
    case("iij->ij", (2, 2, 3), second=False),
    case("iii->i", (2, 2, 2), second=False),
    case("ij->ji", (2, 3), second=False),
    case("ba", (2, 3), second=False),
    case("ij->", (2, 3), second=False),
    case("ijk->j", (2, 3, 2), second=False),
    case(" A b , b C -> A C ", (2, 3), (3, 2), second=False),
    case("...j,j->...", (2, 3, 2), (2,)),
    case("...ij,...jk->...ik", (2, 2, 3), (1, 3, 2)),
    case("i...->...", (2, 3), second=False),
    case("...i->i...", (2, 3, 2), second=False),
    case("...->", (2, 3), second=False),
    case("...i,...i->...", (2, 3), (1, 3), second=False),
    case("...ij,jk", (2, 2, 3), (3, 2), second=False),
    case(",->", (), (), second=False, oracle=False, reason="NNabla takes no empty term"),
    case("...,...->...", (2, 3), (3,), second=False, oracle=False, reason="NNabla wants as many axes"),
    case("ij,jk->...ik", (2, 3), (3, 2), second=False),
    case("ij->...", (2, 3), second=False, oracle=False, reason="NNabla dies"),
    case("...ij,...j->...i", (2, 2, 3), (3,), second=False, oracle=False, reason="NNabla wants as many axes"),
    case("...ij,...j->...i", (1, 2, 3), (2, 3), second=False),
    case("ijkl,lkmj->mi", (2, 2, 3, 2), (2, 3, 2, 2), second=False),
    case("iij,jki->ki", (2, 2, 3), (3, 2, 2), second=False),
    case("ij,ik,il->jkl", (2, 2), (2, 3), (2, 2), second=False),
    case("ij,jk->ik", (2, 0), (0, 3), differentiable=False, oracle=False, reason="NNabla dies"),
]
CASES[-1] = Case(**{**CASES[-1].__dict__, "name": "nothing to sum"})
ERRORS = [
    Error(inputs=[(2, 3)], args={"equation": "i1->i"}, match="argument 'equation'", name="digit"),
    Error(inputs=[(2, 3)], args={"equation": "i.j->ij"}, match="argument 'equation'", name="dot"),
    Error(
        inputs=[(2, 3)],
        args={"equation": "ij->i->j"},
        match="argument 'equation'",
        name="arrows",
        oracle=False,
        reason="it goes on",
    ),
    Error(inputs=[(2, 3)], args={"equation": "i,j"}, match="argument 'equation'.*each of the 1", name="terms"),
    Error(
        inputs=[(2, 3)],
        args={"equation": "ij->ik"},
        match="argument 'equation'",
        name="unknown",
        oracle=False,
        reason="it goes on",
    ),
    Error(
        inputs=[(2, 3)],
        args={"equation": "ij->ii"},
        match="argument 'equation'",
        name="twice",
        oracle=False,
        reason="it goes on",
    ),
    Error(inputs=[(2, 3)], args={"equation": "ijk->i"}, match=r"argument 'x\[0\]'.*label", name="axes"),
    Error(
        inputs=[(2, 3), (2, 3)],
        args={"equation": "ij,jk->ik"},
        match=r"argument 'x\[1\]'.*size 3 for label 'j'",
        name="sizes",
    ),
    Error(inputs=[(2, 3), (1,)], args={"equation": "ij,j->ij"}, match=r"argument 'x\[1\]'", name="size 1"),
]
