"""Gives tiny checkpoints of Qwen 3.5 and Qwen 3 Next the layer that predicts the token after the next one ("mtp."),
with random weights, and writes references of what it makes of their own texts, by the float64 forward pass below.
  make_next_layers.py FAMILIES FOLDER && tar -C FOLDER --sort=name --mtime=@0 --owner=0 --group=0 -cJf ARCHIVE .
Needs only numpy; ARCHIVE is tests/data/families_next.tar.xz, and FAMILIES a build's test_data, whose cases of SOURCES
are read. A case is config.json, model.safetensors and refs.safetensors: the entries of the source's references, and
  tokens           I32 [T]       prompt_a and its greedy continuation
  logits           F32 [T, V]    of the model at each token
  states           F32 [T, H]    h, after the final norm
  next_hidden      F32 [T-1, H]  the layer's result at position p, from h at p and the token at p + 1
  next_logits      F32 [T-1, V]  of the token at p + 2
  next_tokens      I32 [T-1]     their argmax
  next_logits_b    F32 [47, V]   the same of prompt_b
  accepted         I32 [G-1]     1: drafted after greedy token i, next_tokens is greedy token i + 1
qwen3_5_mtp_agreeing is made here whole: its next token follows from the one before, but for what damped layers add, and
its layer computes the same, so that most of its drafts are accepted and some are not."""

import json
import math
import os
import struct
import sys
import zlib

import numpy as np

from make_random_llama import stored, write_safetensors

