"""ContextParallel.forward, of which torch can ask gradients: each rank's backward is a call that all ranks make."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _forward(
    ctx: Any, q: Tensor, k: Tensor, v: Tensor, context: Any, plan: Any, scale: Optional[float], *named: Tensor
) -> Tuple[Tensor, Tensor]:
    out, lse = context.forward(q.detach(), k.detach(), v.detach(), plan, scale=scale)
    ctx.save_for_backward(q, k, v, out, lse, *named)
    ctx.call = (context, plan, scale)
    ctx.set_materialize_grads(False)
    return out, lse


def _backward(ctx: Any, dout: Optional[Tensor], dlse: Optional[Tensor]) -> Any:
    q, k, v, out, lse, *named = ctx.saved_tensors
    context, plan, scale = ctx.call
    found = context.backward(
        q.detach(), k.detach(), v.detach(), out, lse,
        torch.zeros_like(out) if dout is None else dout.contiguous(), plan,
        dlse=None if dlse is None else dlse.contiguous(), scale=scale,
        deterministic=torch.are_deterministic_algorithms_enabled(),
    )  # fmt: skip
    of_named = [
        found[name].reshape(x.shape).to(x.dtype) for name, x in zip(_names(context, plan), named)
    ]
    return (*(found.get(name) for name in "qkv"), None, None, None, *of_named)


def _names(context: Any, plan: Any) -> List[str]:
    """Of the tensors of buffers and scalars that the spec's gradients name and plan() was given."""
    given = {} if plan._bindings is None else plan._bindings.named
    return [name for name in context.named_gradients if name in given]


# Not by a class statement: to mypy the base is Any where torch is not installed.
_ContextFunction: Any = type(
    "_ContextFunction",
    (torch.autograd.Function,),
    {"forward": staticmethod(_forward), "backward": staticmethod(once_differentiable(_backward))},
)


def differentiable(
    context: Any, q: Tensor, k: Tensor, v: Tensor, plan: Any, scale: Optional[float]
) -> Tuple[Tensor, Tensor]:
    """(out, lse) in autograd's graph: their backward computes the gradients that the spec names."""
    named = [plan._bindings.named[name] for name in _names(context, plan)]
    result: Tuple[Tensor, Tensor] = _ContextFunction.apply(q, k, v, context, plan, scale, *named)
    return result
