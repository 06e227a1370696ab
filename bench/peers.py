#!/usr/bin/env python3
"""Tilewright beside its peers on one GPU, in one run: cuDNN, FlashAttention-2 and -4, and FlexAttention.

    python3 bench/peers.py --tilewright build/release/cli/tilewright [--suite dense|mods|backward|start|all]
        [--only NAME]... [--tactic NAME] [--json F.json] [--markdown F.md] [--chart F.svg]

dense   16k tokens, 2048 hidden, bf16, head_dim 64, 128, 256, full and causal: cuDNN, FlashAttention-2 and, where
        the package flash-attn-4 is installed, FlashAttention-4
mods    batch 2, 16 heads, 8192 x 8192, head_dim 128: compiled FlexAttention with its block mask
backward
        gradients of q, k and v in calls like dense's, by the same peers, eight calls in the stream at once; "all" leaves
        it out
start   a process's first result, the host's time of a call, compile times: Tilewright's own bars

Workloads come from `tilewright bench --list`. Peers and Tilewright take turns within each row, and are
timed alike: CUDA events around single calls, the L2 cache overwritten before each, three calls to warm
up, the median; a row shows the median of its rounds. Data are random and new for each row; buffers
(slopes, documents of uneven lengths, bias) are the same for both. Ratios above 1 mean that Tilewright is
faster. Needs PyTorch 2.5 or newer with CUDA.
"""

import argparse
import datetime
import importlib.util
import json
import math
import os
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import time

LEAST_SAMPLES, MOST_SAMPLES, WARM_UPS, TIMES_L2 = 5, 200, 3, 4  # as cli/bench/timing.cpp
BACKWARD_CALLS = 8  # in the stream at once, as cli/bench/backward.cpp


# ---- what is measured ------------------------------------------------------------------------------


class Tilewright:
    """A process that measures what it is asked for, and waits otherwise."""

    def __init__(self, executable, tactic=None, environment=None, kept=1, device="cuda"):
        self.executable = executable
        self.kept = kept
        self.tactic = tactic
        self.environment = environment
        self.device = device
        self.process = None

    def command(self, *words):
        result = subprocess.run([self.executable, "bench", *words, "--device", self.device], check=True,
                                stdout=subprocess.PIPE, env=self.environment)
        return json.loads(result.stdout)

    def workloads(self, suite):
        rows = self.command("--suite", suite, "--list")
        for row in rows:
            if self.tactic:
                row["spec"]["tactic"] = {"name": self.tactic}
        return rows

    def measure(self, workload, budget_ms):
        if not self.process:
            self.process = subprocess.Popen(
                [self.executable, "bench", "--serve", "--keep", str(self.kept), "--device", self.device],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)
        self.process.stdin.write(json.dumps(workload | {"budget_ms": budget_ms}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"tilewright bench --serve ended with status {self.process.wait()}")
        row = json.loads(answer)
        if "error" in row:
            raise RuntimeError(row["error"]["message"])
        return row

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(timeout=30)


class TilewrightBackward(Tilewright):
    """Measures gradients of q, k and v, in a process for each measurement."""

    def measure(self, workload, budget_ms):
        trained = workload["spec"] | {"outputs": ["out", "lse"], "gradients": ["q", "k", "v"]}
        trained.pop("block", None)  # which suits forward's tiles
        with tempfile.NamedTemporaryFile("w", suffix=".json") as spec:
            json.dump(trained, spec)
            spec.flush()
            sizes = [workload[key] for key in ("batch", "heads", "kv_heads", "q_len", "kv_len")]
            result = self.command("--suite", "backward", "--spec", spec.name, "--budget-ms", str(budget_ms), "--json",
                                  "--inputs", "random:" + ",".join(map(str, sizes)))
        return result["rows"][0] | {"kept": None, "tactic": self.tactic or "default"}


def median_ms(call, budget_ms, calls=1):
    """CUDA events around `calls` calls, the L2 cache overwritten before them; of one call."""
    import torch

    cache = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(TIMES_L2 * cache, dtype=torch.uint8, device="cuda")
    for _ in range(WARM_UPS):
        result = call()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    samples = []
    begin = time.perf_counter()
    while len(samples) < LEAST_SAMPLES or (
            len(samples) < MOST_SAMPLES and 1e3 * (time.perf_counter() - begin) < budget_ms):
        flush.zero_()
        start.record()
        for _ in range(calls):
            result = call()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) / calls)
    if not torch.isfinite(result).all():
        raise RuntimeError("the peer's result holds no finite numbers")
    return statistics.median(samples)


