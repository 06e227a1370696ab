"""flex_attention: FlexAttention's call, for numpy, torch and jax arrays."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import _attention, _calls, _core
from ._arguments import flag, mapping, real, require_read, scalars_of
from ._arrays import device_of, readable, shape_of, float_dtype, stream_of
from ._cache import attention_for
from ._checks import check_arrays, check_dense
from ._create_mask import mask_spec
from ._error import Error
from ._mask import BlockMask
from ._names import arrays_by_name, require_known, scalars_by_name
from ._trace import Snippet, trace_mod

_attention.load_torch_op()
_NAMES = ("query", "key", "value")
_OF_FORWARD = {"q": "query", "k": "key", "v": "value"}


class AuxRequest(NamedTuple):
    """What return_aux asks for."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    lse: Any = None
    max_scores: Any = None


class Problem(NamedTuple):
    """A call, ready for an attention."""

    spec: Dict[str, Any]
    buffers: Dict[str, Any]
    scalars: Dict[str, Any]
    device: str


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Any = None,
    block_mask: Any = None,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Optional[Mapping[str, Any]] = None,
    *,
    return_aux: Any = None,
    buffers: Optional[Mapping[str, Any]] = None,
    scalars: Optional[Mapping[str, float]] = None,
) -> Any:
    """softmax(mask(score_mod(query key^T * scale))) value: out, (out, lse) with return_lse, or (out, AuxOutput).

    query [B, HQ, L, E], key [B or 1, HKV, S, E], value [B or 1, HKV, S, EV]; the result is of their framework.
    score_mod(score, b, h, q_idx, kv_idx): a Python function, or C++ as a string that reads `buffers`. block_mask: of
    create_block_mask, here or torch's. scalars: values of tw.scalar()s. kernel_options is accepted and not needed.
    """
    key_of_call = None
    if return_aux is None and buffers is None and scalars is None and _may_be_ready(block_mask, query, key, value):
        if kernel_options is not None:
            mapping("kernel_options", kernel_options)
        options = (enable_gqa, type(enable_gqa), return_lse, type(return_lse), type(scale))
        try:
            key_of_call = _calls.key_of(query, key, value, score_mod, block_mask, options)
            result = _calls.run(key_of_call, query, key, value, score_mod, scale)
        except Error as error:
            raise error.renamed(_OF_FORWARD) from None
        except (AttributeError, TypeError):  # no arrays, or arguments of a kind that is refused below
            key_of_call = None
        else:
            if not _calls.is_miss(result):
                return result
    lse, max_scores = _wanted(return_lse, return_aux)
    scale = real("scale", scale)
    if _attention._torch is not None and _attention._torch.is_compiling():
        if max_scores:
            raise _no_max_scores("inside torch.compile")
        if buffers is not None or scalars is not None:
            raise Error("usage", "torch.compile takes no buffers= or scalars=", "capture the arrays in the mod")
        found = _attention._torch.compiled_flex(query, key, value, score_mod, block_mask, scale, lse)
        return found if return_aux is None else (found[0], AuxOutput(found[1])) if lse else (found, AuxOutput())
    kind = check_arrays(_NAMES, (query, key, value), 4, may_want_gradients=True)
    if kernel_options is not None:
        mapping("kernel_options", kernel_options)
    check_dense(_NAMES, (query, key, value), flag("enable_gqa", enable_gqa))
    mask = _block_mask(block_mask)
    if mask is not None:
        mask.require_lengths(query.shape[2], key.shape[2])
        mask.require_lists(query.shape[0], query.shape[1])
        mask = mask._for_batch_and_heads(query.shape[0], query.shape[1])
    if kind == "torch":
        _attention.load_torch_op()  # torch may have come after this module
    traced: List[Any] = []
    problem = describe(query, key, value, score_mod, mask, lse, buffers, scalars, traced, max_scores)
    if kind == "jax":
        if max_scores:
            raise _no_max_scores("of jax arrays")
        from . import _jax

        result = _jax.call_problem(problem, query, key, value, mask, scale)
    else:
        problem, differentiated = with_gradients(problem, kind, (query, key, value), scalars)
        if differentiated and max_scores:
            raise _no_max_scores("of tensors that require gradients")
        attention = attention_for(problem.spec, problem.device, _OF_FORWARD, gains_from_decode(query, key, problem.device))
        bindings = attention.bind(**problem.buffers, **problem.scalars) if problem.buffers or problem.scalars else None
        if mask is not None:
            heads = (query.shape[0], query.shape[1], key.shape[1])
            mask._build_with(attention, heads, bindings, stream_of(query))
        try:
            result = attention.forward(query, key, value, mask=mask, bindings=bindings, scale=scale)
        except Error as error:
            raise error.renamed(_OF_FORWARD) from None
        if differentiated:
            result = result if lse else result[0]
        elif key_of_call is not None and None not in traced:
            names = list(problem.buffers)
            _calls.keep(
                key_of_call, _calls.Call(attention, traced[0] if traced else None, mask, names, problem.scalars)
            )
    if return_aux is None:
        return result
    if not lse and not max_scores:
        return result, AuxOutput()
    return result[0], AuxOutput(lse=result[1] if lse else None, max_scores=result[-1] if max_scores else None)


