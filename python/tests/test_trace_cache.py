"""Traces are kept by what they depend on: what changes is seen, what stays is not traced again."""

import collections
import dataclasses
import functools
import gc
import os
import threading
import types
import weakref

import numpy as np
import pytest
import reference

import tilewright as tw
from tilewright._trace import snippet as tracer


@pytest.fixture
def traces(monkeypatch):
    """How often a mod has been traced."""
    counted = []
    original = tracer._traced

    def count(*args):
        counted.append(args[0])
        return original(*args)

    monkeypatch.setattr(tracer, "_traced", count)
    return counted


GAIN = 1.0


class Box:
    def __init__(self, value):
        self.value = value

    def mod(self, score, b, h, q_idx, kv_idx):
        return score * self.value


class Fixed:
    value = 1.0


def closure(value):
    return lambda score, b, h, q_idx, kv_idx: score * value


def default(value):
    def mod(score, b, h, q_idx, kv_idx, gain=value):
        return score * gain

    return mod


def keyword(value):
    def mod(score, b, h, q_idx, kv_idx, *, gain=value):
        return score * gain

    return mod


def partial(value):
    def mod(gain, score, b, h, q_idx, kv_idx):
        return score * gain

    return functools.partial(mod, value)


def helper(value):
    def times(x):
        return x * value

    return lambda score, b, h, q_idx, kv_idx: times(score)


def nested(value):
    return lambda score, b, h, q_idx, kv_idx: (lambda x: x * value)(score)


def global_number(value):
    global GAIN
    GAIN = value
    return reads_global


def reads_global(score, b, h, q_idx, kv_idx):
    return score * GAIN


def attribute(value):
    HELD.value = value
    return reads_attribute


HELD = Box(None)


def reads_attribute(score, b, h, q_idx, kv_idx):
    return score * HELD.value


def class_attribute(value):
    Fixed.value = value
    return lambda score, b, h, q_idx, kv_idx: score * Fixed.value


def module(value):
    found = types.ModuleType("settings")
    found.gain = value
    return lambda score, b, h, q_idx, kv_idx: score * found.gain


MODULE = types.ModuleType("settings")


def changed_module(value):
    MODULE.gain = value
    return reads_module


def reads_module(score, b, h, q_idx, kv_idx):
    return score * MODULE.gain


TABLE, LIST, TREE = {"gain": 1.0}, [1.0], {"a": [{"b": (1.0,)}]}


def dict_item(value):
    TABLE["gain"] = value
    return lambda score, b, h, q_idx, kv_idx: score * TABLE["gain"]


def list_item(value):
    LIST[0] = value
    return lambda score, b, h, q_idx, kv_idx: score * LIST[0]


def deep_item(value):
    TREE["a"][0]["b"] = (value,)
    return lambda score, b, h, q_idx, kv_idx: score * TREE["a"][0]["b"][0]


def length(value):
    items = [0] * int(2 * value)
    return lambda score, b, h, q_idx, kv_idx: score * (len(items) / 2)


def bound_method(value):
    return Box(value).mod


def array_contents(value):
    GAINS[:] = value
    return lambda score, b, h, q_idx, kv_idx: score * GAINS[h]


GAINS = np.ones(4, np.float32)


def contents_at_once(value):
    GAINS[:] = value
    return lambda score, b, h, q_idx, kv_idx: score * float(GAINS.max())


def derived_array(value):
    GAINS[:] = value / 2
    return lambda score, b, h, q_idx, kv_idx: score * (GAINS * 2)[h]


def function_of_numpy(value):
    GAINS[:] = value
    return lambda score, b, h, q_idx, kv_idx: score * np.mean(GAINS)


def another_array(value):
    gains = np.full(4, value, np.float32)
    return lambda score, b, h, q_idx, kv_idx: score * gains[h]


def another_dtype(value):
    gains = np.full(4, value, np.float32 if value == 1 else np.float64)
    return lambda score, b, h, q_idx, kv_idx: score * gains[h]


