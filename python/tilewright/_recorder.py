"""record(): a manifest of every spec that a program makes."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Union

from ._error import Error

recordings: List[Dict[str, Any]] = []


def note(spec: Dict[str, Any]) -> None:
    """Tells the recordings that run of a spec that is used."""
    if recordings:
        text = json.dumps(spec)
        for recording in recordings:
            recording[text] = spec


@contextmanager
def record(path: Union[str, "os.PathLike[str]"]) -> Iterator[None]:
    """Writes the manifest of all specs that are used inside, for precompile() and `tilewright precompile`:

    with tw.record("manifest.json"): model(batch)
    """
    if not isinstance(path, (str, os.PathLike)):
        raise Error("usage", f"path is a {type(path).__name__}", "pass the path of a file")
    recording: Dict[str, Any] = {}
    recordings.append(recording)
    try:
        yield
    finally:
        recordings[:] = [other for other in recordings if other is not recording]
        _write(os.fspath(path), {"specs": [{"spec": spec} for spec in recording.values()]})


def _write(path: str, manifest: Dict[str, Any]) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=2)
        os.replace(temporary, path)
    except OSError as error:
        raise Error("file", f"cannot write {path}: {error.strerror}", "check the folder") from None
