"""The examples' snippets as Python mods: each function takes an example's buffers and scalars by name, and returns its
score_mod and mask_mod for tw.flex_attention and tw.create_block_mask; None where it has none."""

import numpy as np


def additive_bias(bias):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + bias[b, h, q_idx, kv_idx]

    return score_mod, None


def alibi(slopes):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    return score_mod, mask_mod


def alibi_documents(slopes, doc):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (doc[b, q_idx] == doc[b, kv_idx])

    return score_mod, mask_mod


def block_diagonal(side=100):
    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx // side == kv_idx // side

    return None, mask_mod


def causal():
    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    return None, mask_mod


def cross_attention(is_key, key_bias):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + key_bias[b, kv_idx]

    def mask_mod(b, h, q_idx, kv_idx):
        return is_key[b, kv_idx]

    return score_mod, mask_mod


def dilated(window=256, dilation=4):
    def mask_mod(b, h, q_idx, kv_idx):
        distance = q_idx - kv_idx
        return (distance >= 0) & (distance < window) & (distance % dilation == 0)

    return None, mask_mod


def first_tokens(num_first=4, window=256):
    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & ((kv_idx < num_first) | (q_idx - kv_idx < window))

    return None, mask_mod


def global_local(window=128, num_global=4):
    def mask_mod(b, h, q_idx, kv_idx):
        return (abs(q_idx - kv_idx) <= window) | (q_idx < num_global) | (kv_idx < num_global)

    return None, mask_mod


def head_temperature(log_temperature, group=2):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score * np.minimum(np.exp(log_temperature[h // group]), 100.0)

    return score_mod, None


def natten_2d(height=16, width=16, radius=3):
    def mask_mod(b, h, q_idx, kv_idx):
        # At a border the window moves inwards, so that every pixel sees as many neighbours.
        row = np.clip(q_idx // width, radius, height - 1 - radius)
        column = np.clip(q_idx % width, radius, width - 1 - radius)
        return (abs(kv_idx // width - row) <= radius) & (abs(kv_idx % width - column) <= radius)

    return None, mask_mod


def packed_documents(document):
    def mask_mod(b, h, q_idx, kv_idx):
        return document[b, q_idx] == document[b, kv_idx]

    return None, mask_mod


def padding_mask(length):
    def mask_mod(b, h, q_idx, kv_idx):
        return kv_idx < length[b]

    return None, mask_mod


def prefix_lm(prefix_length):
    def mask_mod(b, h, q_idx, kv_idx):
        return (kv_idx < prefix_length[b]) | (q_idx >= kv_idx)

    return None, mask_mod


def relative_bias(bias):
    reach = (bias.shape[1] - 1) // 2

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + bias[h, np.clip(kv_idx - q_idx, -reach, reach) + reach]

    return score_mod, None


def shared_prefix(branch, prefix_length=64):
    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & ((kv_idx < prefix_length) | (branch[q_idx] == branch[kv_idx]))

    return None, mask_mod


def sliding_window(window=256):
    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx < window)

    return None, mask_mod


def softcap(cap=50.0):
    def score_mod(score, b, h, q_idx, kv_idx):
        return cap * np.tanh(score / cap)

    return score_mod, None


def t5_bias(bias):
    def score_mod(score, b, h, q_idx, kv_idx):
        # 16 exact distances, then one bucket for each doubling, as T5 has on its decoder's side.
        distance = np.maximum(q_idx - kv_idx, 0)
        bucket = np.minimum(distance, 16)
        for i in range(1, 16):
            bucket = bucket + np.where(distance >= (16 << i), 1, 0)
        return score + bias[h, bucket]

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    return score_mod, mask_mod


def tree_decoding(ancestors, first=0):
    def mask_mod(b, h, q_idx, kv_idx):
        # Keys before the draft are all visible; in the draft, a token sees its ancestors.
        drafted = np.minimum(np.maximum(kv_idx - first, 0), 62)
        return (kv_idx < first) | (((ancestors[b, q_idx - first] >> drafted) & 1) != 0)

    return None, mask_mod


def windowed_softcap(cap=50.0, window=256):
    def score_mod(score, b, h, q_idx, kv_idx):
        return cap * np.tanh(score / cap)

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx < window)

    return score_mod, mask_mod
