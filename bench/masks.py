#!/usr/bin/env python3
"""Block masks on one GPU beside PyTorch's create_block_mask, compiled and not, in one run.

    python3 bench/masks.py --mask-time build/release/tests/masks/mask_time [--lengths 8192,131072]
                           [--json F] [--chart F.svg]

Tilewright: CUDA events around one build with the capacity given, and the wall clock around one whose size
is read back; medians of 25. PyTorch: CUDA events around one call, median of 5 after a warm-up; its compile
time is the first call's. A call that runs out of memory, or is not tried because its dense mask would not
fit, says so. The exponent is the slope of log time over log length from the least length to the greatest.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time

WINDOW = 4096


def torch_masks(length):
    import torch

    doc = torch.arange(length, device="cuda") * 64 // length
    return {
        "causal": lambda b, h, q, kv: q >= kv,
        "window_4096": lambda b, h, q, kv: (q >= kv) & (q - kv < WINDOW),
        "prefix_2048": lambda b, h, q, kv: (q >= kv) | (kv < 2048),
        "documents_64": lambda b, h, q, kv: (q >= kv) & (doc[q] == doc[kv]),
        "opaque_mixed": lambda b, h, q, kv: ((q * 31 + kv * 17) >> 4) % 3 != 0,
        "opaque_keeps_all": lambda b, h, q, kv: (((q * 31 + kv * 17) & 255) * ((q * 31 + kv * 17) & 255)) % 8 != 5,
    }


def torch_times(name, length, compiled, seconds):
    """(ms, seconds of the first call), or what went wrong."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask

    if not compiled and length > 65536:
        return "not tried: the dense mask"
    torch._dynamo.reset()
    make = torch.compile(create_block_mask) if compiled else create_block_mask
    mod = torch_masks(length)[name]
    try:
        start = time.perf_counter()
        make(mod, None, None, length, length, device="cuda")
        torch.cuda.synchronize()
        first = time.perf_counter() - start
        times = []
        deadline = time.perf_counter() + seconds
        while len(times) < 5 and (not times or time.perf_counter() < deadline):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            make(mod, None, None, length, length, device="cuda")
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return statistics.median(times), first
    except (RuntimeError, torch.OutOfMemoryError) as error:
        torch.cuda.empty_cache()
        return "out of memory" if "memory" in str(error) else str(error).splitlines()[0][:60]


def shown(result):
    return f"{result[0]:.3f} ({result[1]:.1f} s)" if isinstance(result, tuple) else str(result)


def exponent(rows):
    first, last = rows[0], rows[-1]
    return math.log(last["ms"] / first["ms"]) / math.log(last["length"] / first["length"])


def chart(rows, path):
    """Time over length, both logarithmic, as a plain SVG."""
    colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]
    names = list(dict.fromkeys(row["mask"] for row in rows))
    lengths = sorted({row["length"] for row in rows})
    low = math.floor(math.log10(min(row["ms"] for row in rows)))
    high = math.ceil(math.log10(max(row["ms"] for row in rows)))

    def x(length):
        return 70 + 430 * math.log(length / lengths[0]) / math.log(lengths[-1] / lengths[0])

    def y(ms):
        return 340 - 300 * (math.log10(ms) - low) / (high - low)

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="720" height="400" font-family="sans-serif" '
             'font-size="12"><rect width="720" height="400" fill="white"/>']
    for power in range(low, high + 1):
        parts.append(f'<path d="M70 {y(10 ** power):.1f}H500" stroke="#ddd"/><text x="62" y="{y(10 ** power) + 4:.1f}" '
                     f'text-anchor="end">{10 ** power:g} ms</text>')
    for length in lengths:
        parts.append(f'<text x="{x(length):.1f}" y="360" text-anchor="middle">{length // 1024}k</text>')
    for i, name in enumerate(names):
        points = [(x(r["length"]), y(r["ms"])) for r in rows if r["mask"] == name]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colours[i % 6]}" stroke-width="2"/>')
        own = [r for r in rows if r["mask"] == name]
        parts.append(f'<text x="515" y="{60 + 20 * i}" fill="{colours[i % 6]}">{name}: length^{exponent(own):.2f}</text>')
    parts.append('<text x="285" y="385" text-anchor="middle">tokens; capacity given, lists included</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mask-time", required=True)
    parser.add_argument("--lengths", default="8192,32768,131072,524288,1048576")
    parser.add_argument("--peer-lengths", default="32768,131072")
    parser.add_argument("--json")
    parser.add_argument("--chart")
    arguments = parser.parse_args()
    output = subprocess.run([arguments.mask_time, "--lengths", arguments.lengths], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in output.splitlines()]
    peer_lengths = [int(length) for length in arguments.peer_lengths.split(",") if length]
    print(f"{'mask':<18}{'length':>9}{'ms':>9}{'read back':>10}{'host':>8}{'tiles':>10}{'evaluated':>10}"
          f"{'lists MB':>9}{'peak MB':>9}{'limit MB':>9}{'NVRTC ms':>9}  PyTorch ms (first call): compiled, not compiled")
    for row in rows:
        peers = ""
        if row["length"] in peer_lengths:
            row["torch_compiled"] = torch_times(row["mask"], row["length"], True, 5)
            row["torch_eager"] = torch_times(row["mask"], row["length"], False, 5)
            peers = f"{shown(row['torch_compiled'])}, {shown(row['torch_eager'])}"
            if isinstance(row["torch_compiled"], tuple):
                peers += f"; {row['torch_compiled'][0] / row['ms']:.1f}x"
        limit = 1.25 * row["list_bytes"] + 2**20
        print(f"{row['mask']:<18}{row['length']:>9}{row['ms']:>9.4f}{row['ms_with_read_back']:>10.4f}"
              f"{row['host_ms']:>8.4f}{row['partial'] + row['full']:>10}{row['evaluated']:>10}"
              f"{row['list_bytes'] / 2**20:>9.2f}{row['peak_bytes'] / 2**20:>9.2f}{limit / 2**20:>9.2f}"
              f"{row['compile_ms']:>9.0f}  {peers}")
        sys.stdout.flush()
    for name in dict.fromkeys(row["mask"] for row in rows):
        own = [row for row in rows if row["mask"] == name]
        if len(own) > 1:
            print(f"{name}: time grows as length^{exponent(own):.2f} from {own[0]['length']} to {own[-1]['length']}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    if arguments.chart:
        chart(rows, arguments.chart)


if __name__ == "__main__":
    main()
