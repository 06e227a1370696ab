"""Specs as the package takes them: a dict, JSON text, or a file."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Tuple, Union

from ._error import Error

SpecLike = Union[Mapping[str, Any], str, "os.PathLike[str]"]


def spec_text(spec: SpecLike) -> Tuple[str, str]:
    """JSON text, and what messages call it."""
    if isinstance(spec, Mapping):
        try:
            return json.dumps(spec), "spec"
        except (TypeError, ValueError) as error:
            raise Error("spec", f"the spec is no JSON: {error}", "write numbers, strings, lists and dicts") from None
    if isinstance(spec, str) and spec.lstrip().startswith("{"):
        return spec, "spec"
    if not isinstance(spec, (str, os.PathLike)):
        raise Error(
            "usage",
            f"spec is a {type(spec).__name__}",
            "pass a dict, JSON text, or the path of a JSON file (docs/spec.md)",
        )
    path = os.fspath(spec)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), path
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Error(
            "file", f"cannot read {path}: {reason}", "pass a dict, JSON text, or the path of a JSON file"
        ) from None
