"""run_blocks.py ROOT BUILD CXX: runs the blocks of the pages on a CPU, each page in a folder of its own.

A block with a title becomes that file. `sh` runs in bash, with the installed executable in PATH. A `text` block after it
holds lines that its output must have, in this order; `...` stands for anything. Blocks of Python without a title are run by
python/tests/test_docs.py. Each block that says why it is not run is listed with its reason."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import blocks  # noqa: E402

SECONDS = 300


def install(build, prefix):
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)


def environment(prefix, work, cxx):
    library = next(Path(prefix).rglob("tilewright.pc")).parent.parent
    return dict(
        os.environ,
        PATH=f"{prefix}/bin:{os.environ['PATH']}",
        PKG_CONFIG_PATH=str(library / "pkgconfig"),
        CMAKE_PREFIX_PATH=str(prefix),
        LD_LIBRARY_PATH=str(library),
        CXX=cxx,
        TILEWRIGHT_CACHE=f"{work}/cache",
        TILEWRIGHT_DEVICE="cpu",
    )


def run_shell(block, folder, variables):
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, env=variables, text=True, timeout=SECONDS,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if ended.returncode != 0:
        raise AssertionError(f"{block.place}: status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def require_lines(block, output):
    """Lines of the block, in their order, somewhere in the output."""
    found = 0
    lines = [line.rstrip() for line in output.splitlines()]
    for wanted in block.text.splitlines():
        if not wanted.strip() or wanted.strip() == "...":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.rstrip().split("...")))
        while found < len(lines) and not pattern.fullmatch(lines[found]):
            found += 1
        if found == len(lines):
            raise AssertionError(f"{block.place}: the output lacks this line: {wanted}\n{output}")
        found += 1


def require_use(block, later):
    """That a later block which runs names the file; `cmake` reads a CMakeLists.txt unasked."""
    word = "cmake" if Path(block.file).name == "CMakeLists.txt" else block.file
    if not any(word in other.text for other in later if not other.reason and other.language != "text"):
        raise AssertionError(f"{block.place}: no command uses {block.file}")


def run_page(page, root, variables):
    folder = Path(tempfile.mkdtemp(prefix="page-"))
    os.symlink(root / "examples", folder / "examples")
    output, ran = None, 0
    found = blocks.blocks_of(page)
    for index, block in enumerate(found):
        if block.language not in blocks.LANGUAGES:
            raise AssertionError(f"{block.place}: a block of no language that is known: {block.language!r}")
        if block.reason:
            continue
        if block.file:
            require_use(block, found[index + 1 :])
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)
        elif block.language == "sh":
            output = run_shell(block, folder, variables)
            ran += 1
        elif block.language == "text":
            if output is None:
                raise AssertionError(f"{block.place}: a block of output without a command before it")
            require_lines(block, output)
        elif block.language != "python":
            raise AssertionError(f"{block.place}: give it a title, or say why it is not run")
    return ran


def left_out(page, root):
    """(place, reason) of each block that is not run here."""
    for block in blocks.blocks_of(page):
        place = f"{page.relative_to(root)}:{block.line}"
        if block.reason:
            yield place, block.reason
        elif block.language == "python" and not block.file:
            yield place, "python/tests/test_docs.py runs it"


def main():
    root, build, cxx = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    wanted = sys.argv[4:] or blocks.RUN
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        prefix = f"{work}/prefix"
        install(build, prefix)
        os.environ["TMPDIR"] = tempfile.tempdir = work
        variables = environment(prefix, work, cxx)
        for page in blocks.pages(root, wanted):
            try:
                begin = time.monotonic()
                ran = run_page(page, root, variables)
                seconds = time.monotonic() - begin
                print(f"{page.relative_to(root)}: {ran} commands ran, {seconds:.1f} s", flush=True)
                for place, reason in left_out(page, root):
                    print(f"  {place} is not run: {reason}", flush=True)
            except (AssertionError, ValueError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"{error}", flush=True)
    if failed:
        sys.exit(f"{failed} pages failed")


if __name__ == "__main__":
    main()