def sdpa(backend, workload, backward=False):
    """A call of scaled_dot_product_attention on fresh random data, or of its gradients."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = random_qkv(workload)
    causal = "mask_mod" in workload["spec"]

    def call():
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return backward_of(call, (q, k, v)) if backward else call


def has_flash_attention_4():
    try:
        return importlib.util.find_spec("flash_attn.cute") is not None
    except ModuleNotFoundError:
        return False


def flash_attention_4(workload, backward=False):
    """A call of flash_attn_func on fresh random data, [batch, rows, heads, head_dim], or of its gradients."""
    from flash_attn.cute.interface import flash_attn_func

    q, k, v = (tensor.transpose(1, 2).contiguous() for tensor in random_qkv(workload))
    causal = "mask_mod" in workload["spec"]

    def call():
        result = flash_attn_func(q, k, v, causal=causal)
        return result[0] if isinstance(result, tuple) else result

    return backward_of(call, (q, k, v)) if backward else call


def backward_of(forward, tensors):
    """A call of the gradients of `forward`'s result with respect to `tensors`."""
    import torch

    for tensor in tensors:
        tensor.requires_grad_()
    out = forward()
    dout = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, tensors, dout, retain_graph=True)[0]


def flex(workload, buffers):
    """A call of compiled FlexAttention, with a block mask made beforehand."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.reset()
    score_mod, mask_mod = flex_snippets(workload["spec"]["name"], buffers)
    q_len, kv_len = workload["q_len"], workload["kv_len"]
    mask = create_block_mask(mask_mod, None, None, q_len, kv_len, device="cuda") if mask_mod else None
    compiled = torch.compile(flex_attention, dynamic=False)
    q, k, v = random_qkv(workload)
    return lambda: compiled(q, k, v, score_mod=score_mod, block_mask=mask)


def flex_snippets(name, buffers):
    """score_mod and mask_mod of a workload of the suite mods."""
    import torch

    slopes, doc, bias = (buffers.get(key) for key in ("slopes", "doc", "bias"))

    def causal(b, h, i, j):
        return i >= j

    def documents(b, h, i, j):
        return (i >= j) & (doc[i] == doc[j])

    def natten(b, h, i, j):
        return ((i // 128 - j // 128).abs() <= 6) & ((i % 128 - j % 128).abs() <= 6)

    def alibi(score, b, h, i, j):
        return score + slopes[h] * (j - i)

    def softcap(score, b, h, i, j):
        return 50.0 * torch.tanh(score / 50.0)

    return {
        "dense": (None, None),
        "causal": (None, causal),
        "window_1024": (None, lambda b, h, i, j: (i >= j) & (i - j < 1024)),
        "documents_causal": (None, documents),
        "prefix_2048": (None, lambda b, h, i, j: (i >= j) | (j < 2048)),
        "natten_2d": (None, natten),
        "alibi_causal": (alibi, causal),
        "alibi_documents": (alibi, documents),
        "softcap_causal": (softcap, causal),
        "alibi": (alibi, None),
        "softcap": (softcap, None),
        "relative_bias": (lambda s, b, h, i, j: s + bias[i - j + 8192], None),
    }[name]


def random_qkv(workload):
    import torch

    shape = [workload["batch"], workload["heads"], workload["q_len"], workload["spec"]["head_dim"]]
    return [torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)]


def random_buffers(spec, workload):
    """Buffers that both sides read: slopes of ALiBi, documents of uneven lengths, a table of bias."""
    import torch

    heads, length = workload["heads"], workload["q_len"]
    ends = torch.sort(torch.randperm(length - 1)[:11] + 1).values
    makers = {"slopes": lambda: torch.exp2(-8.0 * torch.arange(1, heads + 1) / heads),
              "doc": lambda: torch.searchsorted(ends, torch.arange(length), right=True).to(torch.int32),
              "bias": lambda: torch.randn(2 * 8192)}
    return {name: makers[name]() for name in spec.get("buffers", {})}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        array = tensor.contiguous().numpy()
        dtype = {"float32": "F32", "int32": "I32"}[str(array.dtype)]
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# ---- rows ------------------------------------------------------------------------------------------


def take_turns(ours, workload, peers, options, calls):
    """Rounds in which each is measured once, in the reverse order every other round; the median of each. A peer that
    fails says why."""
    samples = {name: [] for name in [*peers, "ours"]}
    problems = {}
    row = {}
    for i in range(options.rounds):
        for name in reversed(samples) if i % 2 else list(samples):
            if name == "ours":
                row = ours.measure(workload, options.budget_ms)
                samples[name].append(row["ms"])
            elif name not in problems:
                try:
                    samples[name].append(median_ms(peers[name], options.budget_ms, calls))
                except Exception as error:  # PyTorch raises what it likes
                    problems[name] = str(error).strip().splitlines()[0][:200]
    ms = {name: statistics.median(times) for name, times in samples.items() if times}
    return {"ms": ms, "problems": problems, "kept": row["kept"], "tactic": row["tactic"],
            "operations": row["gflops"] * row["ms"] * 1e6, "spread": spread(samples)}


def spread(samples):
    """The greatest of a row's rounds over the least, for each."""
    return {name: max(times) / min(times) for name, times in samples.items() if times}


