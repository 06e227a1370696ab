"""check, render and precompile: the command line's verbs."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Sequence, Union

from . import _core
from ._arguments import real, scalars_of
from ._arrays import framework, readable, require_array
from ._error import Error
from ._spec import SpecLike, spec_text


def check(
    spec: SpecLike, q: Any, k: Any, v: Any, *, device: str = "auto", scale: Optional[float] = None, **buffers: Any
) -> Dict[str, Any]:
    """Runs a dense spec on q, k, v and compares with double precision by the fixed rule (docs/verification.md).

    buffers: arrays and scalars by name. Returns the keys of `tilewright check --json`; "ok" is the verdict. Raises only
    where nothing could be checked."""
    text, file = spec_text(spec)
    known = json.loads(_core.canonical(text, file)).get("scalars", {})
    is_number = {name: name in known or isinstance(x, (bool, int, float)) for name, x in buffers.items()}
    numbers = scalars_of({name: x for name, x in buffers.items() if is_number[name]})
    arrays = {name: _host(name, x) for name, x in buffers.items() if not is_number[name]}
    q, k, v = (_host(name, x) for name, x in (("q", q), ("k", k), ("v", v)))
    report = _core.check(text, file, q, k, v, arrays, numbers, str(device), real("scale", scale))
    return json.loads(report)  # type: ignore[no-any-return]


def _host(name: str, array: Any) -> Any:
    require_array(name, array)
    return array.detach().cpu() if framework(array) == "torch" else readable(array)


def render(spec: SpecLike, target: Optional[str] = None) -> str:
    """The source of the forward kernel: C++ for "cpu" (None: this machine's), CUDA C++ for "sm_90a", ..."""
    text, file = spec_text(spec)
    if target is not None and not isinstance(target, str):
        raise Error("usage", f"target is {target!r}", 'pass a name: "cpu", "sm_90a", ...')
    return _core.render(text, file, target or "")


def precompile(
    manifest: Union[str, "os.PathLike[str]"],
    targets: Sequence[str] = (),
    bundle: Optional[Union[str, "os.PathLike[str]"]] = None,
) -> int:
    """Compiles every kernel of a manifest (record() writes one) for the targets, into the cache and a bundle. Returns
    how many kernels were made."""
    names = [targets] if isinstance(targets, str) else targets
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise Error("usage", f"targets is {targets!r}", 'pass names: ["sm_90a", "cpu"]')
    names = list(names)
    return _core.precompile(_path("manifest", manifest), names, None if bundle is None else _path("bundle", bundle))


def _path(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise Error("usage", f"{name} is a {type(value).__name__}", "pass the path of a file")
    return os.fspath(value)
