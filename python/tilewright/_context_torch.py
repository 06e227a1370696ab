"""ContextParallel.forward, of which torch can ask gradients: each rank's backward is a call that all ranks make."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _forward(
    ctx: Any, q: Tensor, k: Tensor, v: Tensor, context: Any, plan: Any, scale: Optional[float]
) -> Tuple[Tensor, Tensor]:
    out, lse = context.forward(q.detach(), k.detach(), v.detach(), plan, scale=scale)
    ctx.save_for_backward(q, k, v, out, lse)
    ctx.call = (context, plan, scale)
    ctx.set_materialize_grads(False)
    return out, lse


def _backward(ctx: Any, dout: Optional[Tensor], dlse: Optional[Tensor]) -> Any:
    q, k, v, out, lse = ctx.saved_tensors
    context, plan, scale = ctx.call
    found = context.backward(
        q.detach(), k.detach(), v.detach(), out, lse,
        torch.zeros_like(out) if dout is None else dout.contiguous(), plan,
        dlse=None if dlse is None else dlse.contiguous(), scale=scale,
        deterministic=torch.are_deterministic_algorithms_enabled(),
    )  # fmt: skip
    return (*(found.get(name) for name in "qkv"), None, None, None)


# Not by a class statement: to mypy the base is Any where torch is not installed.
_ContextFunction: Any = type(
    "_ContextFunction",
    (torch.autograd.Function,),
    {"forward": staticmethod(_forward), "backward": staticmethod(once_differentiable(_backward))},
)


def differentiable(
    context: Any, q: Tensor, k: Tensor, v: Tensor, plan: Any, scale: Optional[float]
) -> Tuple[Tensor, Tensor]:
    """(out, lse) in autograd's graph: their backward computes the gradients of q, k and v."""
    result: Tuple[Tensor, Tensor] = _ContextFunction.apply(q, k, v, context, plan, scale)
    return result
