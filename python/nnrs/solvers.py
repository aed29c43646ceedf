"""The solvers. Generated from the registry by tools/generate.py: do not edit."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

from ._calls import checked_new
from .solver import Solver, SolverState

__all__ = [
    "AMSBound",
    "AMSGRAD",
    "AdaBelief",
    "AdaBound",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lamb",
    "Lars",
    "Lion",
    "Momentum",
    "Nesterov",
    "RMSprop",
    "RMSpropGraves",
    "Sgd",
    "SgdW",
    "Solver",
    "SolverState",
]


class Sgd(Solver):
    """Stochastic gradient descent, `w = w - lr g`.

    Args:
        lr: Learning rate.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Sgd(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.8 -1.6]
    """

    @checked_new
    def __new__(cls, lr: float = 0.001) -> Sgd:
        return super().__new__(cls, "Sgd", (lr,))


class SgdW(Solver):
    """Gradient descent with momentum and decoupled weight decay, `m = momentum m + lr g`, `w = w - m - eta wd w`; eta is
    the learning rate as a share of the first one (Loshchilov and Hutter, 2019). `weight_decay(rate)` stands in for `wd`
    in the next update.

    Args:
        lr: Learning rate.
        momentum: Share of the last step that goes on.
        wd: Weight decay rate, not multiplied by lr.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.SgdW(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.8 -1.6]
    """

    @checked_new
    def __new__(cls, lr: float = 0.001, momentum: float = 0.9, wd: float = 0.0001) -> SgdW:
        return super().__new__(cls, "SgdW", (lr, momentum, wd))


class Momentum(Solver):
    """Gradient descent with momentum, `m = momentum m + lr g`, `w = w - m` (Polyak, 1964). The learning rate goes into
    `m`, so a change of it leaves the past steps as they were.

    Args:
        lr: Learning rate.
        momentum: Share of the last step that goes on.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Momentum(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.8 -1.6]
    """

    @checked_new
    def __new__(cls, lr: float = 0.001, momentum: float = 0.9) -> Momentum:
        return super().__new__(cls, "Momentum", (lr, momentum))


class Lars(Solver):
    """Layer-wise adaptive rates with momentum, `v = momentum v + lr k (g + wd w)`, `w = w - v` with
    `k = coefficient |w| / (|g| + wd |w|)`, norms over the whole parameter (You et al., 2017). Where `|w|` is below eps, k is
    1; to a divisor below eps, eps is added. `weight_decay(rate)` sets `wd` for the next update; else it is 0.

    Args:
        lr: Learning rate.
        momentum: Share of the last step that goes on.
        coefficient: Trust coefficient: the length of a step as a share of the weight's.
        eps: Norms below it count as zero.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Lars(lr=0.1, coefficient=1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.9 -1.8]
    """

    @checked_new
    def __new__(cls, lr: float = 0.001, momentum: float = 0.9, coefficient: float = 0.001, eps: float = 1e-6) -> Lars:
        return super().__new__(cls, "Lars", (lr, momentum, coefficient, eps))


class Nesterov(Solver):
    """Nesterov's accelerated gradient, `m' = momentum m - lr g`, `w = w + (1 + momentum) m' - momentum m` (Nesterov, 1983).

    Args:
        lr: Learning rate.
        momentum: Share of the last step that goes on.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Nesterov(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.62 -1.24]
    """

    @checked_new
    def __new__(cls, lr: float = 0.001, momentum: float = 0.9) -> Nesterov:
        return super().__new__(cls, "Nesterov", (lr, momentum))


class Adadelta(Solver):
    """Adadelta, `w = w - lr d` with `d = g sqrt((e_sqr_delta + eps) / (e_sqr_grad + eps))`, where `e_sqr_grad` is the running
    mean of `g^2`, this one's included, and `e_sqr_delta` that of `d^2` before this step (Zeiler, 2012).

    Args:
        lr: Learning rate.
        decay: Decay of the two running means.
        eps: Small number that keeps the divisor from 0, and with which steps begin.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Adadelta(lr=10)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.955 -1.955]
    """

    @checked_new
    def __new__(cls, lr: float = 1.0, decay: float = 0.95, eps: float = 1e-6) -> Adadelta:
        return super().__new__(cls, "Adadelta", (lr, decay, eps))


class Adagrad(Solver):
    """Adagrad, `v = v + g^2`, `w = w - lr g / (sqrt(v) + eps)` (Duchi et al., 2011).

    Args:
        lr: Learning rate.
        eps: Small number that keeps the divisor from 0.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Adagrad(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.9 -1.9]
    """

    @checked_new
    def __new__(cls, lr: float = 0.01, eps: float = 1e-8) -> Adagrad:
        return super().__new__(cls, "Adagrad", (lr, eps))


class AdaBelief(Solver):
    """AdaBelief, `w = w - alpha / (1 - beta1^t) mean / (sqrt(var / (1 - beta2^t)) + eps)` with
    `mean = beta1 mean + (1 - beta1) g`, `var = beta2 var + (1 - beta2) (g - mean)^2 + eps` (Zhuang et al., 2020, and the
    authors' program). With `amsgrad`, var has no eps in it, and `s_max = max(s_max, var) + eps` is in its place in the step;
    s_max is a state too.

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its distance's square.
        eps: Small number that keeps the divisor from 0.
        wd: Weight decay rate with weight_decouple; `weight_decay(rate)` stands in for it in the next update.
        amsgrad: Divide by the largest of the past var.
        weight_decouple: Decay weights beside the gradient, as AdamW: `w = w - alpha wd w` before the step.
        fixed_decay: With weight_decouple: `w = w - wd w`, whatever alpha.
        rectify: RAdam's factor of the step, and `w = w - alpha mean` in the first steps, where there is none.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.AdaBelief(alpha=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.889 -1.889]
    """

    @checked_new
    def __new__(
        cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, wd: float = 0.0, amsgrad: bool = False, weight_decouple: bool = False, fixed_decay: bool = False, rectify: bool = False
    ) -> AdaBelief:
        return super().__new__(cls, "AdaBelief", (alpha, beta1, beta2, eps, wd, amsgrad, weight_decouple, fixed_decay, rectify))


class RMSprop(Solver):
    """RMSprop, `v = decay v + (1 - decay) g^2`, `w = w - lr g / (sqrt(v) + eps)` (Hinton, 2012).

    Args:
        lr: Learning rate.
        decay: Decay of the running mean of the gradient's square.
        eps: Small number that keeps the divisor from 0.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.RMSprop(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.684 -1.684]
    """

    @checked_new
    def __new__(cls, lr: float = 0.001, decay: float = 0.9, eps: float = 1e-8) -> RMSprop:
        return super().__new__(cls, "RMSprop", (lr, decay, eps))


class RMSpropGraves(Solver):
    """RMSprop in Graves' form: `n` and `g` are the running means of the gradient's square and of the gradient,
    `d = momentum d - lr gradient / sqrt(n - g^2 + eps)`, `w = w + d` (Graves, 2013).

    Args:
        lr: Learning rate.
        decay: Decay of the two running means.
        momentum: Share of the last step that goes on.
        eps: Small number that keeps the root's argument above 0.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.RMSpropGraves(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.541 -1.541]
    """

    @checked_new
    def __new__(
        cls, lr: float = 0.0001, decay: float = 0.95, momentum: float = 0.9, eps: float = 0.0001
    ) -> RMSpropGraves:
        return super().__new__(cls, "RMSpropGraves", (lr, decay, momentum, eps))


class Adam(Solver):
    """Adam, `w = w - a_t mean / (sqrt(var) + eps)` with `mean = beta1 mean + (1 - beta1) g`,
    `var = beta2 var + (1 - beta2) g^2`, `a_t = alpha sqrt(1 - beta2^t) / (1 - beta1^t)` (Kingma and Ba, 2015).

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        eps: Small number that keeps the divisor from 0.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Adam(alpha=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.9 -1.9]
    """

    @checked_new
    def __new__(cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> Adam:
        return super().__new__(cls, "Adam", (alpha, beta1, beta2, eps))


class AdamW(Solver):
    """Adam with decoupled weight decay, Adam's step and `- eta wd w` at once; eta is the learning rate as a share of the
    first one (Loshchilov and Hutter, 2019). `weight_decay(rate)` stands in for `wd` in the next update.

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        eps: Small number that keeps the divisor from 0.
        wd: Weight decay rate, not multiplied by alpha.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.AdamW(alpha=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.9 -1.9]
    """

    @checked_new
    def __new__(
        cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, wd: float = 0.0001
    ) -> AdamW:
        return super().__new__(cls, "AdamW", (alpha, beta1, beta2, eps, wd))


class AdaBound(Solver):
    """Adam with bounds, `w = w - clip(a_t / (sqrt(var) + eps), lower, upper) mean`, where `var`, `mean` and `a_t` are Adam's,
    `lower = f (1 - 1 / (gamma t + 1))` and `upper = f (1 + 1 / (gamma t))`; f is `final_lr` times the learning rate as a
    share of the first one (Luo et al., 2019).

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        eps: Small number that keeps the divisor from 0.
        final_lr: What both bounds go to.
        gamma: How fast they do.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.AdaBound(alpha=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.9 -1.9]
    """

    @checked_new
    def __new__(
        cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, final_lr: float = 0.1, gamma: float = 0.001
    ) -> AdaBound:
        return super().__new__(cls, "AdaBound", (alpha, beta1, beta2, eps, final_lr, gamma))


class Adamax(Solver):
    """Adamax, `w = w - alpha / (1 - beta1^t) m / (u + eps)` with `m = beta1 m + (1 - beta1) g`, `u = max(beta2 u, |g|)`
    (Kingma and Ba, 2015).

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the largest gradient.
        eps: Small number that keeps the divisor from 0.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Adamax(alpha=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.9 -1.9]
    """

    @checked_new
    def __new__(cls, alpha: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> Adamax:
        return super().__new__(cls, "Adamax", (alpha, beta1, beta2, eps))


class AMSGRAD(Solver):
    """AMSGrad, `w = w - alpha m / (sqrt(v_hat) + eps)` with `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2`,
    `v_hat = max(v_hat, v)` (Reddi et al., 2018).

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        eps: Small number that keeps the divisor from 0; not in the paper.
        bias_correction: Adam's factor `sqrt(1 - beta2^t) / (1 - beta1^t)` of the step size; not in the paper.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.AMSGRAD(alpha=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.684 -1.684]
    """

    @checked_new
    def __new__(
        cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, bias_correction: bool = False
    ) -> AMSGRAD:
        return super().__new__(cls, "AMSGRAD", (alpha, beta1, beta2, eps, bias_correction))


class AMSBound(Solver):
    """AMSGrad with bounds, `w = w - clip(alpha / (sqrt(v_hat) + eps), lower, upper) m`, where `v_hat` and `m` are AMSGrad's,
    `lower = f (1 - 1 / (gamma t + 1))` and `upper = f (1 + t / gamma)`; f is `final_lr` times the learning rate as a share
    of the first one. The upper bound is NNabla's; in the paper it is `f (1 + 1 / (gamma t))`, as in `AdaBound` (Luo et
    al., 2019).

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        eps: Small number that keeps the divisor from 0; not in the paper.
        final_lr: What the lower bound goes to.
        gamma: How fast it does.
        bias_correction: Adam's factor `sqrt(1 - beta2^t) / (1 - beta1^t)` of the step size; not in the paper.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.AMSBound(alpha=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.684 -1.684]
    """

    @checked_new
    def __new__(
        cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, final_lr: float = 0.1, gamma: float = 0.001, bias_correction: bool = False
    ) -> AMSBound:
        return super().__new__(cls, "AMSBound", (alpha, beta1, beta2, eps, final_lr, gamma, bias_correction))


class Lamb(Solver):
    """Layer-wise adaptive moments, `w = w - eta clip(|w|, gamma_l, gamma_u) / |r| r` with `r = mean / (sqrt(var) + eps) + wd w`,
    where `mean` and `var` are Adam's and norms are over the whole parameter (You et al., 2020). Where `|r|` is below eps,
    the factor is eta. `weight_decay(rate)` sets `wd` for the next update; else it is 0.

    Args:
        eta: Learning rate.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        gamma_l: Lower bound of the weight's norm in the factor.
        gamma_u: Upper bound of it.
        eps: Small number that keeps the divisor from 0.
        bias_correction: Divide `mean` by `1 - beta1^t` and `var` by `1 - beta2^t` in r.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Lamb(eta=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.842 -1.842]
    """

    @checked_new
    def __new__(
        cls, eta: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, gamma_l: float = 0.0, gamma_u: float = 10.0, eps: float = 1e-6, bias_correction: bool = False
    ) -> Lamb:
        return super().__new__(cls, "Lamb", (eta, beta1, beta2, gamma_l, gamma_u, eps, bias_correction))


class Lion(Solver):
    """Evolved sign momentum, `w = w - lr (sign(beta1 m + (1 - beta1) g) + wd w)`, then `m = beta2 m + (1 - beta2) g` (Chen et
    al., 2023). `weight_decay(rate)` sets `wd` for the next update; else it is 0. The sign of NaN is 0.

    Args:
        lr: Step size.
        beta1: Share of the running mean in the direction.
        beta2: Decay of the running mean of the gradient.

    >>> import nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> V = nn.Variable.from_numpy_array
    >>> w = V([1.0, -2.0], need_grad=True)
    >>> solver = S.Lion(lr=0.1)
    >>> solver.set_parameters({"w": w})
    >>> loss = F.sum(w**2)
    >>> loss.forward()
    >>> loss.backward()
    >>> solver.update()
    >>> print(w.d.round(3))
    [ 0.9 -1.9]
    """

    @checked_new
    def __new__(cls, lr: float = 0.0001, beta1: float = 0.9, beta2: float = 0.99) -> Lion:
        return super().__new__(cls, "Lion", (lr, beta1, beta2))


def __getattr__(name: str) -> Any:
    from ._borrowed import borrowed

    return borrowed(__name__, name)
