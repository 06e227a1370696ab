"""Attentions that flex_attention and its kin have made, by spec and device."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, Tuple

from . import _recorder
from ._attention import Attention

_LIMIT = 1024
_attentions: "Dict[Tuple[str, str, bool], Attention]" = {}
_lock = threading.Lock()


def attention_for(spec: Dict[str, Any], device: str, takes_block_mask: bool = False) -> Attention:
    """The attention of a spec, made once. Kernels of the oldest are loaded again where there are very many."""
    key = (json.dumps(spec), device, takes_block_mask)
    found = _attentions.get(key)
    if found is None:
        found = Attention(spec, device, takes_block_mask=takes_block_mask)
        with _lock:
            found = _attentions.setdefault(key, found)
            if len(_attentions) > _LIMIT:
                del _attentions[next(iter(_attentions))]
    _recorder.note(found._spec)
    return found