def prepared(makers, problems):
    calls = {}
    for name, maker in makers.items():
        try:
            calls[name] = maker()
        except Exception as error:
            problems[name] = str(error).strip().splitlines()[0][:200]
    return calls


def dense_name(workload):
    form = "causal" if "mask_mod" in workload["spec"] else "full"
    return f"d{workload['spec']['head_dim']} {form} {workload['q_len'] // 1024}k"


def peers_of_suites():
    dense = ["cudnn", "fa2"] + (["fa4"] if has_flash_attention_4() else [])
    return {"dense": dense, "mods": ["flex"], "backward": dense}


def rows_of(suite, ours, options):
    """Measures the rows of a suite one by one."""
    import torch

    backward = suite == "backward"
    for workload in ours.workloads("dense" if backward else suite):
        name = workload["spec"]["name"] if suite == "mods" else dense_name(workload)
        if options.only and not any(word in name for word in options.only):
            continue
        buffers = random_buffers(workload["spec"], workload)
        workload["seed"] = time.time_ns() % 10**9
        with tempfile.TemporaryDirectory() as folder:
            if buffers:
                workload["buffers"] = os.path.join(folder, "buffers.safetensors")
                write_safetensors(workload["buffers"], buffers)
            on_gpu = {key: tensor.cuda() for key, tensor in buffers.items()}
            makers = {"cudnn": lambda: sdpa("CUDNN_ATTENTION", workload, backward),
                      "fa2": lambda: sdpa("FLASH_ATTENTION", workload, backward),
                      "fa4": lambda: flash_attention_4(workload, backward),
                      "flex": lambda: flex(workload, on_gpu)}
            makers = {name: makers[name] for name in peers_of_suites()[suite]}
            problems = {}
            row = take_turns(ours, workload, prepared(makers, problems), options, BACKWARD_CALLS if backward else 1)
        row["problems"] |= problems
        row |= {"suite": suite, "name": name, "head_dim": workload["spec"]["head_dim"]}
        row["ratio"] = {peer: ms / row["ms"]["ours"] for peer, ms in row["ms"].items() if peer != "ours"}
        torch.cuda.empty_cache()
        yield row


# ---- what is demanded ------------------------------------------------------------------------------


def mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def bar(what, value, least=None, most=None, unit="x"):
    met = value >= least if least is not None else value <= most
    wanted = f"at least {least:g}" if least is not None else f"at most {most:g}"
    return {"what": what, "value": value, "wanted": wanted, "unit": unit, "met": met}


def dense_bars(rows):
    for head_dim, causal, least in ((64, "full", 1.12), (64, "causal", 1.15), (128, "full", 1.07),
                                    (128, "causal", 1.15), (256, "full", 0.99), (256, "causal", 1.04)):
        key = f"d{head_dim} {causal}"
        ratios = [row["ratio"]["cudnn"] for row in rows
                  if row["name"].startswith(key) and "cudnn" in row["ratio"]]
        if ratios:
            yield bar(f"{key} / cuDNN, geometric mean", mean(ratios), least)
    ratios = {row["name"]: row["ratio"]["cudnn"] for row in rows if "cudnn" in row["ratio"]}
    if ratios:
        worst = min(ratios, key=ratios.get)
        yield bar(f"the least to cuDNN ({worst})", ratios[worst], 0.95)


def portable_dense_bars(rows):
    for name, least in (("d128 full 8k", 0.85), ("d128 causal 8k", 0.80)):
        for row in rows:
            if row["name"] == name and "fa2" in row["ratio"]:
                yield bar(f"{name} / FlashAttention-2", row["ratio"]["fa2"], least)


MASKED = ("causal", "window_1024", "documents_causal", "prefix_2048", "natten_2d", "alibi_causal",
          "alibi_documents")
SCORED = ("softcap_causal", "softcap", "relative_bias")


def flex_ratios(rows, names):
    return {row["name"]: row["ratio"]["flex"] for row in rows
            if row["name"] in names and "flex" in row["ratio"]}