def another_length(value):
    gains = np.full(4 + int(value), value, np.float32)
    return lambda score, b, h, q_idx, kv_idx: score * gains[-1]


def two_arrays_or_one(value):
    a = np.full(4, 1, np.float32)
    other = a if value == 1 else np.full(4, value, np.float32)
    return lambda score, b, h, q_idx, kv_idx: score * a[h] * other[h]


def scalar_default(value):
    return lambda score, b, h, q_idx, kv_idx: score * tw.scalar("gain", value)


def same_code_other_helper(value):
    def one(x):
        return x * 1.0

    def other(x):
        return x * value

    used = one if value == 1 else other
    return lambda score, b, h, q_idx, kv_idx: used(score)


def random_number(value):
    NUMBERS.next = value
    return lambda score, b, h, q_idx, kv_idx: score * NUMBERS.draw()


class Numbers:
    next = 1.0

    def draw(self):
        return type(self).next if self.next is None else self.next


NUMBERS = Numbers()

ALLOWED, QUEUE, ORDERED = {1.0}, collections.deque([1.0]), collections.OrderedDict(gain=1.0)
Pair = collections.namedtuple("Pair", "gain other")


def mutable_set(value):
    ALLOWED.clear()
    ALLOWED.add(value)
    return lambda score, b, h, q_idx, kv_idx: score * (2.0 if 2.0 in ALLOWED else 1.0)


def queue(value):
    QUEUE[0] = value
    return lambda score, b, h, q_idx, kv_idx: score * QUEUE[0]


def ordered(value):
    ORDERED["gain"] = value
    return lambda score, b, h, q_idx, kv_idx: score * ORDERED["gain"]


def named_tuple(value):
    pair = Pair(np.full(4, value, np.float32), 3)
    return lambda score, b, h, q_idx, kv_idx: score * pair.gain[h]


@dataclasses.dataclass
class Slots:
    __slots__ = ("gain", "table")
    gain: float
    table: object


def slots(value):
    held = Slots(value, np.ones(4, np.float32))
    return lambda score, b, h, q_idx, kv_idx: score * held.gain * held.table[h]


def environment(value):
    if value == 1.0:
        os.environ.pop("TEST_GAIN", None)
    else:
        os.environ["TEST_GAIN"] = str(value)
    return lambda score, b, h, q_idx, kv_idx: score * float(os.environ.get("TEST_GAIN", "1"))


class Classes:
    gain = 1.0

    def mod(self, score, b, h, q_idx, kv_idx):
        return score * self.__class__.gain


def class_of_an_object(value):
    Classes.gain = value
    return Classes().mod


def cached_helper(value):
    @functools.lru_cache
    def gain():
        return value

    return lambda score, b, h, q_idx, kv_idx: score * gain()


def nonlocal_value(value):
    def change(new):
        nonlocal held
        held = new

    held = 7.0
    change(value)
    return lambda score, b, h, q_idx, kv_idx: score * held


def replaced_helper(value):
    global scale_by
    exec(f"def scale_by(x):\n    return x * {value}", globals())
    return reads_helper


def reads_helper(score, b, h, q_idx, kv_idx):
    return scale_by(score)  # noqa: F821


def shadowed_builtin(value):
    if value == 1.0:
        globals().pop("abs", None)
    else:
        globals()["abs"] = lambda x: x * value
    return reads_builtin


def reads_builtin(score, b, h, q_idx, kv_idx):
    return score * abs(1.0)


