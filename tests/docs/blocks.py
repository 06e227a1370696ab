"""Code blocks of the pages, and how they are run.

A block's first line is ```LANGUAGE, or ```LANGUAGE title="FILE" where a reader would put it into a file. A comment
in the line before says what is not run: <!-- not run: REASON -->."""

import re
from dataclasses import dataclass
from pathlib import Path

# Pages whose blocks are all run, or say why not.
RUN = [
    "README.md",
    "docs/tutorial.md",
    "docs/how_it_works.md",
    "docs/howto/*.md",
    "docs/migrate/*.md",
]
LANGUAGES = {"sh", "json", "cpp", "python", "text", "cmake", "c"}


@dataclass
class Block:
    page: Path
    line: int  # of the opening fence, from 1
    language: str
    file: str  # "" where it has no title
    reason: str  # why it is not run; "" where it is
    text: str

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def pages(root, patterns):
    return [page for pattern in patterns for page in sorted(Path(root).glob(pattern))]


def blocks_of(page):
    """The fenced blocks of a page. Raises ValueError for a fence without an end."""
    blocks, opened, before = [], None, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = re.match(r"( *)```(\w*)(?: +title=\"([^\"]+)\")? *$", line)
        if opened and line.strip() == "```":
            blocks.append(opened)
            opened = None
        elif opened:
            opened.text += line + "\n"
        elif fence:
            reason = re.match(r"<!-- not run: (.+) -->$", before.strip())
            opened = Block(page, number, fence[2], fence[3] or "", reason[1] if reason else "", "")
        elif line.lstrip().startswith("```"):
            raise ValueError(f"{page}:{number}: a fence that is none: {line}")
        if line.strip():
            before = line
    if opened:
        raise ValueError(f"{opened.place}: no end of the block")
    return blocks