def mod_bars(rows):
    ratios = flex_ratios(rows, MASKED)
    if ratios:
        worst = min(ratios, key=ratios.get)
        yield bar(f"{len(ratios)} masks and ALiBi / FlexAttention, geometric mean",
                  mean(ratios.values()), 1.6)
        yield bar(f"the least of them ({worst})", ratios[worst], 1.3)
    for name, ratio in flex_ratios(rows, SCORED).items():
        yield bar(f"{name} / FlexAttention", ratio, 2.4)
    ms = {row["name"]: row["ms"]["ours"] for row in rows}
    for name, most in (("alibi", 6), ("softcap", 22), ("relative_bias", 22)):
        if name in ms and "dense" in ms:
            yield bar(f"cost of {name} over no mod", 100 * (ms[name] / ms["dense"] - 1), most=most,
                      unit="%")


def portable_mod_bars(rows):
    for name, ratio in flex_ratios(rows, MASKED + SCORED).items():
        yield bar(f"{name} / FlexAttention", ratio, 0.9)


def start_bars(results):
    for row in results["start"]["rows"]:
        most = {"new snippet": 700, "kernel on disk": 10}.get(row["start"])
        if most:
            yield bar(f"first result, {row['start']}, beside CUDA's own start "
                      f"({row['ms']:.0f} ms in all)", row["beside_ms"], most=most, unit="ms")
    for row in results["launch"]["rows"]:
        yield bar(f"host time of a call, {row['variant']}, beside the driver's launch "
                  f"({1e3 * row['launch_ms']:.2f} us)", 1e3 * row["beside_ms"], most=1, unit="us")
    slowest = max(results["compile"]["rows"], key=lambda row: row["alone_least_ms"])
    yield bar(f"the slowest compile ({slowest['variant']}, {slowest['slowest']}; a median of "
              f"{slowest['alone_ms']:.0f} ms)", slowest["alone_least_ms"], most=800, unit="ms")


def backward_bars(rows):
    for row in rows:
        best = min(row["ratio"], key=row["ratio"].get, default=None)
        if best:
            least = 1.15 if row["head_dim"] == 256 else 0.95 if row["name"].endswith(" 2k") else 0.96
            yield bar(f"{row['name']} / {PEERS[best]}, the best", row["ratio"][best], least)


def bars_of(suite, rows):
    if suite == "backward":
        return list(backward_bars(rows))
    portable = all(row["tactic"].startswith("portable") for row in rows)
    if suite == "dense":
        return list(portable_dense_bars(rows) if portable else dense_bars(rows))
    return list(portable_mod_bars(rows) if portable else mod_bars(rows))


# ---- reports ---------------------------------------------------------------------------------------

PEERS = {"cudnn": "cuDNN", "fa2": "FlashAttention-2", "fa4": "FlashAttention-4", "flex": "FlexAttention",
         "ours": "Tilewright"}


def machine_facts(commit):
    import torch

    query = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                           stdout=subprocess.PIPE, text=True, check=False)
    return {"date": datetime.date.today().isoformat(), "gpu": torch.cuda.get_device_name(),
            "driver": (query.stdout.split() or ["unknown"])[0], "torch": torch.__version__,
            "cudnn": torch.backends.cudnn.version(), "commit": commit,
            "command": shlex.join(["python3", *sys.argv])}


def describe(facts):
    return (f"{facts['date']}, {facts['gpu']}, driver {facts['driver']}, commit {facts['commit']}, PyTorch "
            f"{facts['torch']}, cuDNN {facts['cudnn']}")


def cells(row, peers):
    """Milliseconds and TFLOP/s of everyone, then the ratios."""
    texts = [row["name"]]
    for peer in [*peers, "ours"]:
        ms = row["ms"].get(peer)
        texts.append(f"{ms:.3f} ({row['operations'] / ms / 1e9:.0f})" if ms else "-")
    return texts + [f"{row['ratio'][peer]:.2f}" if peer in row["ratio"] else "-" for peer in peers]


def header(peers):
    return (["workload"] + [f"{PEERS[peer]}, ms (TFLOP/s)" for peer in [*peers, "ours"]]
            + [f"x {PEERS[peer]}" for peer in peers])


def aligned(texts):
    return f"{texts[0]:18}" + "".join(f"{text:>20}" for text in texts[1:])


def print_rows(rows, peers):
    """Prints rows as they are measured, and returns them."""
    print(aligned(["workload"] + [PEERS[peer] for peer in [*peers, "ours"]]
                  + [f"x {PEERS[peer]}" for peer in peers]))
    kept = []
    for row in rows:
        print(aligned(cells(row, peers)), flush=True)
        for peer, problem in row["problems"].items():
            print(f"{'':18}{PEERS[peer]}: {problem}")
        kept.append(row)
    return kept


