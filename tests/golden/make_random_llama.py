"""Makes small random Hugging Face folders of the llama and mistral architectures in sizes no published model has, each
with references (refs.safetensors) by the float64 forward pass below, in the form that golden_test reads.
  make_random_llama.py FOLDER [CASE...]     writes FOLDER/CASE/..., all rows of CASES without names
Needs only numpy. tests/data/families_generated.tar.xz holds the rows marked `keep`:
  make_random_llama.py FOLDER --keep && tar -C FOLDER --sort=name --mtime=@0 --owner=0 --group=0 -cJf ARCHIVE ."""

import json
import math
import os
import struct
import sys
import zlib

import numpy as np

PROMPT_A, PROMPT_B, GREEDY = 12, 48, 16
MARGIN = 0.01  # of the logits' root mean square, between the best and the second token: far above an f32 error

# hidden, heads, kv heads, head_dim, ffn, vocab, layers; then what differs from DEFAULTS.
DEFAULTS = dict(dtype="F32", style=4, window=None, rope=None, tied=False, biases="", act="silu", shards=1, keep=False,
                theta=10000.0, eps=1e-5, max_positions=512)
LINEAR = dict(rope_type="linear", factor=2.5)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
YARN_FULL = dict(YARN, beta_fast=16.0, beta_slow=2.0, truncate=False, attention_factor=0.9)
YARN_MSCALE = dict(YARN, mscale=0.8, mscale_all_dim=0.5)
CASES = {
    "h42_d2_v7": (42, 3, 1, 2, 33, 7, 2, dict(rope=LINEAR, keep=True)),
    "h42_d10_v7_f16": (42, 1, 1, 10, 33, 7, 1, dict(dtype="F16", style=5)),
    "h100_d10_llama3": (100, 7, 7, 10, 90, 100, 2, dict(rope=LLAMA3, style=5)),
    "h130_d6_yarn_f16": (130, 6, 2, 6, 257, 100, 2, dict(rope=YARN, dtype="F16", biases="qo")),
    "h130_d6_bias_v": (130, 6, 2, 6, 33, 100, 1, dict(biases="v", style=5)),
    "h256_d64_window_bf16": (256, 8, 1, 64, 33, 100, 1, dict(window=5, dtype="BF16")),
    "h520_d80_sharded_tied": (520, 3, 1, 80, 90, 100, 1, dict(tied=True, shards=3)),
    "h100_d20_v32003_f16": (100, 1, 1, 20, 90, 32003, 1, dict(tied=True, dtype="F16")),
    "h42_d128_v128256_bf16": (42, 1, 1, 128, 33, 128256, 1, dict(tied=True, dtype="BF16", style=5)),
    "h130_d96_partial": (130, 3, 1, 96, 90, 100, 1, dict(rope=dict(rope_type="default", partial_rotary_factor=0.25),
                                                        style=5)),
    "h64_d96_12_4": (64, 12, 4, 96, 90, 100, 1, dict(rope=YARN_MSCALE, style=5)),
    "h42_d256_yarn": (42, 3, 1, 256, 33, 100, 1, dict(rope=YARN_FULL, style=5, dtype="F16", keep=True)),
    "h100_d128_window1": (100, 8, 1, 128, 33, 100, 1, dict(window=1, dtype="BF16")),
    "h100_d20_window16": (100, 6, 2, 20, 257, 1000, 2, dict(window=16, style=5, dtype="F16")),
    "h100_d20_longrope_short": (100, 6, 2, 20, 33, 100, 1, dict(rope="longrope", original=96, max_positions=192)),
    "h100_d20_longrope_long": (100, 6, 2, 20, 33, 100, 1, dict(rope="longrope", original=8, max_positions=192, keep=True)),
    "h256_d20_7_7_biases": (256, 7, 7, 20, 33, 100, 1, dict(biases="qkvogud", dtype="BF16")),
    "h130_d10_mlp_biases_gelu": (130, 12, 4, 10, 90, 100, 2, dict(biases="gd", act="gelu_pytorch_tanh")),
    "h42_d6_gelu_erf": (42, 8, 1, 6, 90, 100, 2, dict(biases="u", act="gelu", dtype="F16")),
    "h520_d64_ffn512": (520, 8, 1, 64, 512, 1000, 1, dict(dtype="BF16")),
    "h256_d256_ffn512": (256, 3, 1, 256, 512, 1000, 2, dict(rope=LINEAR, style=5, eps=1e-6)),
    "h130_d80_theta": (130, 6, 2, 80, 257, 1000, 2, dict(theta=500000.0, dtype="BF16")),
    "h1_d2_v2": (1, 1, 1, 2, 1, 2, 1, dict()),
    "h3_d2_ffn1": (3, 2, 1, 2, 1, 5, 3, dict(window=2, dtype="F16", tied=True, keep=True)),
    "h60_d10_7_7_llama3": (60, 7, 7, 10, 33, 100, 2, dict(rope=LLAMA3, style=5, keep=True)),
    "h130_d6_yarn_f16_small": (130, 6, 2, 6, 33, 100, 1, dict(rope=YARN, dtype="F16", biases="qo", shards=2, keep=True)),
    "h42_d64_window_bf16": (42, 8, 1, 64, 33, 100, 1, dict(window=5, dtype="BF16", keep=True)),
    "h42_d96_partial": (42, 3, 1, 96, 33, 100, 1, dict(rope=dict(rope_type="default", partial_rotary_factor=0.25),
                                                      style=5, keep=True)),
    "h72_d20_7_7_biases": (72, 7, 7, 20, 33, 100, 1, dict(biases="qkvogud", dtype="BF16", keep=True)),
    "h58_d10_mlp_biases_gelu": (58, 12, 4, 10, 90, 100, 1, dict(biases="gd", act="gelu_pytorch_tanh", keep=True)),
}
PROJECTIONS = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
               "g": "mlp.gate_proj", "u": "mlp.up_proj", "d": "mlp.down_proj"}


