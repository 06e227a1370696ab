"""gallery_times.py TILEWRIGHT [DEVICE [LENGTH]]: the time of each example on a device, for the site's gallery.
docs/figures/example_times.tsv is what `python3 scripts/gallery_times.py build/release/cli/tilewright cuda` prints."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def examples():
    """The specs of examples/, folder by folder. Other JSON files there are manifests."""
    files = sorted((ROOT / "examples").rglob("*.json"), key=lambda file: (file.parent, file.name))
    return [file for file in files if "head_dim" in json.loads(file.read_text())]


def sizes(spec, content, length):
    """The call that is measured, as --inputs has it: B, heads of q and of k, lengths; or the lengths of sequences."""
    if content.get("layout") == "packed":
        pages = "/page=64" if content.get("kv_layout", "").startswith("paged") else ""
        return f"random:32,8/{length // 4}:{length},{length // 8}:{length // 2},1:{length},1:{length // 2}{pages}"
    if spec.stem == "tree_decoding":
        return f"random:8,32,32,64,{length}"
    return f"random:1,16,16,{length},{length}"


def measured(tilewright, spec, inputs, device):
    command = [tilewright, "bench", "--spec", str(spec), "--inputs", inputs, "--device", device]
    command += ["--budget-ms", "100", "--json"]
    ended = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if ended.returncode != 0:
        sys.exit(f"{spec.name}, {inputs}: {ended.stdout}{ended.stderr}")
    facts = json.loads(ended.stdout)
    return facts, facts["rows"][0]


def main():
    tilewright = sys.argv[1]
    device = sys.argv[2] if len(sys.argv) > 2 else "cuda"
    length = int(sys.argv[3]) if len(sys.argv) > 3 else 8192
    lines, name = [], ""
    for spec in examples():
        inputs = sizes(spec, json.loads(spec.read_text()), length)
        facts, row = measured(tilewright, spec, inputs, device)
        name = facts["gpu"]["name"] if "gpu" in facts else facts["cpu"]["model"]
        file = str(spec.relative_to(ROOT / "examples"))
        figures = f"{row['ms']:.3f}\t{row['gflops'] / 1000:.1f}"
        lines.append(f"{file}\t{inputs.removeprefix('random:')}\t{figures}")
        print(lines[-1], file=sys.stderr)
    commit = subprocess.check_output(["git", "-C", ROOT, "describe", "--always"], text=True).strip()
    print(f"# {date.today()}, {name}, {commit}: file, sizes, ms, TFLOP/s of kept elements")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
