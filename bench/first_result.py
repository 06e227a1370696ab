#!/usr/bin/env python3
"""From the start of a process to its first result on one GPU, beside compiled FlexAttention, in one run.

    python3 bench/first_result.py --tilewright build/release/cli/tilewright [--repeats 3] [--json F]

ALiBi, causal, bf16, batch 1, 8 heads, 1024 x 1024, head_dim 128. Every sample is a process of its own, and
all kinds take turns: with empty caches (cold), with the kernels that such a process left on disk, and
Tilewright also with a bundle that was precompiled, empty caches and no compiler in reach. Tilewright's time
ends with its process, which has written the result to a file then; FlexAttention's with its result, and the
part until PyTorch is imported is shown. Needs PyTorch with CUDA.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SPEC = {
    "name": "alibi_causal",
    "dtype": "bf16",
    "head_dim": 128,
    "score_mod": "return score + slopes[h] * (kv_idx - q_idx);",
    "mask_mod": "q_idx >= kv_idx",
    "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0.004, 0.5]}},
}
INPUTS = "random:1,8,8,1024,1024"

FLEX = """
import time
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
imported = time.time()
q, k, v = (torch.randn(1, 8, 1024, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
slopes = torch.rand(8, device="cuda")
mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 1024, 1024, device="cuda", _compile=True)
flex = torch.compile(flex_attention)
out = flex(q, k, v, score_mod=lambda s, b, h, q, kv: s + slopes[h] * (kv - q), block_mask=mask)
torch.cuda.synchronize()
print(imported, time.time())
"""


def run_flex(folder):
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
                                "TRITON_CACHE_DIR": os.path.join(folder, "triton")}
    start = time.time()
    result = subprocess.run([sys.executable, "-c", FLEX], env=environment, check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
    imported, end = map(float, result.stdout.split()[-2:])
    return {"ms": 1e3 * (end - start), "import_ms": 1e3 * (imported - start)}


def run_tilewright(executable, folder, variables):
    environment = os.environ | {"TILEWRIGHT_CACHE": os.path.join(folder, "cache")} | variables
    start = time.time()
    subprocess.run([executable, "run", os.path.join(folder, "spec.json"), "--device", "cuda", "--inputs", INPUTS,
                    "--outputs", os.path.join(folder, "out.safetensors")], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    return {"ms": 1e3 * (time.time() - start)}


def make_bundle(executable, folder):
    manifest, bundle = os.path.join(folder, "manifest.json"), os.path.join(folder, "kernels.twb")
    with open(manifest, "w") as file:
        json.dump({"specs": ["spec.json"]}, file)
    subprocess.run([executable, "precompile", manifest, "--targets", "sm_90a", "--out", bundle], check=True,
                   stdout=subprocess.DEVNULL)
    return bundle


def empty(folder, *names):
    for name in names:
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def sample(executable, folder, bundle):
    """One process of each kind."""
    empty(folder, "cache", "inductor", "triton")
    cold = run_tilewright(executable, folder, {})
    disk = run_tilewright(executable, folder, {})
    empty(folder, "cache")
    bundled = run_tilewright(executable, folder, {"TILEWRIGHT_BUNDLES": bundle, "TILEWRIGHT_JIT": "off",
                                                  "TILEWRIGHT_NVRTC": "/nonexistent"})
    return {"Tilewright, cold": cold, "Tilewright, kernels on disk": disk, "Tilewright, bundle": bundled,
            "FlexAttention, cold": run_flex(folder), "FlexAttention, kernels on disk": run_flex(folder)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="F")
    arguments = parser.parse_args()
    executable = os.path.abspath(arguments.tilewright)

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "spec.json"), "w") as file:
            json.dump(SPEC, file)
        bundle = make_bundle(executable, folder)
        samples = []
        for number in range(arguments.repeats):
            print("\r[%d/%d]" % (number + 1, arguments.repeats), end="", file=sys.stderr, flush=True)
            samples.append(sample(executable, folder, bundle))
        print("\r", end="", file=sys.stderr)

    rows = {kind: {name: statistics.median(one[kind][name] for one in samples) for name in samples[0][kind]}
            for kind in samples[0]}
    print("| process start to first result | ms | of it importing PyTorch |\n| --- | ---: | ---: |")
    for kind, row in rows.items():
        print("| %s | %.0f | %s |" % (kind, row["ms"], "%.0f" % row["import_ms"] if "import_ms" in row else ""))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
