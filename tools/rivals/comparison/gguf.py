"""The vocabulary of a GGUF file, as far as prompts need it: its words, and the token that the model's texts begin
with."""

import dataclasses
import mmap
import re
import struct

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # GGUF's types
STRING, ARRAY = 8, 9
ADDS_BOS = {"llama", "llama-bpe", "llama3"}  # these put the first token before a text by default
LEAST_WORDS = 1000  # fewer would make prompts that repeat themselves


@dataclasses.dataclass
class Vocabulary:
    words: list  # (id, text): tokens that a tokenizer makes of a space and this text, and nothing else
    bos: int | None  # None: texts begin without one
    leading_space: bool  # whether the first word's space has to be written


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, kind):
        size = struct.calcsize("<" + kind)
        (value,) = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += size
        return value

    def text(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length:self.at]

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            return self.number(NUMBERS[kind])
        item, count = self.number("I"), self.number("Q")
        if item in NUMBERS:  # numbers in bulk are scores and kinds of tokens, which no one here asks for
            self.at += count * struct.calcsize("<" + NUMBERS[item])
            return None
        return [self.value(item) for _ in range(count)]


def metadata(path):
    """Key -> value; {} where the file is not GGUF."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] != b"GGUF":
            return {}
        reader = Reader(data)
        reader.at = 4 + 4 + 8  # magic, version, count of tensors
        return {reader.text().decode(): reader.value(reader.number("I")) for _ in range(reader.number("Q"))}


def vocabulary(path):
    """None: the file has no tokenizer, or too few words."""
    try:
        keys = metadata(path)
    except (ValueError, KeyError, struct.error):
        return None
    space = "\u2581" if keys.get("tokenizer.ggml.model") == b"llama" else "\u0120"
    pattern = re.compile(f"{space}([a-z]+)".encode())
    found = [(i, pattern.fullmatch(token)) for i, token in enumerate(keys.get("tokenizer.ggml.tokens") or [])]
    words = [(i, match.group(1).decode()) for i, match in found if match]
    if len(words) < LEAST_WORDS:
        return None
    kind = keys.get("tokenizer.ggml.pre", keys["tokenizer.ggml.model"]).decode()
    adds = keys.get("tokenizer.ggml.add_bos_token", kind in ADDS_BOS)
    return Vocabulary(words, keys.get("tokenizer.ggml.bos_token_id") if adds else None, space == "\u0120")
