"""create_block_mask, and_masks, or_masks, and masks from lists."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _core
from ._arguments import block_size, mapping, require_read, scalars_of, whole, whole_pair
from ._arrays import device_of, framework, readable, require_array, shape_of, stream_of
from ._error import Error
from ._mask import BlockMask
from ._names import arrays_by_name, require_known
from ._trace import Snippet, trace_mod
from ._trace.verbatim import verbatim


def create_block_mask(
    mask_mod: Any,
    B: Optional[int],
    H: Optional[int],
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: Any = 128,
    *,
    buffers: Optional[Mapping[str, Any]] = None,
    scalars: Optional[Mapping[str, float]] = None,
    **ignored: Any,
) -> BlockMask:
    """Which tiles mask_mod(b, h, q_idx, kv_idx) keeps something of. B or H None: one list for all.

    mask_mod: a Python function, or C++ as a string with the arrays that it reads in `buffers`."""
    batch, heads = whole("B", 1 if B is None else B), whole("H", 1 if H is None else H)
    size = (batch, heads, whole("Q_LEN", Q_LEN), whole("KV_LEN", KV_LEN))
    for name in ignored:
        if name not in ("_compile", "separate_full_blocks", "compute_dq_write_order", "dq_kv_order"):
            raise Error("usage", f"create_block_mask has no argument {name}", "its arguments are FlexAttention's")
    mask = BlockMask(_build, size, block_size(BLOCK_SIZE), mask_mod)
    _trace_mask(mask, mapping("buffers", buffers))
    mask._scalars = scalars_of(scalars)
    require_known(mask._scalars, mask._snippet.scalars)
    _place(mask, device)
    return mask


def _sizes(mask: BlockMask) -> Dict[str, int]:
    return dict(zip(("batch", "num_q_heads", "q_len", "kv_len"), mask._size))


def _trace_mask(mask: BlockMask, buffers: Optional[Mapping[str, Any]]) -> None:
    parts = getattr(mask.mask_mod, "mods", ())
    named = arrays_by_name(*(getattr(part, "buffers", {}) for part in parts), buffers or {})
    snippet = trace_mod(mask.mask_mod, "mask", _sizes(mask), named)
    arrays = arrays_by_name(snippet.buffers, named)
    require_read(named, (snippet.code,))
    mask._snippet = Snippet(snippet.code, arrays, snippet.scalars, snippet._indices)


def _place(mask: BlockMask, device: Any) -> None:
    """The device and framework that the call names; else the captured arrays say them."""
    arrays = list(mask._snippet.buffers.values())
    library = type(device).__module__.partition(".")[0]
    if device is not None and not isinstance(device, str) and library not in ("torch", "jax", "jaxlib"):
        raise Error("usage", f"device is a {type(device).__name__}", 'pass a name: "cpu", "cuda:0"')
    named = "" if device is None else str(device)
    places = {device_of(array) for array in arrays}
    mask._device = next(iter(places)) if len(places) == 1 else named or "cpu"
    kinds = {framework(array) for array in arrays}
    if "torch" in kinds or type(device).__module__.startswith("torch"):
        mask._framework = "torch"


def mask_spec(mask: BlockMask) -> Dict[str, Any]:
    """The part of a spec that decides tiles."""
    snippet = mask._snippet
    spec: Dict[str, Any] = {"mask_mod": snippet.code, "block": list(mask.BLOCK_SIZE)}
    if snippet.buffers:
        spec["buffers"] = snippet.declarations(_sizes(mask))
    if snippet.scalars:
        spec["scalars"] = snippet.scalar_declarations()
    return spec


_MOST_MAKERS = 256
_lock = threading.Lock()
_makers: Dict[Tuple[str, str], _core.Attention] = {}


def _maker(mask: BlockMask) -> Tuple[_core.Attention, _core.Bindings]:
    import json

    spec = json.dumps({"dtype": "f32", "head_dim": 16, **mask_spec(mask)})
    key = (spec, mask._device)
    maker = _makers.get(key)
    if maker is None:
        maker = _core.Attention(spec, "spec", mask._device, masks_only=True)
        with _lock:
            maker = _makers.setdefault(key, maker)
            if len(_makers) > _MOST_MAKERS:
                del _makers[next(iter(_makers))]
    buffers = {name: readable(array) for name, array in mask._snippet.buffers.items()}
    return maker, maker.bind(buffers, mask._scalars)


def _build(mask: BlockMask) -> _core.BlockMask:
    attention, bindings = _maker(mask)
    B, H, q_len, kv_len = mask._size
    return attention.block_mask(B, H, H, q_len, kv_len, 0, 0, bindings, None, _stream(mask))


def _stream(mask: BlockMask) -> int:
    return next((stream_of(array) for array in mask._snippet.buffers.values()), 0)


def mask_from_lists(lists: Any, block: Any, mask_mod: Any, lengths: Optional[Tuple[int, int]]) -> BlockMask:
    import numpy

    sides = block_size(block)
    on_host = _lists_on_host(lists)
    B, H, rows = on_host[0].shape
    columns = on_host[1].shape[-1]
    q_len, kv_len = (rows * sides[0], columns * sides[1]) if lengths is None else whole_pair("seq_lengths", lengths)

    def build(mask: BlockMask) -> _core.BlockMask:
        attention, bindings = _maker(mask)
        arrays = [None if array is None else numpy.ascontiguousarray(array) for array in on_host]
        return attention.mask_from_flex(B, H, H, q_len, kv_len, bindings, *arrays)

    mask = BlockMask(build, (B, H, q_len, kv_len), sides, mask_mod)
    mask._snippet = Snippet("true", {}, {}) if mask_mod is None else None
    if mask_mod is not None:
        _trace_mask(mask, None)
    _place(mask, None)
    mask._framework = framework(lists[0]) or "numpy"
    if mask._framework == "torch":
        mask._device = device_of(lists[0])
    mask._from_lists = True
    mask._core_mask()
    return mask


_LISTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")


def _lists_on_host(lists: Any) -> List[Any]:
    """kv_num_blocks [B, H, rows] and kv_indices [B, H, rows, columns], both without [B, H] too; then the full ones."""
    for name, array in zip(_LISTS, lists):
        if array is None and name.startswith("full"):
            continue
        require_array(name, array)
    ranks = [None if array is None else len(array.shape) for array in lists]
    for name, array, rank in zip(_LISTS, lists, ranks):
        wanted = (3 if ranks[0] != 1 else 1) + name.endswith("indices")
        if rank is not None and rank != wanted:
            shape = "[rows" if wanted < 3 else "[B, H, rows"
            raise Error(
                "tensor",
                f"{name} has {rank} dimensions: {list(shape_of(array))}",
                f"pass {shape}{', columns' if name.endswith('indices') else ''}]",
            )
    found = [None if array is None else _host(array) for array in lists]
    return found if ranks[0] != 1 else [None if array is None else array[None, None] for array in found]


def _host(array: Any) -> Any:
    import numpy

    return numpy.asarray(array.cpu() if framework(array) == "torch" else array)


def _combined(name: str, mods: Tuple[Any, ...]) -> Callable[..., Any]:
    if not mods:
        raise Error("usage", f"{name} needs at least one mask_mod", f"{name}(causal, documents)")
    for mod in mods:
        if not callable(mod) and not isinstance(mod, (str, Snippet)):
            raise Error("usage", f"{name} got a {type(mod).__name__}", "pass Python functions, or C++ as strings")
        if isinstance(mod, (str, Snippet)):
            verbatim(mod, "bool")
    return _Combined(name, mods)


class _Combined:
    """The mods of and_masks or or_masks; a mask_mod itself."""

    def __init__(self, name: str, mods: Tuple[Any, ...]) -> None:
        self.name, self.mods = name, mods

    def __call__(self, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        results: List[Any] = [
            verbatim(mod, "bool") if isinstance(mod, (str, Snippet)) else mod(b, h, q_idx, kv_idx) for mod in self.mods
        ]
        total = results[0]
        for result in results[1:]:
            total = total & result if self.name == "and_masks" else total | result
        return total


def and_masks(*mask_mods: Any) -> Callable[..., Any]:
    """A mask_mod that keeps what every one keeps: Python functions or C++ strings."""
    return _combined("and_masks", mask_mods)


def or_masks(*mask_mods: Any) -> Callable[..., Any]:
    """A mask_mod that keeps what at least one keeps."""
    return _combined("or_masks", mask_mods)


__all__ = ["and_masks", "create_block_mask", "mask_from_lists", "mask_spec", "or_masks", "shape_of"]
