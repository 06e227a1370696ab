"""varlen_attention and paged_attention: sequences of different lengths in one call."""

from __future__ import annotations

import warnings
from typing import Any, Dict, Mapping, Optional, Tuple

from ._arguments import flag, mapping, real, require_module, require_read, scalars_of
from ._arrays import device_of, framework, readable, shape_of, float_dtype, stored_dtype
from ._attention import Attention
from ._cache import attention_for
from ._checks import check_arrays, same_place
from ._error import Error
from ._factors import factors_of
from ._names import arrays_by_name, require_known, scalars_by_name
from ._plan import Plan
from ._trace import Snippet, trace_mod


_OF_POOLS = {"k": "k_pool", "v": "v_pool"}


def _indices(name: str, value: Any, like: Any) -> Any:
    """int32 on the device of `like`: what plans read. An int32 array is taken as it is; others are copied."""
    if value is None:
        return None
    if framework(like) == "torch":
        import torch

        if not isinstance(value, torch.Tensor):
            return torch.as_tensor(_int32(name, value), device=like.device)
        if value.device != like.device:
            raise Error("tensor", f"{name} lies on {value.device}", f"move it to {like.device}")
        if value.dtype == torch.int32:
            return value.contiguous()
        if value.device.type == "cpu":
            return torch.as_tensor(_int32(name, value.numpy()))
        if value.dtype != torch.int64:
            raise Error("tensor", f"{name} has dtype {value.dtype}", "pass int32 or int64")
        return value.to(torch.int32).contiguous()  # numbers of more bits would need a wait to be found
    return _int32(name, value)


def _int32(name: str, value: Any) -> Any:
    numpy = require_module("numpy")
    try:
        array = numpy.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise Error("tensor", f"{name} is not an array of numbers", "pass whole numbers: int32 or int64") from None
    if array.size == 0:
        return numpy.ascontiguousarray(array, dtype=numpy.int32)
    if array.dtype.kind not in "iu":
        raise Error("tensor", f"{name} has dtype {array.dtype}", "pass whole numbers: int32 or int64")
    limits = numpy.iinfo(numpy.int32)
    for number in (array.min(), array.max()):
        if not limits.min <= int(number) <= limits.max:
            raise Error("tensor", f"{name} holds {int(number)}", "pass numbers of at most 32 bits")
    return numpy.ascontiguousarray(array, dtype=numpy.int32)


