#!/usr/bin/env python3
"""Times a vision tower of a published shape with random weights, above a text model of a few small layers.

  vision_speed.py --doppler PROGRAM --like FOLDER --shape qwen3-vl-8b|gemma-3 [--size PIXELS] [-n PICTURES] [--profile]
    [FLAGS]

FOLDER is a tiny model of the same family (a case of tests/data/vision.tar.xz). The tokenizer, the template and the
names of tensors come from it, and the shape replaces its dimensions. FLAGS go to `doppler serve`. All pictures differ,
so the cache never helps. prompt_ms is the server's own time from a request's turn to its first token: the tower and the
prompt. wall_ms is the time of a whole request, which also decodes and resizes the picture on the host. The first
picture warms up and is not counted. With --profile `doppler profile --image` shows the tower's kernels instead. The
weights are SYNTHETIC: figures say nothing about answers. The script needs only the standard library."""

import argparse
import base64
import http.client
import json
import math
import os
import random
import statistics
import struct
import subprocess
import tempfile
import time
import zlib

# For each shape: the published dimension of each tiny one, what configurations say, and the number of blocks.
SHAPES = {
    "qwen3-vl-8b": {
        "dims": {48: 1152, 144: 3456, 76: 4304, 192: 4608, 36: 2304, 60: 4096, 100: 4096, 20: 128, 92: 1024},
        "vision": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16,
                   "num_position_embeddings": 2304, "out_hidden_size": 4096, "deepstack_visual_indexes": [8, 16, 24]},
        "text": {"hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32, "intermediate_size": 1024,
                 "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"}},
        "preprocessor": {"size": {"longest_edge": 16777216, "shortest_edge": 65536}},
        "whole": {},
        "repeat": {"visual.blocks.": 27, "deepstack_merger_list.": 3},
    },
    "gemma-3": {
        "dims": {40: 1152, 68: 4304, 36: 4096, 60: 2560, 90: 2048, 18: 256, 92: 1024},
        "vision": {"num_hidden_layers": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16,
                   "image_size": 896},
        "text": {"hidden_size": 2560, "head_dim": 256, "num_attention_heads": 8, "intermediate_size": 1024,
                 "query_pre_attn_scalar": 256, "sliding_window": 1024},
        "preprocessor": {"size": {"height": 896, "width": 896}, "image_seq_length": 256},
        "whole": {"mm_tokens_per_image": 256},
        "repeat": {"vision_model.encoder.layers.": 27},
    },
}


def read_header(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        return {name: row["shape"] for name, row in json.loads(file.read(size)).items() if name != "__metadata__"}


def tensors_of(shape, like):
    """The names and shapes of the large model's tensors."""
    out = {}
    for name, dims in read_header(os.path.join(like, "model.safetensors")).items():
        count = 1 if len(dims) > 2 else len(dims)  # a convolution's kernel keeps its size
        large = [shape["dims"].get(dim, dim) for dim in dims[:count]] + dims[count:]
        group = next((part for part in shape["repeat"] if part in name), None)
        if not group:
            out[name] = large
            continue
        before, after = name.split(group)
        number, rest = after.split(".", 1)
        if number == "0":
            for i in range(shape["repeat"][group]):
                out[f"{before}{group}{i}.{rest}"] = large
    return out


def write_weights(path, tensors):
    """bfloat16; norms are 1, all else is small noise."""
    noise = random.Random(1)
    block = b"".join(struct.pack("<f", noise.gauss(0, 0.02))[2:] for _ in range(1 << 18))
    header, offset = {}, 0
    for name, dims in tensors.items():
        size = 2 * math.prod(dims)
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, dims in tensors.items():
            is_norm = len(dims) == 1 and "norm" in name and name.endswith("weight")
            values = struct.pack("<f", 1)[2:] if is_norm else block
            size = 2 * math.prod(dims)
            for at in range(0, size, len(values) * 64):
                file.write((values * 64)[:size - at])


def write_model(folder, shape, like):
    def read(name):
        with open(os.path.join(like, name), encoding="utf-8") as file:
            return json.load(file)

    def write(name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    config = read("config.json")
    config.update(shape["whole"])
    config["vision_config"].update(shape["vision"])
    config["text_config"].update(shape["text"])
    write("config.json", config)
    write("preprocessor_config.json", {**read("preprocessor_config.json"), **shape["preprocessor"]})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        write(name, read(name))
    with open(os.path.join(like, "chat_template.jinja"), encoding="utf-8") as source:
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as file:
            file.write(source.read())
    write_weights(os.path.join(folder, "model.safetensors"), tensors_of(shape, like))


def png(size, seed):
    """A square picture of noise in blocks of 16 x 16 pixels."""
    noise = random.Random(seed)
    rows = b""
    for _ in range(0, size, 16):
        row = b"".join(noise.randbytes(3) * 16 for _ in range(0, size, 16))[:3 * size]
        rows += (b"\0" + row) * 16
    rows = rows[:size * (3 * size + 1)]

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def ask(port, picture):
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    body = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}},
                                                      {"type": "text", "text": "sky"}]}],
            "max_tokens": 1, "temperature": 0, "timings_per_token": True}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    wall = 1e3 * (time.monotonic() - began)
    if "error" in answer:
        raise SystemExit(answer["error"]["message"])
    return {"wall_ms": wall, "prompt_ms": answer["timings"]["prompt_ms"], "tokens": answer["usage"]["prompt_tokens"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--doppler", required=True)
    parser.add_argument("--like", required=True)
    parser.add_argument("--shape", required=True, choices=SHAPES)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("-n", type=int, default=8)
    parser.add_argument("--profile", action="store_true")
    given, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="doppler-vision-") as folder:
        write_model(folder, SHAPES[given.shape], given.like)
        if given.profile:
            subprocess.run([given.doppler, "profile", "-m", folder, "--ctx", "4096", "--chunk", "2048", "--image",
                            f"{given.size}x{given.size}", *flags], check=True)
            return
        server = subprocess.Popen([given.doppler, "serve", "--port", "0", "--json", "-m", folder, "--ctx", "4096",
                                   "--chunk", "2048", "--parallel", "1", *flags], stdout=subprocess.PIPE, text=True)
        try:
            port = json.loads(server.stdout.readline())["port"]
            rows = [ask(port, png(given.size, i)) for i in range(given.n + 1)][1:]
        finally:
            server.terminate()
            server.wait()
    of = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    print(f"{given.shape} (SYNTHETIC weights), {given.size} x {given.size} pixels, {of['tokens']:.0f} prompt tokens, "
          f"median of {given.n}: prompt_ms {of['prompt_ms']:.1f} "
          f"(least {min(row['prompt_ms'] for row in rows):.1f}), wall_ms {of['wall_ms']:.1f}")


if __name__ == "__main__":
    main()
