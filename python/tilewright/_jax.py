"""Calls of jax: an XLA custom call, inside jax.jit and outside."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Mapping, Optional, Tuple

from . import _core, _recorder
from ._error import Error
from ._mask import BlockMask

_TARGET = "tilewright_forward"
_registered = False


def _register() -> None:
    global _registered
    if _registered:
        return
    import jax

    jax.ffi.register_ffi_target(_TARGET, _core.jax_handler("cpu", "forward"), platform="cpu")
    jax.ffi.register_ffi_target(_TARGET, _core.jax_handler("cuda", "forward"), platform="CUDA")
    _registered = True


def _call(
    spec: Dict[str, Any],
    arrays: Tuple[Any, Any, Any],
    buffers: Mapping[str, Any],
    scalars: Mapping[str, float],
    scale: Optional[float],
    offsets: Tuple[int, int],
) -> Any:
    import jax
    import numpy

    _register()
    _recorder.note(spec)
    q, _, v = arrays
    dtypes = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
    heads = 2 if spec.get("layout") == "bshd" else 1
    results = [jax.ShapeDtypeStruct((*q.shape[:-1], v.shape[-1]), dtypes[spec.get("out_dtype", spec["dtype"])])]
    if "lse" in spec.get("outputs", ()):
        results.append(jax.ShapeDtypeStruct((q.shape[0], q.shape[heads], q.shape[3 - heads]), "float32"))
    declared = spec.get("scalars", {})
    values = [float(scalars.get(name, declared[name].get("default", math.nan))) for name in sorted(declared)]
    call = jax.ffi.ffi_call(_TARGET, results)
    found = call(
        *arrays,
        *(buffers[name] for name in sorted(spec.get("buffers", {}))),
        spec=json.dumps(spec),
        scale=numpy.float64(math.nan if scale is None else scale),
        scalars=numpy.array(values, dtype=numpy.float64),
        q_offset=numpy.int64(offsets[0]),
        kv_offset=numpy.int64(offsets[1]),
    )
    return found[0] if len(found) == 1 else tuple(found)


def call_problem(
    problem: Any, query: Any, key: Any, value: Any, mask: Optional[BlockMask], scale: Optional[float]
) -> Any:
    """flex_attention of jax arrays."""
    if mask is not None and mask._from_lists:
        raise Error(
            "block_mask", "block_mask was made from lists, which calls of jax do not take yet", "use create_block_mask"
        )
    _core.canonical(json.dumps(problem.spec), "spec")
    return _call(problem.spec, (query, key, value), problem.buffers, problem.scalars, scale, (0, 0))


def forward(
    attention: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Optional[BlockMask],
    bindings: Any,
    scale: Optional[float],
    q_offset: int,
    kv_offset: int,
) -> Any:
    """Attention.forward of jax arrays. The mask is made anew from mask_mod, in the compiled program."""
    if mask is not None and mask._from_lists:
        raise Error("block_mask", "mask was made from lists, which calls of jax do not take yet", "leave it out")
    if attention._packed:
        raise Error("usage", "packed calls take no jax arrays yet", "pass numpy.asarray(q), ...")
    arrays = {} if bindings is None else bindings.arrays
    scalars = {} if bindings is None else bindings.scalars
    return _call(attention._spec, (q, k, v), arrays, scalars, scale, (q_offset, kv_offset))
