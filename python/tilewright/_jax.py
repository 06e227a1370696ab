"""Calls of jax: an XLA custom call, inside jax.jit and outside."""

from __future__ import annotations

import functools
import json
import math
import re
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from . import _core, _recorder
from ._error import Error
from ._mask import BlockMask

_FORWARD, _BACKWARD = "tilewright_forward", "tilewright_backward"
_DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn"}
_registered = False


def _register() -> None:
    global _registered
    if _registered:
        return
    import jax

    for target, run in ((_FORWARD, "forward"), (_BACKWARD, "backward")):
        jax.ffi.register_ffi_target(target, _core.jax_handler("cpu", run), platform="cpu")
        jax.ffi.register_ffi_target(target, _core.jax_handler("cuda", run), platform="CUDA")
    _registered = True


class _Options(NamedTuple):
    """What a call has besides its spec and arrays."""

    scalars: Tuple[float, ...]
    scale: Optional[float]
    offsets: Tuple[int, int]

    def attributes(self) -> Dict[str, Any]:
        import numpy

        return {
            "scale": numpy.float64(math.nan if self.scale is None else self.scale),
            "scalars": numpy.array(self.scalars, dtype=numpy.float64),
            "q_offset": numpy.int64(self.offsets[0]),
            "kv_offset": numpy.int64(self.offsets[1]),
        }


def _call(
    spec: Dict[str, Any],
    arrays: Tuple[Any, Any, Any],
    buffers: Mapping[str, Any],
    scalars: Mapping[str, float],
    scale: Optional[float],
    offsets: Tuple[int, int],
) -> Any:
    _register()
    _recorder.note(spec)
    declared = spec.get("scalars", {})
    values = [float(scalars.get(name, declared[name].get("default", math.nan))) for name in sorted(declared)]
    run = _function(json.dumps(spec), _Options(tuple(values), scale, offsets))
    found = run(*arrays, *(buffers[name] for name in sorted(spec.get("buffers", {}))))
    return found[0] if len(found) == 1 else tuple(found)


def _forward(spec: Dict[str, Any], options: _Options, inputs: Tuple[Any, ...]) -> Any:
    import jax

    q, _, v = inputs[:3]
    heads = 2 if spec.get("layout") == "bshd" else 1
    results = [jax.ShapeDtypeStruct((*q.shape[:-1], v.shape[-1]), _DTYPES[spec.get("out_dtype", spec["dtype"])])]
    if "lse" in spec.get("outputs", ()):
        results.append(jax.ShapeDtypeStruct((q.shape[0], q.shape[heads], q.shape[3 - heads]), "float32"))
    return jax.ffi.ffi_call(_FORWARD, results)(*inputs, spec=json.dumps(spec), **options.attributes())


def _differentiated(spec: Dict[str, Any]) -> Dict[str, Any]:
    """The spec with all gradients that jax may ask for."""
    if "gradients" in spec:
        return spec
    read = set(re.findall(r"\w+", spec.get("score_mod", "")))
    floats = [name for name, b in spec.get("buffers", {}).items() if b["dtype"] in (*_DTYPES, "f64") and name in read]
    return {**spec, "outputs": ["out", "lse"], "gradients": ["q", "k", "v", *floats]}


@functools.lru_cache(maxsize=1024)
def _function(text: str, options: _Options) -> Any:
    """A call of q, k, v and the buffers in the order of their names, which jax can differentiate."""
    import jax

    spec = json.loads(text)
    whole = _differentiated(spec)

    def plain(*inputs: Any) -> Any:
        return tuple(_forward(spec, options, inputs))

    def forward(*inputs: Any) -> Any:
        _core.canonical(json.dumps(whole), "spec")
        out, lse = _forward(whole, options, inputs)
        return (out, lse)[: len(spec.get("outputs", ["out"]))], (inputs, out, lse)

    def backward(saved: Any, cotangents: Any) -> Any:
        inputs, out, lse = saved
        dlse = cotangents[1] if len(cotangents) > 1 else jax.numpy.zeros_like(lse)
        return _backward(whole, options, inputs, (out, lse, cotangents[0], dlse))

    run = jax.custom_vjp(plain)
    run.defvjp(forward, backward)
    return run


def _backward(spec: Dict[str, Any], options: _Options, inputs: Tuple[Any, ...], results: Tuple[Any, ...]) -> Any:
    """A gradient for each input; of those that have none, zeros."""
    import jax
    import numpy

    names = ["q", "k", "v", *sorted(spec.get("buffers", {}))]
    wanted = [name for name in names if name in spec["gradients"]]

    def summed(dtype: Any) -> Any:
        return "float32" if dtype == "float64" else dtype

    shapes = {name: jax.ShapeDtypeStruct(x.shape, summed(x.dtype)) for name, x in zip(names, inputs) if name in wanted}
    of_scalars = [
        jax.ShapeDtypeStruct((1,), "float32") for name in spec.get("scalars", {}) if name in spec["gradients"]
    ]
    call = jax.ffi.ffi_call(_BACKWARD, [*shapes.values(), *of_scalars])
    found = call(*inputs[:3], *results, *inputs[3:], spec=json.dumps(spec), **options.attributes())
    given = dict(zip(wanted, found))

    def zeros(x: Any) -> Any:
        floating = jax.numpy.issubdtype(x.dtype, jax.numpy.floating)
        return jax.numpy.zeros_like(x) if floating else numpy.zeros(x.shape, jax.dtypes.float0)

    return tuple(given[name].astype(x.dtype) if name in given else zeros(x) for name, x in zip(names, inputs))


def call_problem(
    problem: Any, query: Any, key: Any, value: Any, mask: Optional[BlockMask], scale: Optional[float]
) -> Any:
    """flex_attention of jax arrays."""
    if mask is not None and mask._from_lists:
        raise Error(
            "block_mask", "block_mask was made from lists, which calls of jax do not take yet", "use create_block_mask"
        )
    try:
        _core.canonical(json.dumps(problem.spec), "spec")
    except Error as error:
        raise error.renamed({"q": "query", "k": "key", "v": "value"}) from None
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
