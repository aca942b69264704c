#!/usr/bin/env python3
"""Greedy continuations of the shipped model, computed apart from Doppler: numpy in double precision on the
dequantised weights of a GGUF file (F32, Q4_K, Q6_K; architecture llama).

    tools/make_story_references.py models/storyteller.gguf PROMPTS.json OUT.json

PROMPTS.json: a list of token id lists. OUT.json: [{"prompt": ids, "greedy": 64 ids, "margin": smallest top-two gap}].
"""
import json
import struct
import sys

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STEPS = 64


def read_gguf(path):
    data = open(path, "rb").read()
    at = 0

    def take(code):
        nonlocal at
        value = struct.unpack_from("<" + code, data, at)[0]
        at += struct.calcsize("<" + code)
        return value

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return data[at - size:at].decode("utf-8", "replace")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            element, count = take("I"), take("Q")
            return [value(element) for _ in range(count)]
        return take(SCALARS[kind])

    assert take("I") == 0x46554747
    take("I")
    n_tensors, n_keys = take("Q"), take("Q")
    keys = {}
    for _ in range(n_keys):
        name = text()
        keys[name] = value(take("I"))
    infos = []
    for _ in range(n_tensors):
        name = text()
        shape = [take("Q") for _ in range(take("I"))][::-1]
        infos.append((name, shape, take("I"), take("Q")))
    align = keys.get("general.alignment", 32)
    base = (at + align - 1) // align * align
    return keys, {n: dequantise(data, base + o, s, t) for n, s, t, o in infos}


def dequantise(data, at, shape, kind):
    count = int(np.prod(shape))
    if kind == 0:
        return np.frombuffer(data, "<f4", count, at).astype(np.float64).reshape(shape)
    blocks = count // 256
    if kind == 12:  # Q4_K: d, dmin, 12 bytes of 6-bit scales and mins, 128 bytes of nibbles
        raw = np.frombuffer(data, np.uint8, blocks * 144, at).reshape(blocks, 144)
        d, dmin = (raw[:, i:i + 2].copy().view("<f2").astype(np.float64) for i in (0, 2))
        s = raw[:, 4:16].astype(np.int64)
        scale = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | (s[:, :4] >> 6 << 4)], 1)
        least = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | (s[:, 4:8] >> 6 << 4)], 1)
        nibbles = raw[:, 16:].reshape(blocks, 4, 32)
        q = np.stack([nibbles & 15, nibbles >> 4], 2).reshape(blocks, 8, 32)
        out = (d * scale)[:, :, None] * q - (dmin * least)[:, :, None]
    elif kind == 14:  # Q6_K: 128 low nibbles, 64 high pairs, 16 int8 scales, d
        raw = np.frombuffer(data, np.uint8, blocks * 210, at).reshape(blocks, 210)
        low = raw[:, :128].reshape(blocks, 2, 2, 32).astype(np.int64)
        high = raw[:, 128:192].reshape(blocks, 2, 1, 32).astype(np.int64)
        nibble = np.concatenate([low & 15, low >> 4], 2)
        q = nibble | ((high >> np.array([0, 2, 4, 6]).reshape(1, 1, 4, 1)) & 3) << 4
        scale = raw[:, 192:208].view(np.int8).astype(np.float64)
        d = raw[:, 208:].copy().view("<f2").astype(np.float64)
        out = (d * scale)[:, :, None] * (q.reshape(blocks, 16, 16) - 32)
    else:
        raise SystemExit(f"type {kind} is not read here; F32, Q4_K and Q6_K are")
    return out.reshape(shape)


class Llama:
    def __init__(self, keys, weights):
        self.w, k = weights, lambda name: keys["llama." + name]
        self.layers, self.heads, self.kv_heads = k("block_count"), k("attention.head_count"), k("attention.head_count_kv")
        self.eps, self.dim = k("attention.layer_norm_rms_epsilon"), k("embedding_length") // k("attention.head_count")
        self.freq = keys.get("llama.rope.freq_base", 1e4) ** (-np.arange(0, self.dim, 2) / self.dim)
        self.cache = [([], []) for _ in range(self.layers)]
        self.pos = 0

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.w[name + ".weight"]

    def rotate(self, x):  # GGUF llama files pair neighbours
        angle = self.pos * self.freq
        even, odd = x[:, ::2], x[:, 1::2]
        out = np.empty_like(x)
        out[:, ::2] = even * np.cos(angle) - odd * np.sin(angle)
        out[:, 1::2] = even * np.sin(angle) + odd * np.cos(angle)
        return out

    def step(self, token):
        x = self.w["token_embd.weight"][token].copy()
        for i in range(self.layers):
            m = lambda name, v: self.w[f"blk.{i}.{name}.weight"] @ v
            h = self.norm(x, f"blk.{i}.attn_norm")
            q = self.rotate(m("attn_q", h).reshape(self.heads, self.dim))
            keys, values = self.cache[i]
            keys.append(self.rotate(m("attn_k", h).reshape(self.kv_heads, self.dim)))
            values.append(m("attn_v", h).reshape(self.kv_heads, self.dim))
            group = self.heads // self.kv_heads
            k, v = (np.repeat(np.array(c), group, 1) for c in (keys, values))
            logits = np.einsum("hd,thd->ht", q, k) / np.sqrt(self.dim)
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            x = x + m("attn_output", np.einsum("ht,thd->hd", p, v).ravel())
            h = self.norm(x, f"blk.{i}.ffn_norm")
            g = m("ffn_gate", h)
            x = x + m("ffn_down", g / (1 + np.exp(-g)) * m("ffn_up", h))
        self.pos += 1
        head = self.w.get("output.weight", self.w["token_embd.weight"])
        return head @ self.norm(x, "output_norm")


def main():
    keys, weights = read_gguf(sys.argv[1])
    out = []
    for prompt in json.load(open(sys.argv[2])):
        model, greedy, margin = Llama(keys, weights), [], np.inf
        for token in prompt:
            logits = model.step(token)
        while True:
            top = np.partition(logits, -2)[-2:]
            margin = min(margin, top[1] - top[0])
            greedy.append(int(np.argmax(logits)))
            if len(greedy) == STEPS:
                break
            logits = model.step(greedy[-1])
        out.append({"prompt": prompt, "greedy": greedy, "margin": float(margin)})
    with open(sys.argv[3], "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry) for entry in out) + "\n]\n")


if __name__ == "__main__":
    main()