WAYS = [
    closure, default, keyword, partial, helper, nested, global_number, attribute, class_attribute, module, changed_module,
    dict_item, list_item, deep_item, length, bound_method, array_contents, contents_at_once, derived_array,
    function_of_numpy, another_array, another_dtype, another_length, two_arrays_or_one, scalar_default,
    same_code_other_helper, random_number, mutable_set, queue, ordered, named_tuple, slots, environment, class_of_an_object,
    cached_helper, nonlocal_value, replaced_helper, shadowed_builtin,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_changed_value_is_seen(qkv, way):
    for value in (1.0, 1.0, 2.0, 1.0, 2.0, 2.0):
        out = tw.flex_attention(*qkv, way(value))
        assert reference.close(out, reference.attention(*qkv, lambda s, b, h, i, j: s * value)[0]), (way, value)


@pytest.mark.parametrize("way", [closure, default, keyword, partial, helper, nested, global_number, attribute,
                                 changed_module, dict_item, deep_item, bound_method, array_contents, another_array])  # fmt: skip
def test_nothing_is_traced_twice(qkv, way, traces):
    for value in (3.0, 3.0, 5.0, 3.0, 5.0):
        out = tw.flex_attention(*qkv, way(value))
        assert reference.close(out, reference.attention(*qkv, lambda s, b, h, i, j: s * value)[0])
    assert len(traces) <= (1 if way in (array_contents, another_array) else 2)


def test_masks_and_packed_calls_keep_traces_too(qkv, traces):
    def at_most(n):
        return lambda b, h, q_idx, kv_idx: kv_idx < n

    rows = [x[0].swapaxes(0, 1).copy() for x in qkv]
    for n in (8, 16, 8, 16):
        mask = tw.create_block_mask(at_most(n), None, None, 40, 56)
        out = tw.flex_attention(*qkv, block_mask=mask)
        wanted = reference.attention(*qkv, None, lambda b, h, i, j: j < n)[0]
        assert reference.close(out, wanted)
        packed = tw.varlen_attention(*rows, [0, 40], [0, 56], mask_mod=at_most(n))
        assert reference.close(packed.swapaxes(0, 1), wanted[0])
    assert len(traces) <= 4  # of masks and of packed calls, whose sizes differ


def test_signs_of_zero_and_kinds_of_numbers():
    codes = [tw.trace(closure(value)).code for value in (0.0, -0.0, 1, True, 1.0)]
    assert codes[0] != codes[1] and codes[2] != codes[4] and codes[3] != codes[4]


def test_calls_keep_no_array_alive(qkv):
    def call():
        gains = np.ones(4, np.float32)
        tw.flex_attention(*qkv, lambda score, b, h, q_idx, kv_idx: score * gains[h])
        return weakref.ref(gains)

    call()
    seen = call()  # by a call that is kept
    gc.collect()
    assert seen() is None


def test_a_rebuilt_mask_is_used(qkv):
    limit = np.array([8], np.int32)
    mask = tw.create_block_mask(lambda b, h, q_idx, kv_idx: kv_idx < limit[0], None, None, 40, 56, BLOCK_SIZE=16)
    for n in (8, 40, 20):
        limit[0] = n
        mask.rebuild()
        out = tw.flex_attention(*qkv, block_mask=mask)
        assert reference.close(out, reference.attention(*qkv, None, lambda b, h, i, j: j < n)[0])


def test_refusals_are_the_same_for_calls_that_are_ready(qkv):
    q, k, v = qkv
    tw.flex_attention(q, k, v)
    for bad in ("a", True, [1.0]):
        with pytest.raises(tw.Error, match="scale is"):
            tw.flex_attention(q, k, v, scale=bad)
    with pytest.raises(tw.Error, match="enable_gqa"):
        tw.flex_attention(q, k, v, enable_gqa=0.0)
    with pytest.raises(tw.Error, match=r"\bkey\b"):
        tw.flex_attention(q, np.asfortranarray(k), v)
    inner = tw.Attention({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx"}, device="cpu")
    with pytest.raises(tw.Error, match="made by Attention.block_mask"):
        tw.flex_attention(q, k, v, block_mask=inner.block_mask(q_len=40, kv_len=56))


def test_threads_with_arrays_of_their_own(qkv):
    q, k, v = (x[:1, :, :16] for x in qkv)
    wanted = {value: tw.flex_attention(q, k, v, another_array(value)) for value in (1.0, 2.0, 3.0, 4.0)}
    wrong = []

    def work(value):
        for _ in range(300):
            if not (tw.flex_attention(q, k, v, another_array(value)) == wanted[value]).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in wanted]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
