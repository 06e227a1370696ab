"""check, render and precompile: the command line's verbs."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Sequence, Union

from . import _core
from ._arrays import framework, readable
from ._spec import SpecLike, spec_text


def check(
    spec: SpecLike, q: Any, k: Any, v: Any, *, device: str = "auto", scale: Optional[float] = None, **buffers: Any
) -> Dict[str, Any]:
    """Runs a dense spec on q, k, v and compares with double precision by the fixed rule (docs/verification.md).

    buffers: arrays and scalars by name. Returns the keys of `tilewright check --json`; "ok" is the verdict. Raises only
    where nothing could be checked."""
    text, file = spec_text(spec)
    numbers = {name: float(x) for name, x in buffers.items() if isinstance(x, (bool, int, float))}
    arrays = {name: _host(x) for name, x in buffers.items() if name not in numbers}
    report = _core.check(text, file, _host(q), _host(k), _host(v), arrays, numbers, str(device), scale)
    return json.loads(report)  # type: ignore[no-any-return]


def _host(array: Any) -> Any:
    return array.detach().cpu() if framework(array) == "torch" else readable(array)


def render(spec: SpecLike, target: Optional[str] = None) -> str:
    """The source of the forward kernel: C++ for "cpu" (None: this machine's), CUDA C++ for "sm_90a", ..."""
    text, file = spec_text(spec)
    return _core.render(text, file, target or "")


def precompile(
    manifest: Union[str, "os.PathLike[str]"],
    targets: Sequence[str] = (),
    bundle: Optional[Union[str, "os.PathLike[str]"]] = None,
) -> int:
    """Compiles every kernel of a manifest (record() writes one) for the targets, into the cache and a bundle. Returns
    how many kernels were made."""
    return _core.precompile(os.fspath(manifest), list(targets), None if bundle is None else os.fspath(bundle))
