"""torch.ops.tilewright.forward: a custom op, so that torch.compile(fullgraph=True) takes calls of Attention.forward and
flex_attention. Attentions, masks, plans and bindings are numbers in it (_registry.py)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import torch
from torch import Tensor

from ._error import Error
from ._registry import find

_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn}
_kept: List[Any] = []  # of compiled calls of flex_attention


def _forward(
    q: Tensor, k: Tensor, v: Tensor, attention: int, mask: int, plan: int, bindings: int,
    scale: Optional[float], q_offset: int, kv_offset: int, named: Optional[List[Tensor]],
) -> List[Tensor]:  # fmt: skip
    """[out] or [out, lse]. named: the tensors of buffers and scalars that the spec's gradients name, which bindings hold."""
    result = find(attention).forward(
        q.detach(), k.detach(), v.detach(), mask=find(mask), plan=find(plan), bindings=find(bindings),
        scale=scale, q_offset=q_offset, kv_offset=kv_offset,
    )  # fmt: skip
    return list(result) if isinstance(result, tuple) else [result]


def _forward_fake(
    q: Tensor, k: Tensor, v: Tensor, attention: int, mask: int, plan: int, bindings: int,
    scale: Optional[float], q_offset: int, kv_offset: int, named: Optional[List[Tensor]],
) -> List[Tensor]:  # fmt: skip
    variant = find(attention)
    results = [q.new_empty((*q.shape[:-1], variant._v_head_dim), dtype=_DTYPES[variant._out_dtype])]
    if variant._lse:
        shape = (
            (q.shape[1], q.shape[0])
            if variant._packed
            else (q.shape[0], q.shape[variant._heads], q.shape[3 - variant._heads])
        )
        results.append(q.new_empty(shape, dtype=torch.float32))
    return results


# Without defaults: torch leaves out what equals one, and wants a gradient of each input that is left.
_SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, int attention, int mask, int plan, int bindings, float? scale, "
    "SymInt q_offset, SymInt kv_offset, Tensor[]? named) -> Tensor[]"
)
_op: Any = torch.library.custom_op("tilewright::forward", _forward, mutates_args=(), schema=_SCHEMA)
_op.register_fake(_forward_fake)


def _backward(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, dout: Tensor, dlse: Optional[Tensor], named: List[Tensor],
    attention: int, mask: int, plan: int, bindings: int, scale: Optional[float], q_offset: int, kv_offset: int,
) -> List[Tensor]:  # fmt: skip
    """The gradients that the spec names: of q, k, v, then of `named`."""
    variant = find(attention)
    found = variant.backward(
        q, k, v, out, lse, dout, dlse=dlse, mask=find(mask), plan=find(plan), bindings=find(bindings),
        scale=scale, q_offset=q_offset, kv_offset=kv_offset,
        deterministic=torch.are_deterministic_algorithms_enabled(),
    )  # fmt: skip
    of_inputs = [found[name] for name in "qkv" if name in found]
    of_named = [found[name] for name in variant.named_gradients]
    return of_inputs + [g.reshape(x.shape).to(x.dtype) for g, x in zip(of_named, named)]


def _backward_fake(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, dout: Tensor, dlse: Optional[Tensor], named: List[Tensor],
    attention: int, mask: int, plan: int, bindings: int, scale: Optional[float], q_offset: int, kv_offset: int,
) -> List[Tensor]:  # fmt: skip
    wanted = find(attention)._spec.get("gradients", ())
    inputs = [tensor for name, tensor in (("q", q), ("k", k), ("v", v)) if name in wanted]
    return [tensor.new_empty(tensor.shape) for tensor in (*inputs, *named)]


_backward_op: Any = torch.library.custom_op(
    "tilewright::backward",
    _backward,
    mutates_args=(),
    schema="(Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor? dlse, Tensor[] named, "
    "int attention, int mask, int plan, int bindings, float? scale, SymInt q_offset, SymInt kv_offset) -> Tensor[]",
)
_backward_op.register_fake(_backward_fake)


def _keep_for_backward(ctx: Any, inputs: Any, output: List[Tensor]) -> None:
    q, k, v, attention, mask, plan, bindings, scale, q_offset, kv_offset, named = inputs
    named = list(named or ())
    ctx.numbers = (attention, mask, plan, bindings, scale, q_offset, kv_offset)
    ctx.kept_alive = tuple(map(find, ctx.numbers[:4]))
    ctx.has_named = bool(named)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, *output, *named)