SOURCES = {"qwen3_5": "families_recurrent", "qwen3_next": "families_hybrid", "qwen3_5_moe": "families_moe2"}
AGREEING = "qwen3_5_mtp_agreeing"
GREEDY = 64           # tokens of AGREEING
MARGIN = 0.02         # of the logits' root mean square, between the best and the second token
ACCEPTED = (0.6, 0.9)  # of AGREEING's drafts
DTYPES = {"F32": np.float32, "I32": np.int32}


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    out = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            first, last = tensor["data_offsets"]
            out[name] = np.frombuffer(data[first:last], DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return out


def sigmoid(x): return 1 / (1 + np.exp(-x))
def silu(x): return x * sigmoid(x)
def softplus(x): return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


class Model:
    """The forward pass in float64. weights: as the file has them; norms are stored as w - 1, but the delta net's."""

    def __init__(self, config, weights):
        self.c = config.get("text_config", config)
        self.w = {name.replace("model.language_model.", "model."): tensor.astype(np.float64)
                  for name, tensor in weights.items()}
        layers = self.c["num_hidden_layers"]
        interval = self.c.get("full_attention_interval", 4)
        self.types = self.c.get("layer_types") or [
            "linear_attention" if (i + 1) % interval else "full_attention" for i in range(layers)]

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.c["rms_norm_eps"]) * (1 + self.w[name + ".weight"])

    def linear(self, x, name): return x @ self.w[name + ".weight"].T

    def attention(self, p, x):
        rows, heads, kv_heads, dim = len(x), self.c["num_attention_heads"], self.c["num_key_value_heads"], self.c["head_dim"]
        rope = self.c.get("rope_parameters") or self.c
        rotated = int(dim * self.c.get("partial_rotary_factor", rope.get("partial_rotary_factor", 0.25)))
        angles = np.arange(rows)[:, None] * rope["rope_theta"] ** (-np.arange(0, rotated, 2) / rotated)
        cosine, sine, pairs = np.cos(angles)[:, None], np.sin(angles)[:, None], rotated // 2

        def rotate(x):
            a, b, rest = x[..., :pairs], x[..., pairs:2 * pairs], x[..., 2 * pairs:]
            return np.concatenate([a * cosine - b * sine, b * cosine + a * sine, rest], -1)

        q, gate = np.split(self.linear(x, p + "q_proj").reshape(rows, heads, 2 * dim), 2, -1)
        k = rotate(self.norm(self.linear(x, p + "k_proj").reshape(rows, kv_heads, dim), p + "k_norm"))
        v = self.linear(x, p + "v_proj").reshape(rows, kv_heads, dim)
        q = rotate(self.norm(q, p + "q_norm"))
        k, v = (t.repeat(heads // kv_heads, 1) for t in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim)
        scores = np.where(np.tril(np.ones((rows, rows), bool)), scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.einsum("hqk,khd->qhd", scores / scores.sum(-1, keepdims=True), v) * sigmoid(gate)
        return self.linear(y.reshape(rows, -1), p + "o_proj")

    def delta(self, p, x):
        rows, key_heads, heads = len(x), self.c["linear_num_key_heads"], self.c["linear_num_value_heads"]
        key_dim, dim, group = self.c["linear_key_head_dim"], self.c["linear_value_head_dim"], heads // key_heads
        if p + "in_proj_qkvz.weight" in self.w:  # by key head
            ends = np.cumsum([key_dim, key_dim, group * dim])
            q, k, v, z = np.split(self.linear(x, p + "in_proj_qkvz").reshape(rows, key_heads, -1), ends, -1)
            mixed = np.concatenate([t.reshape(rows, -1) for t in (q, k, v)], -1)
            b, a = np.split(self.linear(x, p + "in_proj_ba").reshape(rows, key_heads, -1), 2, -1)
        else:
            mixed, z = self.linear(x, p + "in_proj_qkv"), self.linear(x, p + "in_proj_z")
            b, a = self.linear(x, p + "in_proj_b"), self.linear(x, p + "in_proj_a")
        z, b, a = z.reshape(rows, heads, dim), b.reshape(rows, heads), a.reshape(rows, heads)
        taps = self.w[p + "conv1d.weight"][:, 0]
        padded = np.concatenate([np.zeros((taps.shape[1] - 1, mixed.shape[1])), mixed])
        mixed = silu(sum(padded[i:i + rows] * taps[:, i] for i in range(taps.shape[1])))
        q, k, v = np.split(mixed, np.cumsum([key_heads * key_dim] * 2), -1)
        unit = lambda t: t / np.sqrt((t * t).sum(-1, keepdims=True) + 1e-6)
        q = unit(q.reshape(rows, key_heads, key_dim)).repeat(group, 1) / math.sqrt(key_dim)
        k, v = unit(k.reshape(rows, key_heads, key_dim)).repeat(group, 1), v.reshape(rows, heads, dim)
        rate, decay = sigmoid(b), np.exp(-np.exp(self.w[p + "A_log"]) * softplus(a + self.w[p + "dt_bias"]))
        state, out = np.zeros((heads, key_dim, dim)), np.zeros((rows, heads, dim))
        for t in range(rows):
            state = state * decay[t][:, None, None]
            change = (v[t] - np.einsum("hk,hkd->hd", k[t], state)) * rate[t][:, None]
            state = state + np.einsum("hk,hd->hkd", k[t], change)
            out[t] = np.einsum("hk,hkd->hd", q[t], state)
        out = out / np.sqrt((out * out).mean(-1, keepdims=True) + self.c["rms_norm_eps"])
        return self.linear((out * self.w[p + "norm.weight"] * silu(z)).reshape(rows, -1), p + "out_proj")

    def glu(self, p, x): return self.linear(silu(self.linear(x, p + "gate_proj")) * self.linear(x, p + "up_proj"), p + "down_proj")

    def expert(self, p, number, x):
        if p + "experts.gate_up_proj" not in self.w:
            return self.glu(f"{p}experts.{number}.", x)
        gate, up = np.split(self.w[p + "experts.gate_up_proj"][number] @ x, 2)
        return self.w[p + "experts.down_proj"][number] @ (silu(gate) * up)

    def feed_forward(self, p, x):
        if p + "gate.weight" not in self.w:
            return self.glu(p, x)
        scores = self.linear(x, p + "gate")
        scores = np.exp(scores - scores.max(-1, keepdims=True))  # whose sum the weights' norm takes out
        out = sigmoid(self.linear(x, p + "shared_expert_gate")) * self.glu(p + "shared_expert.", x)
        for row, score in enumerate(scores):
            chosen = np.argsort(-score, kind="stable")[:self.c["num_experts_per_tok"]]
            for number in chosen:
                out[row] += score[number] / score[chosen].sum() * self.expert(p, number, x[row])
        return out

    def layer(self, p, kind, x):
        h = self.norm(x, p + "input_layernorm")
        x = x + (self.attention(p + "self_attn.", h) if kind == "full_attention" else self.delta(p + "linear_attn.", h))
        return x + self.feed_forward(p + "mlp.", self.norm(x, p + "post_attention_layernorm"))

    def head(self, h): return h @ self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"]).T

    def states(self, tokens):
        """h at each token, after the final norm"""
        x = self.w["model.embed_tokens.weight"][tokens]
        for i, kind in enumerate(self.types):
            x = self.layer(f"model.layers.{i}.", kind, x)
        return self.norm(x, "model.norm")

    def next_hidden(self, tokens, states):
        """what the layer leaves at all positions but the last"""
        embeddings = self.w["model.embed_tokens.weight"][tokens[1:]]
        pair = [self.norm(embeddings, "mtp.pre_fc_norm_embedding"), self.norm(states[:-1], "mtp.pre_fc_norm_hidden")]
        return self.layer("mtp.layers.0.", "full_attention", self.linear(np.concatenate(pair, -1), "mtp.fc"))

    def next_logits(self, hidden): return self.head(self.norm(hidden, "mtp.norm"))


def random_tensor(name, shape, random):
    if len(shape) == 1:
        return 0.1 * random.standard_normal(shape)
    gain = 1.4 if "q_proj" in name or "k_proj" in name else 2.0 if name.endswith("mlp.gate.weight") else 1.2
    return gain / math.sqrt(shape[-1]) * random.standard_normal(shape)


def add_next_layer(config, weights, random):
    """Adds the layer, with the tensors of the model's last one, which is attention."""
    text = config.get("text_config", config)
    hidden, last = text["hidden_size"], f"layers.{text['num_hidden_layers'] - 1}."
    shapes = {"mtp.layers.0." + name.split(last)[1]: tensor.shape for name, tensor in weights.items() if last in name}
    assert any("self_attn" in name for name in shapes)
    shapes |= {"mtp.fc.weight": (hidden, 2 * hidden), "mtp.norm.weight": (hidden,)}
    shapes |= {f"mtp.pre_fc_norm_{of}.weight": (hidden,) for of in ("embedding", "hidden")}
    for name, shape in shapes.items():
        weights[name] = random_tensor(name, shape, random)
    if "lm_head.weight" not in weights:  # else a tied model repeats its input
        weights["mtp.norm.weight"] += random.choice([-1, 1], hidden) - 1
    if text["model_type"] != "qwen3_next":  # which has no key
        text |= {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}


def margins(logits):
    best = np.sort(logits, -1)[:, -2:]
    return (best[:, 1] - best[:, 0]) / np.sqrt((logits * logits).mean(-1))


def relative(a, b): return np.linalg.norm(a - b) / np.linalg.norm(b)


def next_references(model, refs):
    prompt, greedy = refs["prompt_a"], refs["greedy_tokens"]
    tokens = np.concatenate([prompt, greedy])
    states = model.states(tokens)
    hidden = model.next_hidden(tokens, states)
    drafted = model.next_logits(hidden)
    logits_b = model.next_logits(model.next_hidden(refs["prompt_b"], model.states(refs["prompt_b"])))
    guesses = drafted.argmax(-1)
    accepted = (guesses[len(prompt) - 1:-1] == greedy[1:]).astype(int)
    return refs | {"tokens": tokens, "logits": model.head(states), "states": states, "next_hidden": hidden,
                   "next_logits": drafted, "next_tokens": guesses, "next_logits_b": logits_b, "accepted": accepted}


def agreeing(config, shapes):
    """A model as above, and its references."""
    config = json.loads(json.dumps(config)) | {"tie_word_embeddings": False, "eos_token_id": None}
    vocab, hidden = config["vocab_size"], config["hidden_size"]
    shapes = shapes | {"lm_head.weight": (vocab, hidden)}
    for seed in range(10000):
        random = np.random.default_rng([zlib.crc32(AGREEING.encode()), seed])
        weights = {}
        for name, shape in shapes.items():
            weights[name] = random_tensor(name, shape, random)
            if name.endswith("linear_attn.norm.weight"):
                weights[name] += 1
            if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
                weights[name] *= 0.55
        table = weights["model.embed_tokens.weight"] = random.standard_normal((vocab, hidden))
        cycle = random.permutation(vocab)  # each token is followed by its successor here
        head = np.empty((vocab, hidden))
        head[np.roll(cycle, -1)] = (table[cycle] + 0.5 * random.standard_normal((vocab, hidden))) / math.sqrt(hidden)
        weights["lm_head.weight"] = head
        add_next_layer(config, weights, random)
        for name in weights:
            if name.startswith("mtp.") and name.endswith(("o_proj.weight", "down_proj.weight")):
                weights[name] *= 0.1
        weights["mtp.norm.weight"] = weights["model.norm.weight"]
        weights["mtp.fc.weight"] = np.concatenate(
            [np.eye(hidden), 0.01 * random.standard_normal((hidden, hidden))], -1)
        weights = {name: stored(tensor, "BF16")[0] for name, tensor in weights.items()}  # which compress
        model = Model(config, weights)
        tokens = [int(t) for t in random.integers(0, vocab, 12)]
        rows = []
        for _ in range(GREEDY):
            rows.append(model.head(model.states(np.array(tokens))[-1:])[0])
            tokens.append(int(rows[-1].argmax()))
            if margins(rows[-1][None])[0] < MARGIN:
                break
        rows = np.array(rows)
        if len(rows) < GREEDY or margins(rows).min() < MARGIN:
            continue
        prompt_b = random.integers(0, vocab, 48)
        refs = {"prompt_a": np.array(tokens[:12]), "logits_a": model.head(model.states(np.array(tokens[:12]))),
                "prompt_b": prompt_b, "logits_b_last4": model.head(model.states(prompt_b)[-4:]),
                "greedy_tokens": np.array(tokens[12:])}
        refs = next_references(model, refs)
        share = refs["accepted"].mean()
        clear = margins(refs["next_logits"][11:]).min() >= MARGIN
        if clear and ACCEPTED[0] <= share <= ACCEPTED[1] and len(set(tokens[12:])) > GREEDY // 3:
            return config, weights, refs
    sys.exit("no seed gives a model whose drafts are accepted often enough")


def write(folder, config, weights, refs):
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/config.json", "w") as file:
        json.dump(config, file, indent=2, sort_keys=True)
    files = {name: ("F32", tensor.shape, stored(tensor, "F32")[1]) for name, tensor in weights.items()}
    write_safetensors(folder + "/model.safetensors", files)
    files = {}
    for name, values in refs.items():
        dtype = "I32" if np.issubdtype(values.dtype, np.integer) else "F32"
        files[name] = (dtype, values.shape, values.astype(DTYPES[dtype]).tobytes())
    write_safetensors(folder + "/refs.safetensors", files)
    print(f"{os.path.basename(folder):18} accepted {refs['accepted'].mean():.2f}, {len(set(refs['next_tokens']))} of "
          f"{len(refs['next_tokens'])} drafts distinct, margin {margins(refs['next_logits']).min():.1e}")


def main(families, folder):
    for name, archive in SOURCES.items():
        source = f"{families}/{archive}/{name}"
        with open(source + "/config.json") as file:
            config = json.load(file)
        weights = {key: value.astype(np.float64) for key, value in read_safetensors(source + "/model.safetensors").items()}
        refs = {key: value for key, value in read_safetensors(source + "/refs.safetensors").items()
                if not key.endswith("_a_last")}
        if name == "qwen3_5":
            plain = dict(config), {key: value.shape for key, value in weights.items()}
        add_next_layer(config, weights, np.random.default_rng(zlib.crc32(("next of " + name).encode())))
        weights = {key: stored(value, "F32")[0] for key, value in weights.items()}
        model = Model(config, weights)
        far = relative(model.head(model.states(refs["prompt_a"])), refs["logits_a"])
        assert far < 2e-5, f"{name}: the model itself is {far} from its references"
        write(f"{folder}/{name}_mtp", config, weights, next_references(model, refs))
    write(f"{folder}/{AGREEING}", *agreeing(*plain))


main(*sys.argv[1:])