def _snippets(
    score_mod: Any,
    mask_mod: Any,
    buffers: Optional[Mapping[str, Any]],
    sizes: Mapping[str, int],
    factors: Optional[Mapping[str, Snippet]] = None,
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The spec's keys of both mods and of `factors`, and the arrays that they read."""
    spec: Dict[str, Any] = {}
    given = dict(mapping("buffers", buffers))
    arrays: Dict[str, Any] = dict(given)
    for key, mod in (("mask_mod", mask_mod), ("score_mod", score_mod)):
        if mod is None:
            continue
        snippet = trace_mod(mod, key[:-4], sizes, arrays)
        spec[key] = snippet.code
        new = {name: d for name, d in snippet.declarations(sizes).items() if name not in arrays}
        spec.setdefault("buffers", {}).update(new)
        spec["scalars"] = scalars_by_name(spec.get("scalars", {}), snippet.scalar_declarations())
        arrays = arrays_by_name(arrays, snippet.buffers)
    for key, snippet in (factors or {}).items():
        spec[key] = snippet.code
        spec.setdefault("buffers", {}).update(snippet.declarations(sizes))
        arrays = arrays_by_name(arrays, snippet.buffers)
    require_read(given, [text for text in spec.values() if isinstance(text, str)])
    spec.setdefault("buffers", {}).update(Snippet("", given, {}).declarations(sizes))
    return {key: value for key, value in spec.items() if value}, arrays


def _attention(
    q: Any, k: Any, v: Any, paged: bool, mods: Dict[str, Any], return_lse: bool, more: Mapping[str, Any]
) -> Attention:
    spec: Dict[str, Any] = {
        "dtype": float_dtype(q, "q"),
        "head_dim": int(q.shape[-1]),
        "layout": "packed",
        **mods,
        **more,
    }
    is_x = paged and len(k.shape) == 5
    v_head_dim = v.shape[2 if is_x else -1]
    if v_head_dim != q.shape[-1]:
        spec["v_head_dim"] = int(v_head_dim)
    if k.dtype != q.dtype:
        spec["kv_dtype"] = stored_dtype(k, "k")
    if paged:
        spec["kv_layout"] = "paged_x" if is_x else "paged"
    if flag("return_lse", return_lse):
        spec["outputs"] = ["out", "lse"]
    return attention_for(spec, device_of(q), _OF_POOLS if paged else {})


def _bind(attention: Attention, arrays: Dict[str, Any], scalars: Optional[Mapping[str, float]]) -> Any:
    values = scalars_of(scalars)
    require_known(values, attention._spec.get("scalars", {}))
    if not arrays and not values:
        return None
    return attention.bind(**{name: readable(array) for name, array in arrays.items()}, **values)


def _batch(q_begin: Any) -> int:
    """The number of sequences."""
    if q_begin is None or len(q_begin.shape) != 1 or q_begin.shape[0] < 1:
        shown = "None" if q_begin is None else f"of shape {list(shape_of(q_begin))}"
        raise Error(
            "tensor", f"q_begin is {shown}", "pass the first row of each sequence, and the number of rows: [batch + 1]"
        )
    return shape_of(q_begin)[0] - 1


def _say_what_was_clamped(attention: Attention, plan: Plan) -> None:
    """On a CPU, where it costs no wait."""
    text = plan.report() if attention.device == "cpu" else ""
    if text:
        warnings.warn(f"tilewright: {text}", RuntimeWarning, stacklevel=3)


def varlen_attention(
    q: Any,
    k: Any,
    v: Any,
    q_begin: Any,
    kv_begin: Any,
    *,
    kv_len: Any = None,
    score_mod: Any = None,
    mask_mod: Any = None,
    scale: Optional[float] = None,
    return_lse: bool = False,
    plan: Optional[Plan] = None,
    buffers: Optional[Mapping[str, Any]] = None,
    scalars: Optional[Mapping[str, float]] = None,
    out: Any = None,
) -> Any:
    """Attention of packed sequences: out [total_q, HQ, DV], or (out, lse [HQ, total_q]).

    q [total_q, HQ, D], k and v [total_kv, HKV, D and DV]; rows q_begin[b] .. q_begin[b + 1] of q belong to sequence b,
    kv_begin likewise (or [batch] with kv_len). The last row of q and the last column have the same position. out: written
    in place of a new array, which rows of no sequence then keep.
    """
    scale = real("scale", scale)
    kind = check_arrays(("q", "k", "v"), (q, k, v), 3)
    _require_plan(plan)
    if kind == "jax":
        raise Error("usage", "varlen_attention takes no jax arrays yet", "pass numpy.asarray(q), ...")
    q_begin, kv_begin, kv_len = (
        _indices(n, x, q) for n, x in (("q_begin", q_begin), ("kv_begin", kv_begin), ("kv_len", kv_len))
    )
    sizes = {"batch": _batch(q_begin), "num_q_heads": int(q.shape[1])}
    _require_batch(plan, sizes["batch"])
    mods, arrays = _snippets(score_mod, mask_mod, buffers, sizes)
    attention = _attention(q, k, v, False, mods, return_lse, {})
    bindings = _bind(attention, arrays, scalars)
    if plan is None:
        plan = attention.plan(
            q_begin, kv_len, num_q_heads=q.shape[1], num_kv_heads=k.shape[1], total_q=q.shape[0],
            kv_begin=kv_begin, total_kv=k.shape[0], bindings=bindings,
        )  # fmt: skip
        _say_what_was_clamped(attention, plan)
    return attention.forward(q, k, v, out=out, plan=plan, bindings=bindings, scale=scale)


def _require_plan(plan: Any) -> None:
    if plan is not None and not isinstance(plan, Plan):
        raise Error("usage", f"plan is a {type(plan).__name__}", "pass what attention.plan(...) returns")


def _require_batch(plan: Optional[Plan], batch: int) -> None:
    if plan is not None and plan.batch != batch:
        raise Error("usage", f"plan was made for {plan.batch} sequences, but q_begin has {batch}", "plan this call")


def paged_attention(
    q: Any,
    k_pool: Any,
    v_pool: Any,
    q_begin: Any,
    kv_len: Any,
    page_table: Any,
    *,
    page_begin: Any = None,
    k_new: Any = None,
    v_new: Any = None,
    score_mod: Any = None,
    mask_mod: Any = None,
    sink: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    scale: Optional[float] = None,
    return_lse: bool = False,
    plan: Optional[Plan] = None,
    buffers: Optional[Mapping[str, Any]] = None,
    scalars: Optional[Mapping[str, float]] = None,
    out: Any = None,
) -> Any:
    """Attention of packed queries over K and V in pages (docs/paged.md): out [total_q, HQ, DV], or (out, lse).

    q [total_q, HQ, D], k_pool and v_pool [pages, page_size, HKV, D and DV], or as kv_layout "paged_x" has them, with
    x elements of 16 bytes: [pages, HKV, D / x, page_size, x] and [pages, HKV, DV, page_size]; kv_len [batch]: columns of each sequence,
    whose rows lie in the pages page_table[b]; with k_new and v_new [total_q, HKV, D and DV] its last columns lie there.
    sink: one more logit of each row, k_scale and v_scale: what stored values are multiplied by; each a number, an array
    by head, of a scale also [HKV, pages * page_size] by head and slot, or C++ as a string that reads `buffers`.
    """
    scale = real("scale", scale)
    is_x = len(getattr(k_pool, "shape", ())) == 5
    kind = check_arrays(("k_pool", "v_pool", "v_pool"), (k_pool, v_pool, v_pool), 4, first_rank=5 if is_x else None)
    check_arrays(("q", "q", "q"), (q, q, q), 3)
    same_place(q=q, k_pool=k_pool)
    _require_plan(plan)
    if kind == "jax":
        raise Error("usage", "paged_attention takes no jax arrays yet", "pass numpy.asarray(q), ...")
    if page_table is None:
        raise Error(
            "tensor", "page_table is None", "pass the pages of each sequence: [batch, pages], or flat with page_begin"
        )
    q_begin, kv_len, page_table, page_begin = (
        _indices(name, value, q)
        for name, value in (
            ("q_begin", q_begin),
            ("kv_len", kv_len),
            ("page_table", page_table),
            ("page_begin", page_begin),
        )
    )
    pages, page_size, heads = (shape_of(k_pool)[i] for i in ((0, 3, 1) if is_x else (0, 1, 2)))
    sizes = {"batch": _batch(q_begin), "num_q_heads": int(q.shape[1]), "num_kv_heads": heads}
    _require_batch(plan, sizes["batch"])
    factors = factors_of({"sink": sink, "k_scale": k_scale, "v_scale": v_scale}, sizes, pages * page_size)
    mods, arrays = _snippets(score_mod, mask_mod, buffers, sizes, factors)
    if (k_new is None) != (v_new is None):
        raise Error("usage", "only one of k_new and v_new is given", "pass both, or neither")
    new_rows = {} if k_new is None else {"kv_new": True}
    attention = _attention(q, k_pool, v_pool, True, mods, return_lse, new_rows)
    bindings = _bind(attention, arrays, scalars)
    if plan is None:
        plan = attention.plan(
            q_begin, kv_len, num_q_heads=q.shape[1], num_kv_heads=heads, total_q=q.shape[0],
            page_table=page_table, page_begin=page_begin, page_size=page_size, pages=pages, bindings=bindings,
        )  # fmt: skip
        _say_what_was_clamped(attention, plan)
    try:
        return attention.forward(
            q, k_pool, v_pool, out=out, plan=plan, bindings=bindings, scale=scale, k_new=k_new, v_new=v_new
        )
    except Error as error:
        raise error.renamed(_OF_POOLS) from None