def has_few_rows(query: Any, key: Any) -> bool:
    """Whether the library's kernels for few rows of q serve a call of these sizes."""
    heads, rows, kv_heads = query.shape[1], query.shape[2], key.shape[1]
    if not all(type(size) is int and size > 0 for size in (heads, rows, kv_heads)):
        return False  # a size that torch.compile leaves open
    return _core.fits_decode_rows(rows, heads, kv_heads)


def gains_from_decode(query: Any, key: Any, device: str) -> bool:
    """Whether decode=True serves a call of these sizes: few rows of q, or q tiles too few for a Hopper GPU."""
    if has_few_rows(query, key):
        return True
    sizes = (*query.shape[:3], key.shape[2])
    if device == "cpu" or not all(type(size) is int and size > 0 for size in sizes):
        return False
    return _has_few_q_tiles(*sizes, device)


@lru_cache(maxsize=4096)
def _has_few_q_tiles(batch: int, heads: int, rows: int, columns: int, device: str) -> bool:
    return _core.has_few_q_tiles(batch, heads, rows, columns, device)


def with_gradients(
    problem: Problem, kind: str, arrays: Tuple[Any, Any, Any], scalars: Optional[Mapping[str, Any]]
) -> Tuple[Problem, bool]:
    """The problem with the gradients that torch wants in its spec, and whether there are any."""
    if kind != "torch" or _attention._torch is None:
        return problem, False
    wants = _attention._torch.wants_gradients
    words = set(re.findall(r"\w+", problem.spec.get("score_mod", "")))
    given = {name: value for name, value in (scalars or {}).items() if name in problem.spec.get("scalars", {})}
    names = [name for name, array in (*problem.buffers.items(), *given.items()) if name in words and wants(array)]
    if not names and not wants(*arrays):
        detached = {name: array.detach() if wants(array) else array for name, array in problem.buffers.items()}
        return problem._replace(buffers=detached), False
    inputs = ["q", "k", "v"] if wants(*arrays) else []
    spec = {**problem.spec, "outputs": ["out", "lse"], "gradients": inputs + names}
    buffers = {name: x if name in names or not wants(x) else x.detach() for name, x in problem.buffers.items()}
    values = {**problem.scalars, **{name: x for name, x in given.items() if name in names}}
    return problem._replace(spec=spec, buffers=buffers, scalars=values), True


def _may_be_ready(block_mask: Any, *arrays: Any) -> bool:
    """Whether the call may be one of those that are kept: with tensors of torch outside of graphs and gradients."""
    if block_mask is not None and type(block_mask) is not BlockMask:
        return False
    torch = _attention._torch
    if torch is None:
        return True
    if torch.is_compiling():
        return False
    return not torch.wants_gradients(*arrays)


def _no_max_scores(where: str) -> Error:
    return Error("usage", f"return_aux.max_scores is not there yet {where}", "ask for lse alone")


def _wanted(return_lse: bool, return_aux: Any) -> Tuple[bool, bool]:
    """Whether lse and max_scores are asked for."""
    flag("return_lse", return_lse)
    if return_aux is None:
        return bool(return_lse), False
    if return_lse:
        raise Error("usage", "return_lse and return_aux are both given", "pass return_aux=AuxRequest(lse=True)")
    if not hasattr(return_aux, "lse"):
        raise Error("usage", f"return_aux is {return_aux!r}", "pass tw.AuxRequest(lse=True)")
    return bool(return_aux.lse), bool(getattr(return_aux, "max_scores", False))