def print_bars(bars):
    for each in bars:
        verdict = "met" if each["met"] else "MISSED"
        print(f"{verdict:7} {each['what']}: {each['value']:.4g} {each['unit']}, {each['wanted']}")


def markdown(report):
    """The same as tables for docs/performance.md."""
    lines = [describe(report["machine"]), "", "```", report["machine"]["command"], "```", ""]
    for suite, peers in peers_of_suites().items():
        rows = [row for row in report["rows"] if row["suite"] == suite]
        if not rows:
            continue
        names = header(peers)
        lines += ["| " + " | ".join(names) + " |", "| --- |" + " ---: |" * (len(names) - 1)]
        lines += ["| " + " | ".join(cells(row, peers)) + " |" for row in rows]
        lines += ["", "Tactics: " + "; ".join(sorted({row["tactic"] for row in rows})) + ".", ""]
    if report["bars"]:
        lines += ["| bar | measured | wanted | |", "| --- | ---: | ---: | --- |"]
        lines += [f"| {each['what']} | {each['value']:.4g} {each['unit']} | {each['wanted']} | "
                  f"{'met' if each['met'] else 'missed'} |" for each in report["bars"]]
    return "\n".join(lines) + "\n"


def chart(rows, path):
    """Bars of the ratios, with a line at 1."""
    bars = [(f"{row['name']} / {PEERS[peer]}", ratio) for row in rows for peer, ratio in row["ratio"].items()]
    if not bars:
        return
    width, left, step = 720, 220, 18
    scale = (width - left - 60) / max(max(ratio for _, ratio in bars), 1)
    height = step * len(bars) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>']
    for row, (name, ratio) in enumerate(bars):
        y = 10 + row * step
        colour = "#0072b2" if ratio >= 1 else "#d55e00"
        parts.append(f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{name}</text>'
                     f'<rect x="{left}" y="{y}" width="{ratio * scale:.1f}" height="{step - 4}" fill="{colour}"/>'
                     f'<text x="{left + ratio * scale + 4:.1f}" y="{y + 11}">{ratio:.2f}</text>')
    x = left + scale
    parts.append(f'<line x1="{x:.1f}" y1="4" x2="{x:.1f}" y2="{height - 14}" stroke="#000" '
                 'stroke-dasharray="3 3"/>'
                 f'<text x="{x:.1f}" y="{height - 3}" text-anchor="middle">as fast as the peer</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n")


# ---- the command -----------------------------------------------------------------------------------


def commit_of(folder):
    result = subprocess.run(["git", "-C", folder, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False)
    return result.stdout.strip() or "unknown"


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, help="the executable")
    parser.add_argument("--suite", choices=["dense", "mods", "backward", "start", "all"], default="all")
    parser.add_argument("--only", action="append", help="rows whose name contains this; may be repeated")
    parser.add_argument("--tactic", help="force a tactic of Tilewright: portable")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each in a row (default 3)")
    parser.add_argument("--budget-ms", type=float, default=150, help="of measuring in a turn (default 150)")
    parser.add_argument("--commit", help="for the report (default: git's)")
    parser.add_argument("--json", help="a file for everything that was measured")
    parser.add_argument("--markdown", help="a file for the tables")
    parser.add_argument("--chart", help="an SVG file for the ratios")
    return parser.parse_args()


def main():
    options = read_options()
    ours = Tilewright(options.tilewright, options.tactic)
    report = {"machine": machine_facts(options.commit or commit_of(os.path.dirname(__file__) or ".")),
              "rows": [], "bars": []}
    print(describe(report["machine"]))
    for suite, peers in peers_of_suites().items():
        if options.suite != suite and (options.suite != "all" or suite == "backward"):
            continue
        print(f"\n{suite}: bf16; ms (TFLOP/s over the elements that are kept), then how much faster")
        measured = TilewrightBackward(options.tilewright, options.tactic) if suite == "backward" else ours
        rows = print_rows(rows_of(suite, measured, options), peers)
        bars = bars_of(suite, rows)
        print_bars(bars)
        report["rows"] += rows
        report["bars"] += bars
    ours.close()
    if options.suite in ("start", "all"):
        report["own"] = {suite: ours.command("--suite", suite, "--json")
                         for suite in ("start", "launch", "compile")}
        bars = list(start_bars(report["own"]))
        print("\nstart")
        print_bars(bars)
        report["bars"] += bars
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(markdown(report))
    if options.chart:
        chart(report["rows"], options.chart)


if __name__ == "__main__":
    main()
