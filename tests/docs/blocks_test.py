"""What run_blocks.py refuses: a page whose blocks are not run and do not say why, and output that is not as printed."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import run_blocks  # noqa: E402

SHELL = "```sh\necho one; echo two\n```\n"
# (what the error says, or "" where the page is right; the page)
PAGES = [
    ("", SHELL + "```text\none\n...\nt...\n```\n"),
    ("", '```json title="spec.json"\n{}\n```\n```sh\ngrep {} spec.json\n```\n'),
    ("", "<!-- not run: it needs a GPU -->\n```sh\nexit 1\n```\n"),
    ("give it a title, or say why it is not run", "```cpp\nint main() {}\n```\n"),
    ("give it a title, or say why it is not run", "```json\n{}\n```\n"),
    ("no command uses spec.json", '```json title="spec.json"\n{}\n```\n```text\nspec.json\n```\n'),
    ("a block of no language that is known", "```\necho\n```\n"),
    ("a block of no language that is known", "```cuda\n```\n"),
    ("status 3", "```sh\nexit 3\n```\n"),
    ("status 1", "A reason that is not above the block counts for nothing.\n<!-- not run: why -->\n\ntext\n"
     "```sh\nfalse | true\n```\n"),
    ("the output lacks this line: three", SHELL + "```text\nthree\n```\n"),
    ("the output lacks this line: one", SHELL + "```text\ntwo\none\n```\n"),
    ("a block of output without a command", "```text\none\n```\n"),
    ("no end of the block", "```sh\ntrue\n"),
    ("a fence that is none", "```sh bash\ntrue\n```\n"),
]  # fmt: skip


def error_of(text, root):
    page = root / "page.md"
    page.write_text(text)
    try:
        run_blocks.run_page(page, root, dict(os.environ))
    except (AssertionError, ValueError) as error:
        return str(error)
    return ""


def main():
    with tempfile.TemporaryDirectory() as work:
        tempfile.tempdir = work
        for wanted, text in PAGES:
            error = error_of(text, Path(work))
            if (wanted == "") != (error == "") or wanted not in error:
                sys.exit(f"wanted {wanted!r}, got {error!r} for\n{text}")
        (Path(work) / "page.md").write_text(PAGES[2][1])
        listed = list(run_blocks.left_out(Path(work) / "page.md", Path(work)))
        if listed != [("page.md:2", "it needs a GPU")]:
            sys.exit(f"left out: {listed}")


if __name__ == "__main__":
    main()