def _block_mask(block_mask: Any) -> Optional[BlockMask]:
    if block_mask is None:
        return None
    if isinstance(block_mask, BlockMask):
        if block_mask._snippet is None:
            raise Error(
                "block_mask",
                "block_mask was made by Attention.block_mask",
                "pass it to that Attention's forward, or use create_block_mask",
            )
        return block_mask
    if not hasattr(block_mask, "kv_num_blocks"):
        raise Error("usage", f"block_mask is a {type(block_mask).__name__}", "pass what create_block_mask returns")
    lists = (block_mask.kv_num_blocks, block_mask.kv_indices, block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return BlockMask.from_kv_blocks(
        *lists, BLOCK_SIZE=block_mask.BLOCK_SIZE, mask_mod=block_mask.mask_mod, seq_lengths=block_mask.seq_lengths
    )


class _Like(NamedTuple):
    """What describe() asks of an array that only a graph has."""

    shape: Any
    dtype: str
    device: str


def ready(score_mod: Any, mask: Optional[BlockMask], lse: bool, facts: Mapping[str, Any]) -> Any:
    """The attention and bindings of a call that torch.compile traces."""
    q, k, v = (
        _Like(facts[name], facts[dtype], facts["device"])
        for name, dtype in (("q", "q_dtype"), ("k", "k_dtype"), ("v", "k_dtype"))
    )
    check_dense(_NAMES, (q, k, v), True)
    if mask is not None:
        mask.require_lengths(q.shape[2], k.shape[2])
    problem = describe(q, k, v, score_mod, mask, lse, None, None)
    for name, array in problem.buffers.items():
        if _attention._torch.wants_gradients(array):
            raise Error(
                "tensor",
                f"{name} requires gradients, but torch.compile takes those of query, key and value alone",
                f"call outside of torch.compile, or capture {name}.detach()",
            )
    if facts["differentiated"]:
        problem = problem._replace(spec={**problem.spec, "outputs": ["out", "lse"], "gradients": ["q", "k", "v"]})
    attention = attention_for(problem.spec, facts["device"], _OF_FORWARD, gains_from_decode(q, k, facts["device"]))
    bound = attention.bind(**problem.buffers, **problem.scalars) if problem.buffers or problem.scalars else None
    return attention, bound


def describe(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Any,
    mask: Optional[BlockMask],
    lse: bool,
    buffers: Optional[Mapping[str, Any]],
    scalars: Optional[Mapping[str, float]],
    traced: Optional[List[Any]] = None,
    max_scores: bool = False,
) -> Problem:
    """The spec of a call, and what its snippets read. traced: takes the trace of score_mod, None of one that holds once."""
    B, H, L, E = shape_of(query)
    spec: Dict[str, Any] = {"dtype": float_dtype(query, "query"), "head_dim": E}
    if value.shape[3] != E:
        spec["v_head_dim"] = int(value.shape[3])
    if key.dtype != query.dtype:
        spec["kv_dtype"] = float_dtype(key, "key")
    if lse or max_scores:
        spec["outputs"] = ["out", *(["lse"] if lse else []), *(["max_scores"] if max_scores else [])]
    arrays: Dict[str, Any] = {}
    values, buffers = scalars_of(scalars), mapping("buffers", buffers)
    if mask is not None:
        spec.update(mask_spec(mask))
        arrays.update(mask._snippet.buffers)
        values = {**mask._scalars, **values}
    if score_mod is not None:
        sizes = {"batch": B, "num_q_heads": H, "q_len": L, "kv_len": int(key.shape[2])}
        snippet = trace_mod(score_mod, "score", sizes, arrays_by_name(arrays, buffers or {}))
        if traced is not None and type(score_mod) is not str:
            traced.append(snippet._traced)
        _add_score(spec, arrays, snippet, sizes, buffers)
    require_read(buffers, (spec.get("score_mod", ""), spec.get("mask_mod", "")))
    require_known(scalars or {}, spec.get("scalars", {}))
    read = {name: readable(array) for name, array in arrays.items()}
    return Problem(spec, read, {n: x for n, x in values.items() if n in spec.get("scalars", {})}, device_of(query))


def _add_score(
    spec: Dict[str, Any],
    arrays: Dict[str, Any],
    snippet: Snippet,
    sizes: Mapping[str, int],
    buffers: Optional[Mapping[str, Any]],
) -> None:
    whole = Snippet(snippet.code, arrays_by_name(snippet.buffers, buffers or {}), snippet.scalars, snippet._indices)
    spec["score_mod"] = whole.code
    declared = {name: d for name, d in whole.declarations(sizes).items() if name not in arrays}
    if declared:
        spec["buffers"] = {**spec.get("buffers", {}), **declared}
    if whole.scalars:
        spec["scalars"] = scalars_by_name(spec.get("scalars", {}), whole.scalar_declarations())
    arrays.update(arrays_by_name(arrays, whole.buffers))


__all__ = ["AuxOutput", "AuxRequest", "describe", "flex_attention"]