def stored(values, dtype):
    """The values as the file will hold them, and the bytes; f32 keeps 13 significand bits, which compress."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    if dtype == "F16":
        half = np.asarray(values, np.float16)
        return half.astype(np.float64), half.tobytes()
    drop = 16 if dtype == "BF16" else 11
    bits = (bits + (1 << (drop - 1))) >> drop << drop
    rounded = bits.astype(np.uint32).view(np.float32)
    return rounded.astype(np.float64), (bits >> 16).astype(np.uint16).tobytes() if dtype == "BF16" else rounded.tobytes()


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def inverse_frequencies(case):
    """-> frequency of each rotating pair, factor on cosine and sine"""
    rope = case["rope"] or {}
    rotated = int(case["head_dim"] * rope.get("partial_rotary_factor", 1.0))
    base = case["theta"] ** (-np.arange(0, rotated, 2) / rotated)
    kind, factor = rope.get("rope_type", "default"), rope.get("factor", 1.0)
    if kind == "linear":
        return base / factor, 1.0
    if kind == "llama3":
        length, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
        turns = length * base / (2 * math.pi)  # within the original context
        part = np.clip((turns - low) / (high - low), 0, 1)
        return base * part + base / factor * (1 - part), 1.0
    if kind == "yarn":
        length = rope["original_max_position_embeddings"]
        ends = [rotated * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(case["theta"]))
                for turns in (rope.get("beta_fast", 32), rope.get("beta_slow", 1))]
        if rope.get("truncate", True):
            ends = [math.floor(ends[0]), math.ceil(ends[1])]
        low, high = max(ends[0], 0), min(ends[1], rotated - 1)
        high += 0.001 if low == high else 0
        part = np.clip((np.arange(rotated // 2) - low) / (high - low), 0, 1)
        scale = lambda m: 0.1 * m * math.log(factor) + 1
        attention = scale(1)
        if "mscale" in rope:
            attention = scale(rope["mscale"]) / scale(rope["mscale_all_dim"])
        return base / factor * part + base * (1 - part), rope.get("attention_factor", attention)
    if kind == "longrope":  # long factors when the context (64 in golden_test) is longer than the original one
        original = case["original"]
        factors = rope["long_factor"] if original < 64 else rope["short_factor"]
        return base / np.array(factors), math.sqrt(1 + math.log(case["max_positions"] / original) / math.log(original))
    return base, 1.0


def erf(x):
    return np.vectorize(math.erf)(x)


ACTIVATIONS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "gelu_pytorch_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


def forward(case, weights, tokens, last_only=False):
    """-> logits [T or 1, V], residual stream at the last position [L+1, H]"""
    rows, heads, kv_heads, dim = len(tokens), case["heads"], case["kv_heads"], case["head_dim"]
    norm = lambda x, name: x / np.sqrt((x * x).mean(-1, keepdims=True) + case["eps"]) * weights[name]
    frequencies, attention_factor = inverse_frequencies(case)
    angles = np.arange(rows)[:, None] * frequencies
    cosine, sine = (f(angles)[:, None] * attention_factor for f in (np.cos, np.sin))
    pairs = len(frequencies)

    def rotate(x):
        a, b, rest = x[..., :pairs], x[..., pairs:2 * pairs], x[..., 2 * pairs:]
        return np.concatenate([a * cosine - b * sine, b * cosine + a * sine, rest], -1)

    def linear(x, layer, letter):
        name = f"model.layers.{layer}.{PROJECTIONS[letter]}"
        return x @ weights[name + ".weight"].T + weights.get(name + ".bias", 0.0)

    distance = np.arange(rows)[:, None] - np.arange(rows)
    seen = (distance >= 0) & (distance < (case["window"] or rows))
    x = weights["model.embed_tokens.weight"][tokens]
    hidden = [x[-1]]
    for layer in range(case["layers"]):
        h = norm(x, f"model.layers.{layer}.input_layernorm.weight")
        q = rotate(linear(h, layer, "q").reshape(rows, heads, dim))
        k = rotate(linear(h, layer, "k").reshape(rows, kv_heads, dim)).repeat(heads // kv_heads, 1)
        v = linear(h, layer, "v").reshape(rows, kv_heads, dim).repeat(heads // kv_heads, 1)
        scores = np.where(seen, np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim), -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.einsum("hqk,khd->qhd", scores / scores.sum(-1, keepdims=True), v).reshape(rows, heads * dim)
        x = x + linear(y, layer, "o")
        h = norm(x, f"model.layers.{layer}.post_attention_layernorm.weight")
        x = x + linear(ACTIVATIONS[case["act"]](linear(h, layer, "g")) * linear(h, layer, "u"), layer, "d")
        hidden.append(x[-1])
    h = norm(x[-1:] if last_only else x, "model.norm.weight")
    head = weights["model.embed_tokens.weight" if case["tied"] else "lm_head.weight"]
    return h @ head.T, np.stack(hidden)


def random_weights(case, random):
    """-> name -> float64 as stored, name -> (dtype, shape, bytes)"""
    hidden, ffn, q, kv = case["hidden"], case["ffn"], case["heads"] * case["head_dim"], case["kv_heads"] * case["head_dim"]
    weights, files = {}, {}

    def add(name, values):
        weights[name], data = stored(values, case["dtype"])
        files[name] = (case["dtype"], values.shape, data)

    matrix = lambda name, n, k, gain: add(name, random.standard_normal((n, k)) * gain / math.sqrt(k))
    matrix("model.embed_tokens.weight", case["vocab"], hidden, math.sqrt(hidden))
    for layer in range(case["layers"]):
        prefix = f"model.layers.{layer}."
        add(prefix + "input_layernorm.weight", 1 + 0.1 * random.standard_normal(hidden))
        add(prefix + "post_attention_layernorm.weight", 1 + 0.1 * random.standard_normal(hidden))
        shapes = dict(q=(q, hidden), k=(kv, hidden), v=(kv, hidden), o=(hidden, q), g=(ffn, hidden), u=(ffn, hidden),
                      d=(hidden, ffn))
        for letter, (n, k) in shapes.items():
            matrix(prefix + PROJECTIONS[letter] + ".weight", n, k, 1.4 if letter in "qk" else 1.2)
            if letter in case["biases"]:
                add(prefix + PROJECTIONS[letter] + ".bias", 0.3 * random.standard_normal(n))
    signs = random.choice([-1, 1], hidden) if case["tied"] else 1  # else a tied model repeats its input
    add("model.norm.weight", signs * (1 + 0.1 * random.standard_normal(hidden)))
    if not case["tied"]:
        matrix("lm_head.weight", case["vocab"], hidden, 1.2)
    return weights, files


def config(case):
    out = dict(model_type="mistral" if case["window"] else "llama", hidden_size=case["hidden"], vocab_size=case["vocab"],
               num_hidden_layers=case["layers"], num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"],
               head_dim=case["head_dim"], intermediate_size=case["ffn"], rms_norm_eps=case["eps"],
               max_position_embeddings=case["max_positions"], hidden_act=case["act"], tie_word_embeddings=case["tied"])
    out["architectures"] = ["MistralForCausalLM" if case["window"] else "LlamaForCausalLM"]
    dtype = dict(F32="float32", F16="float16", BF16="bfloat16")[case["dtype"]]
    if case["window"]:
        out["sliding_window"] = case["window"]
    if "original" in case:
        out["original_max_position_embeddings"] = case["original"]
    if case["style"] == 5:
        out.update(dtype=dtype, rope_parameters=dict(case["rope"] or dict(rope_type="default"), rope_theta=case["theta"]))
    else:
        out.update(torch_dtype=dtype, rope_theta=case["theta"], rope_scaling=case["rope"])
    return out


def greedy(case, weights, prompt):
    """-> tokens, whether each was clearly the best"""
    tokens, clear = list(prompt), True
    for _ in range(GREEDY):
        row = forward(case, weights, tokens, last_only=True)[0][0]
        second, first = np.sort(row)[-2:]
        clear = clear and first - second > MARGIN * math.sqrt((row * row).mean())
        if not clear:
            break
        tokens.append(int(row.argmax()))
    return tokens[len(prompt):], clear


def references(case, weights, random):
    for _ in range(200):
        prompt_a = random.integers(0, case["vocab"], PROMPT_A)
        tokens, clear = greedy(case, weights, prompt_a)
        if clear:
            break
    else:
        sys.exit("no prompt with a clear greedy continuation was found")
    prompt_b = random.integers(0, case["vocab"], PROMPT_B)
    logits_a, hidden = forward(case, weights, prompt_a)
    logits_b = forward(case, weights, prompt_b)[0][-4:]
    integers = lambda values: ("I32", [len(values)], np.asarray(values, np.int32).tobytes())
    floats = lambda values: ("F32", values.shape, values.astype(np.float32).tobytes())
    return dict(prompt_a=integers(prompt_a), logits_a=floats(logits_a), prompt_b=integers(prompt_b),
                logits_b_last4=floats(logits_b), greedy_tokens=integers(tokens), hidden_a_last=floats(hidden))


def make(folder, name):
    sizes, different = CASES[name][:-1], CASES[name][-1]
    case = dict(DEFAULTS, **dict(zip(("hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "layers"), sizes)), **{})
    case.update(different)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if case["rope"] == "longrope":
        pairs = case["head_dim"] // 2
        case["rope"] = dict(rope_type="longrope", long_factor=list(np.round(np.linspace(1, 6, pairs), 2)),
                            short_factor=list(np.round(np.linspace(1, 1.5, pairs), 2)))
    weights, files = random_weights(case, random)
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config(case), file, indent=1)
    names = sorted(files)
    if case["shards"] == 1:
        write_safetensors(os.path.join(path, "model.safetensors"), {n: files[n] for n in names})
    else:
        shard_of = {n: f"model-{i % case['shards'] + 1:05}-of-{case['shards']:05}.safetensors" for i, n in enumerate(names)}
        for shard in sorted(set(shard_of.values())):
            write_safetensors(os.path.join(path, shard), {n: files[n] for n in names if shard_of[n] == shard})
        with open(os.path.join(path, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
            json.dump(dict(metadata={}, weight_map=shard_of), file)
    write_safetensors(os.path.join(path, "refs.safetensors"), references(case, weights, random))


def main(arguments):
    folder, names = arguments[0], arguments[1:]
    if names == ["--keep"]:
        names = [name for name, row in CASES.items() if row[-1].get("keep")]
    for name in names or CASES:
        make(folder, name)


if __name__ == "__main__":
    main(sys.argv[1:])
