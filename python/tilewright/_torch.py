"""torch.ops.tilewright.forward: a custom op, so that torch.compile(fullgraph=True) takes calls of Attention.forward and
flex_attention. Attentions, masks, plans and bindings are numbers in it (_registry.py)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch
from torch import Tensor

from ._registry import find

_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_kept: List[Any] = []  # of compiled calls of flex_attention


def _forward(
    q: Tensor, k: Tensor, v: Tensor, attention: int, mask: int, plan: int, bindings: int,
    scale: Optional[float], q_offset: int, kv_offset: int,
) -> List[Tensor]:  # fmt: skip
    """[out] or [out, lse]."""
    result = find(attention).forward(
        q.detach(), k.detach(), v.detach(), mask=find(mask), plan=find(plan), bindings=find(bindings),
        scale=scale, q_offset=q_offset, kv_offset=kv_offset,
    )  # fmt: skip
    return list(result) if isinstance(result, tuple) else [result]


def _forward_fake(
    q: Tensor, k: Tensor, v: Tensor, attention: int, mask: int, plan: int, bindings: int,
    scale: Optional[float], q_offset: int, kv_offset: int,
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


_SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, int attention, int mask, int plan, int bindings, float? scale, "
    "SymInt q_offset, SymInt kv_offset) -> Tensor[]"
)
_op: Any = torch.library.custom_op("tilewright::forward", _forward, mutates_args=(), schema=_SCHEMA)
_op.register_fake(_forward_fake)


def _number(thing: Any) -> int:
    return -1 if thing is None else thing._number


def compiled_forward(
    attention: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, plan: Any, bindings: Any,
    scale: Optional[float], q_offset: int, kv_offset: int,
) -> Any:  # fmt: skip
    """Attention.forward in a graph."""
    results = torch.ops.tilewright.forward(
        q, k, v, attention._number, _number(mask), _number(plan), _number(bindings), scale, q_offset, kv_offset
    )
    return (results[0], results[1]) if attention._lse else results[0]


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
    )
    attention, bindings = _prepare_once(score_mod, _number(mask), lse, facts)
    results = torch.ops.tilewright.forward(query, key, value, attention, _number(mask), -1, bindings, scale, 0, 0)
    return (results[0], results[1]) if lse else results[0]


def _prepare_once(score_mod: Any, mask: int, lse: bool, facts: Any) -> Any:
    q, k, v, q_dtype, k_dtype, device = facts
    return prepare(
        score_mod, mask, lse, {"q": q, "k": k, "v": v, "q_dtype": q_dtype, "k_dtype": k_dtype, "device": device}
    )


_prepare_once._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch._dynamo.assume_constant_result
