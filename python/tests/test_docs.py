"""The blocks of Python on the pages whose blocks are all run (tests/docs/blocks.py)."""

import os
import sys

import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "docs"))
import blocks  # noqa: E402

BLOCKS = [
    block
    for page in blocks.pages(ROOT, blocks.RUN)
    for block in blocks.blocks_of(page)
    if block.language == "python" and not block.reason and not block.file
]


def test_there_are_blocks():
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page.stem}-{block.line}")
def test_block_runs(block, capsys):
    exec(compile(block.text, block.place, "exec"), {"__name__": "page"})
