"""site_pages.py ROOT FOLDER TILEWRIGHT: puts the pages, and the files that they link to, into FOLDER as they lie in the
repository, and makes docs/gallery.md of the examples and docs/reference of the sources."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests" / "docs"))
import check_pages  # noqa: E402
import gallery_times  # noqa: E402
import site_reference  # noqa: E402

# Sizes at which a mask shows what it is; 1024 x 1024 otherwise.
SIZES = {
    "natten_2d": ["--q-len", "256", "--kv-len", "256"],
    "tree_decoding": ["--q-len", "16", "--kv-len", "80", "--q-offset", "64"],
    "padding_mask": ["--q-len", "256", "--kv-len", "256"],
    "cross_attention": ["--q-len", "128", "--kv-len", "128"],
}


def copy(path, folder):
    target = folder / path.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        shutil.copyfile(path, target)


def copy_pages(folder):
    for page in check_pages.pages_of(ROOT):
        copy(page, folder)
        for _, link in check_pages.links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if not re.match(r"https?:", link) and target.suffix != ".md":
                copy(target, folder)


def link_folders(folder):
    """A link to a folder, or to a file without an ending, is one to its page or its text."""
    for page in folder.rglob("*.md"):
        text = page.read_text()
        changed = re.sub(r"\]\((\.\./)*(packaging|examples)/\)", r"](\1\2/README.md)", text)
        if changed != text:
            page.write_text(changed)


def descriptions():
    """What examples/README.md says of each file."""
    rows = re.findall(r"^\| \[([^\]]+)\]\([^)]*\) \| (.+?) \|", (ROOT / "examples/README.md").read_text(), re.M)
    return dict(rows)


def python_forms():
    """The text of each function of examples/python/mods.py, by its name."""
    text = (ROOT / "examples/python/mods.py").read_text()
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {function.name: ast.get_source_segment(text, function) for function in functions}


def times():
    """(the machine, {example: a sentence}) of docs/figures/example_times.tsv, which scripts/gallery_times.py makes."""
    head, *rows = (ROOT / "docs/figures/example_times.tsv").read_text().splitlines()
    found = {}
    for file, sizes, ms, tflops in (row.split("\t") for row in rows):
        found[file] = f"`random:{sizes}` takes {ms} ms: {tflops} TFLOP/s of kept elements."
    return head.removeprefix("# ").partition(":")[0], found


def draw(spec, content, picture, tilewright):
    name = Path(spec).stem
    size = SIZES.get(name, ["--q-len", "1024", "--kv-len", "1024"])
    scores = ["--scores"] if "score_mod" in content else []
    subprocess.run(
        [tilewright, "mask", spec, *size, *scores, "--picture", picture], check=True, stdout=subprocess.DEVNULL
    )


def gallery(folder, tilewright):
    machine, taken = times()
    lines = [
        "# Gallery",
        "",
        "Each example with its mask as `tilewright mask --picture` draws it, the scores that its score_mod",
        "makes of 1, and its snippets in C++ and Python. [What they are, and how to run them](../examples/README.md).",
        "",
        f"Times: {machine}, sizes as `--inputs` has them, in the example's dtype with random buffers",
        "([how time is taken](performance.md#how-time-is-taken)); `scripts/gallery_times.py` measures them.",
        "",
    ]
    pictures = folder / "docs" / "gallery"
    pictures.mkdir(parents=True, exist_ok=True)
    said, forms = descriptions(), python_forms()
    for spec in gallery_times.examples():
        file = str(spec.relative_to(ROOT / "examples"))
        picture = file.replace("/", "_").replace(".json", ".svg")
        content = json.loads(spec.read_text())
        drawn = "mask_mod" in content or "score_mod" in content
        if drawn:
            draw(str(spec), content, str(pictures / picture), tilewright)
        what = said[file][0].upper() + said[file][1:]
        lines += [f"## {file.removesuffix('.json')}", "", f"{what}: [{file}](../examples/{file})", ""]
        for key in ("score_mod", "mask_mod", "sink", "q_scale", "k_scale", "v_scale"):
            if key in content:
                lines += ['```cpp title="' + key + '"', content[key].strip(), "```", ""]
        if "gradients" in content:
            lines += ["Backward computes gradients of " + ", ".join(content["gradients"]) + ".", ""]
        if spec.stem in forms and spec.parent.name == "examples":
            code = [f"    {line}" for line in ["```python", *forms[spec.stem].splitlines(), "```"]]
            lines += ['??? "Python"', "", *code, ""]
        no_picture = "No picture: it has neither score_mod nor mask_mod, so all tiles are full."
        lines += [f"![{file}](gallery/{picture})" if drawn else no_picture, ""]
        lines += [f"In {content['dtype']}, {taken[file]}", ""] if file in taken else []
        copy(spec, folder)
    sections = {line.removeprefix("## ") + ".json" for line in lines if line.startswith("## ")}
    if missing := {file for file in said if file.endswith(".json")} - sections:
        sys.exit(f"the gallery lacks {', '.join(sorted(missing))}")
    (folder / "docs" / "gallery.md").write_text("\n".join(lines))


def main():
    folder = Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    copy_pages(folder)
    link_folders(folder)
    gallery(folder, sys.argv[3])
    if site_reference.write(ROOT, folder, sys.argv[3]) < 30:
        sys.exit("public headers are missing")


if __name__ == "__main__":
    main()
