"""Learns a bias by distance, as T5 has it, from a teacher's outputs: python examples/jax/train.py"""

import jax
import jax.numpy as jnp

import tilewright as tw

BUCKETS = 32
RATES = {"gain": 2.0, "bias": 40.0}


def attend(parameters, q, k, v):
    """Causal attention with a learnt bias for each head and distance."""

    def score_mod(score, b, h, q_idx, kv_idx):
        distance = jnp.clip(q_idx - kv_idx, 0, BUCKETS - 1)
        return score * parameters["gain"] + parameters["bias"][h, distance]

    mask = tw.create_block_mask(
        lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, q.shape[2], k.shape[2]
    )
    return tw.flex_attention(q, k, v, score_mod, mask)


def loss(parameters, q, k, v, wanted):
    return jnp.mean((attend(parameters, q, k, v) - wanted) ** 2)


@jax.jit
def step(parameters, q, k, v, wanted):
    value, gradients = jax.value_and_grad(loss)(parameters, q, k, v, wanted)
    return value, jax.tree.map(
        lambda p, g, rate: p - rate * g, parameters, gradients, RATES
    )


def train(steps=100, heads=4, length=64):
    """The losses of all steps."""
    teacher = {
        "gain": jnp.float32(1.5),
        "bias": jnp.linspace(1, -2, heads * BUCKETS).reshape(heads, BUCKETS),
    }
    student = {"gain": jnp.float32(1.0), "bias": jnp.zeros((heads, BUCKETS))}
    losses, key = [], jax.random.key(0)
    for _ in range(steps):
        key, *keys = jax.random.split(key, 4)
        q, k, v = (jax.random.normal(one, (2, heads, length, 32)) for one in keys)
        value, student = step(student, q, k, v, attend(teacher, q, k, v))
        losses.append(float(value))
    return losses, student


if __name__ == "__main__":
    losses, student = train()
    print(
        f"loss {losses[0]:.2e} -> {losses[-1]:.2e}, gain {float(student['gain']):.2f}"
    )