def _backward_of_op(ctx: Any, gradients: List[Optional[Tensor]]) -> Any:
    variant = ctx.kept_alive[0]
    wanted = variant._spec.get("gradients", ())
    if not wanted:
        raise Error(
            "usage", "the spec names no gradients", 'add "gradients": ["q", "k", "v"] to it, and lse to its outputs'
        )
    q, k, v, out, lse, *named = ctx.saved_tensors
    dout, dlse = gradients
    dout = torch.zeros_like(out) if dout is None else dout if dout.stride(-1) == 1 else dout.contiguous()
    dlse = None if dlse is None else dlse.contiguous()
    found = iter(torch.ops.tilewright.backward(q, k, v, out, lse, dout, dlse, named, *ctx.numbers))
    of_inputs = [next(found) if name in wanted else None for name in "qkv"]
    of_named = list(found) if ctx.has_named else None
    return (*of_inputs, None, None, None, None, None, None, None, of_named)


_op.register_autograd(_backward_of_op, setup_context=_keep_for_backward)


def wants_gradients(*tensors: Any) -> bool:
    """Whether gradients of one of the tensors are wanted."""
    return any(isinstance(t, Tensor) and t.requires_grad for t in tensors) and torch.is_grad_enabled()


def refuse_unnamed_gradients(named: Sequence[str], q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuses tensors whose gradients torch wants and the spec does not name."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if name not in named and tensor.requires_grad:
            raise Error(
                "tensor",
                f"{name} requires gradients, which the spec does not name",
                f'add "{name}" to its gradients, or pass {name}.detach()',
            )


def differentiable(
    attention: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, plan: Any, bindings: Any,
    scale: Optional[float], q_offset: int, kv_offset: int,
) -> Any:  # fmt: skip
    """Attention.forward, of which torch can ask gradients."""
    named = None if bindings is None else attention._named(bindings)
    results = torch.ops.tilewright.forward(
        q,
        k,
        v,
        attention._number,
        _number(mask),
        _number(plan),
        _number(bindings),
        scale,
        q_offset,
        kv_offset,
        named or None,
    )
    return (results[0], results[1]) if attention._lse else results[0]


def _number(thing: Any) -> int:
    return -1 if thing is None else thing._number


def compiled_forward(
    attention: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, plan: Any, bindings: Any,
    scale: Optional[float], q_offset: int, kv_offset: int,
) -> Any:  # fmt: skip
    """Attention.forward in a graph."""
    return differentiable(attention, q, k, v, mask, plan, bindings, scale, q_offset, kv_offset)


def is_compiling() -> bool:
    return bool(torch.compiler.is_compiling())


def prepare(score_mod: Any, mask: int, lse: bool, facts: Dict[str, Any]) -> Any:
    """The numbers of a call of flex_attention in a graph, made while it is traced: (attention, bindings)."""
    from ._flex import ready

    attention, bindings = ready(score_mod, find(mask), lse, facts)
    _kept.append((attention, bindings))
    return attention._number, _number(bindings)


def compiled_flex(query: Tensor, key: Tensor, value: Tensor, score_mod: Any, mask: Any, scale: Any, lse: bool) -> Any:
    """flex_attention in a graph: the mods are traced with the graph."""
    facts = (
        tuple(query.shape),
        tuple(key.shape),
        tuple(value.shape),
        str(query.dtype),
        str(key.dtype),
        str(query.device),
        torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad),
    )
    attention, bindings = _prepare_once(score_mod, _number(mask), lse, facts)
    results = torch.ops.tilewright.forward(
        query, key, value, attention, _number(mask), -1, bindings, scale, 0, 0, None
    )  # fmt: skip
    return (results[0], results[1]) if lse else results[0]


def _prepare_once(score_mod: Any, mask: int, lse: bool, facts: Any) -> Any:
    names = ("q", "k", "v", "q_dtype", "k_dtype", "device", "differentiated")
    return prepare(score_mod, mask, lse, dict(zip(names, facts)))


_prepare_once._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch._dynamo.assume_constant_result
