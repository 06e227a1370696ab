"""check, render and precompile: the command line's verbs."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Sequence, Union

from . import _core
from ._arguments import real, require_module, scalars_of
from ._arrays import framework, readable, require_array
from ._attention import Attention
from ._error import Error
from ._spec import SpecLike, spec_text


def check(
    spec: SpecLike,
    q: Any,
    k: Any,
    v: Any,
    *,
    device: str = "auto",
    scale: Optional[float] = None,
    dout: Any = None,
    dlse: Any = None,
    **buffers: Any,
) -> Dict[str, Any]:
    """Runs a dense spec on q, k, v and compares with double precision by the fixed rule (docs/verification.md).

    buffers: arrays and scalars by name. dout, dlse: gradients of out and lse for a spec with gradients; dout None: random
    numbers. Returns the keys of `tilewright check --json`; "ok" is the verdict. Raises only where nothing could be checked.
    """
    text, file = spec_text(spec)
    canonical = json.loads(_core.canonical(text, file))
    known = canonical.get("scalars", {})
    is_number = {name: name in known or isinstance(x, (bool, int, float)) for name, x in buffers.items()}
    numbers = scalars_of({name: x for name, x in buffers.items() if is_number[name]})
    arrays = {name: _host(name, x) for name, x in buffers.items() if not is_number[name]}
    q, k, v = (_host(name, x) for name, x in (("q", q), ("k", k), ("v", v)))
    scale = real("scale", scale)
    report: Dict[str, Any] = json.loads(_core.check(text, file, q, k, v, arrays, numbers, str(device), scale))
    if "gradients" in canonical:
        call = (q, k, v, arrays, numbers, scale)
        report["gradients"] = _check_gradients(text, file, str(device), call, dout, dlse)
        report["ok"] = report["ok"] and all(verdict["ok"] for verdict in report["gradients"].values())
    elif dout is not None or dlse is not None:
        raise Error("usage", "dout or dlse is given, but the spec names no gradients", "leave them out")
    return report


def _check_gradients(text: str, file: str, device: str, call: Any, dout: Any, dlse: Any) -> Dict[str, Any]:
    """The verdict of each gradient, by the names of the command line."""
    q, k, v, arrays, numbers, scale = call
    attention = Attention(text, device)

    def there(array: Any) -> Any:
        if attention.device == "cpu" or array is None:
            return array
        return require_module("torch").as_tensor(array).to(attention.device)

    bindings = attention.bind(**{name: there(array) for name, array in arrays.items()}, **numbers)
    a, b, c = there(q), there(k), there(v)
    out, lse, *_ = attention.forward(a, b, c, bindings=bindings, scale=scale)
    dout = _random_like(_host("out", out)) if dout is None else _host("dout", dout)
    dlse = None if dlse is None else _host("dlse", dlse)
    found = attention.backward(a, b, c, out, lse, there(dout), dlse=there(dlse), bindings=bindings, scale=scale)
    found = {name: _host(name, array) for name, array in found.items()}
    named = {f"d{name}" if name in ("q", "k", "v") else f"d_{name}": array for name, array in found.items()}
    report = _core.judge_gradients(text, file, q, k, v, arrays, numbers, scale, dout, dlse, named)
    return json.loads(report)  # type: ignore[no-any-return]


def _random_like(array: Any) -> Any:
    if framework(array) == "torch":
        torch = require_module("torch")
        return torch.randn(array.shape, generator=torch.Generator().manual_seed(1)).to(array.dtype)
    numbers = require_module("numpy").random.default_rng(1).standard_normal(array.shape)
    return numbers.astype(array.dtype)


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
