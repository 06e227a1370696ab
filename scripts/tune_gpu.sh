#!/usr/bin/env bash
# tune_gpu.sh TILEWRIGHT [DEVICE [COUNT [SEED]]]: `tune` of random specs and sizes, and a table: what it gained, and the
# chosen tactic's time to the remembered one's when both are measured again. Ends with status 1 if a candidate was wrong.
#
# COUNT  how many (10)
# SEED   makes the same sizes again (29)
# MOST   products of a call at most (3e11: some milliseconds)
set -euo pipefail
python3 - "$1" "${2:-cuda}" "${3:-10}" "${4:-29}" <<'PYTHON'
import json, os, random, subprocess, sys, tempfile, time

tilewright, device, count, seed = sys.argv[1:]
dice = random.Random(int(seed))
MASKS = {"none": "", "causal": "q_idx >= kv_idx", "window": "abs(q_idx - kv_idx) < 500"}
MOST_PRODUCTS = float(os.environ.get("MOST", "3e11"))


def random_call():
    head_dim = dice.choice([64, 72, 80, 96, 112, 128, 160, 192, 256])
    kv_heads, group, batch = dice.choice([1, 2, 4, 8]), dice.choice([1, 2, 4, 8]), dice.randint(1, 4)
    q_len = dice.randint(600, 9000)
    kv_len = q_len if dice.random() < 0.7 else dice.randint(600, 9000)
    while batch * kv_heads * group * q_len * kv_len * head_dim > MOST_PRODUCTS:
        if batch * group == 1:  # then rows
            q_len, kv_len = q_len // 2, kv_len // 2
        batch, group = max(1, batch // 2), max(1, group // 2)
    mask = dice.choice(list(MASKS))
    spec = {"dtype": dice.choice(["bf16", "f16"]), "head_dim": head_dim}
    if MASKS[mask]:
        spec["mask_mod"] = MASKS[mask]
    return spec, mask, [batch, kv_heads * group, kv_heads, q_len, kv_len]


def run(*words, **environment):
    done = subprocess.run([tilewright, *words, "--device", device, "--json"], capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout)


def measured(spec, shape, tuned):
    rows = run("bench", "--spec", spec, "--inputs", "random:" + shape, "--budget-ms", "150", TILEWRIGHT_TUNED=tuned)
    return rows["rows"][0]["ms"]


wrong = 0
print(f"{'call':44} {'gain':>7} {'again':>7} {'tried':>5} {'s':>5}  tactic")
with tempfile.TemporaryDirectory() as folder:
    for number in range(int(count)):
        spec, mask, sizes = random_call()
        path, shape = f"{folder}/{number}.json", ",".join(map(str, sizes))
        with open(path, "w") as file:
            json.dump(spec, file)
        begin = time.monotonic()
        tuning = run("tune", path, "--shape", shape)
        seconds = time.monotonic() - begin
        chosen = measured(path, shape, "0")
        again = chosen / measured(path, shape, "1")
        wrong += bool(tuning["wrong"])
        name = f"{spec['dtype']} d{spec['head_dim']} {mask} {shape}"
        found_wrong = f"  WRONG: {tuning['wrong']}" if tuning["wrong"] else ""
        print(f"{name:44} {100 * (tuning['gain'] - 1):6.1f}% {again:7.3f} {tuning['candidates']:5} "
              f"{seconds:5.1f}  {tuning['tactic']}{found_wrong}", flush=True)
sys.exit(wrong > 0)
PYTHON
