"""record(): a manifest of every spec that a program makes."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Union

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
    recording: Dict[str, Any] = {}
    recordings.append(recording)
    try:
        yield
    finally:
        recordings[:] = [other for other in recordings if other is not recording]
        manifest = {"specs": [{"spec": spec} for spec in recording.values()]}
        temporary = f"{os.fspath(path)}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=2)
        os.replace(temporary, path)
