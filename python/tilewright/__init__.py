"""Attention kernels from two small functions. docs/python.md is the page to read first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from ._attention import Attention, Bindings
    from ._context import ContextParallel, ContextPlan, TorchTransport, context_parallel
    from ._create_mask import and_masks, create_block_mask, or_masks
    from ._error import Error, SourceLocation
    from ._flex import AuxOutput, AuxRequest, flex_attention
    from ._mask import BlockMask
    from ._plan import Plan
    from ._recorder import record
    from ._tools import check, precompile, render
    from ._trace import Snippet, scalar, trace
    from ._varlen import paged_attention, varlen_attention

__all__ = [
    "Attention", "AuxOutput", "AuxRequest", "Bindings", "BlockMask", "ContextParallel", "ContextPlan", "Error", "Plan",
    "Snippet", "SourceLocation", "TorchTransport", "and_masks", "check", "context_parallel", "create_block_mask",
    "flex_attention", "or_masks", "paged_attention", "precompile", "record", "render", "scalar", "trace",
    "varlen_attention",
]  # fmt: skip

# Each name is imported when it is first asked for, so that the package is imported in a few milliseconds.
_HOMES = {
    "_attention": "Attention Bindings",
    "_context": "ContextParallel ContextPlan TorchTransport context_parallel",
    "_create_mask": "and_masks create_block_mask or_masks",
    "_error": "Error SourceLocation",
    "_flex": "AuxOutput AuxRequest flex_attention",
    "_mask": "BlockMask",
    "_plan": "Plan",
    "_recorder": "record",
    "_tools": "check precompile render",
    "_trace": "Snippet scalar trace",
    "_varlen": "paged_attention varlen_attention",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__version__":
        from . import _core

        return _core.version
    for home, names in _HOMES.items():
        if name in names.split():
            value = getattr(importlib.import_module(f".{home}", __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> List[str]:
    return [*__all__, "__version__"]
