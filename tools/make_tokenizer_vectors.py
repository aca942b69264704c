#!/usr/bin/env python3
"""Makes tests/data/tokenizer_vectors.json, the oracle of what src/tokenizer does with steps of tokenizer.json.

Small tokenizers whose tokens are the 256 bytes, so that ids show the text that came out of the steps, encode texts
below with Hugging Face tokenizers. A new detail is a row of CASES; a text may stand in it for itself, or as a list of
code points' ranges.
    pip install tokenizers; python3 tools/make_tokenizer_vectors.py
"""
import json
import pathlib
import unicodedata

import tokenizers

ROOT = pathlib.Path(__file__).resolve().parent.parent


def byte_alphabet():
    """The character that stands for each byte (GPT-2's table)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte if byte in plain else 0x100 + others.index(byte)) for byte in range(256)}


BYTES = byte_alphabet()


def byte_level(normalizer=None, pre_tokenizer=None, added=(), merges=()):
    """Tokens are bytes in the alphabet, and the products of merges."""
    vocab = {BYTES[byte]: byte for byte in range(256)}
    for merge in merges:
        vocab["".join(merge)] = len(vocab)
    return file(normalizer, pre_tokenizer, added, {"type": "BPE", "vocab": vocab, "merges": [list(m) for m in merges]})


def fallback(normalizer=None, pre_tokenizer=None, added=()):
    """Tokens are bytes as "<0x41>"."""
    vocab = {"<unk>": 256, **{"<0x%02X>" % byte: byte for byte in range(256)}}
    return file(normalizer, pre_tokenizer, added,
                {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": True, "unk_token": "<unk>"})


def file(normalizer, pre_tokenizer, added, model):
    rows = [{"id": len(model["vocab"]) + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": False, **flags} for i, (text, flags) in enumerate(added)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": rows, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None, "model": model}


def sequence(kind, *steps):
    return {"type": "Sequence", kind: list(steps)}


def split(pattern, behavior="Isolated"):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def level(prefix, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def every(categories, step):
    """Each n-th character of some categories, with a letter before it."""
    codes = [code for code in range(0x110000) if unicodedata.category(chr(code)) in categories and code < 0xE0000]
    return "".join("a" + chr(code) for code in codes[::step])


NFD_STRIP = sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"})
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
MARKED = sequence("normalizers", {"type": "Prepend", "prepend": "\u2581"},
                  {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})
NORMALISED = {"normalized": True}
WORDS = ("abc", "a fox", " a  fox ", "", "A FOX")
CASES = {
    "StripAccents": (byte_level({"type": "StripAccents"}, level(False)),
                     (every(("Mn", "Mc", "Me"), 9), "e\u0301a\u0903b\u20ddc\u1cf2d\u07fd")),
    "NFD and StripAccents": (byte_level(NFD_STRIP, level(False)), ("Grüße Ångström ấ", "\u0915\u093f\u0902")),
    "BertNormalizer": (byte_level(BERT, level(False)),
                       (every(("Cc", "Cf", "Co", "Cn", "Zs"), 20011) + every(("Cf", "Cc"), 5), "a\u038db\u10c8c\ufffdd\x00e\tf",
                        every(("Mn",), 17), "ÀÉ中文x\u0903")),
    "Nmt": (byte_level({"type": "Nmt"}, level(False)),
            ("a\x01b\x0bc\x1fd\x7fe\x8ff\x9fg\x00h", "a\tb\nc\x0cd\re\u1680f\u200bg\u200fh\u2028i\u2029j\u2581k\ufefel\ufffdm",
             "a\u2010b\x1ac")),
    "normaliser ByteLevel": (byte_level({"type": "ByteLevel"}, None, merges=(("a", "b"), ("Ġ", "f"), ("Ã", "©"))),
                             (*WORDS, "é世 ab\nab fé")),
    "normaliser ByteLevel, then a split": (byte_level({"type": "ByteLevel"}, split("Ġ|Ã", "MergedWithNext"),
                                                      merges=(("a", "b"), ("b", "Ġ"), ("Ġ", "f"))), ("ab fab", "b é")),
    "ByteLevel behind digits": (byte_level(None, sequence("pretokenizers", {"type": "Digits", "individual_digits": True},
                                                          level(True)), merges=(("Ġ", "1"), ("Ġ", "a"))),
                                ("a12 b3", " 1a", "a", "")),
    "ByteLevel behind a split, without its own": (
        byte_level(None, sequence("pretokenizers", split("-", "Removed"), level(True, False)), merges=(("Ġ", "a"),)),
        ("a-a", "a- a-b", "-")),
    "ByteLevel alone": (byte_level(None, level(True), added=(("<x>", {}),)), ("a", " a", "b<x>a b")),
    "added tokens behind a normaliser": (
        byte_level({"type": "Lowercase"}, level(False), added=(("Fox", NORMALISED), ("Crow", {}), ("x y", NORMALISED))),
        ("a fox FOX Fox", "crow Crow CROW", "X Y xy", "CrowFOX")),
    "added tokens before others": (
        byte_level(None, level(False), added=(("ab", NORMALISED), ("bc", {}), ("abcd", NORMALISED))),
        ("abcd", "aabcbc", "ab", "cab abc")),
    "added tokens and what marks spaces": (
        fallback(MARKED, None, added=(("<a>", NORMALISED), ("<b>", {}), ("<s>", {"special": True}))),
        ("<a>", "x <a> y", "x<a>y<b>z", "<b> <a>", "<s>x<s>")),
    "added tokens and Metaspace": (
        fallback(None, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False},
                 added=(("<a>", NORMALISED), ("<b>", {}))),
        ("x<a>y z", "<a>y", "<b>y", " <b> y")),
    "added tokens with white space": (
        byte_level({"type": "Lowercase"}, level(False),
                   added=(("LL", {"lstrip": True, **NORMALISED}), ("RR", {"rstrip": True, **NORMALISED}),
                          ("WW", {"single_word": True, **NORMALISED}))),
        ("a  ll  b", "a  rr  b", "ww aww ww.", "LL RR WW", "ww\u200cx", "ww\u00bd", "ww\u24d0", "ww_", "ww\u2167",
         "ww\u0301")),
}


def main():
    rows = []
    for name, (tokenizer, texts) in CASES.items():
        oracle = tokenizers.Tokenizer.from_str(json.dumps(tokenizer))
        vectors = [[text, oracle.encode(text, add_special_tokens=False).ids] for text in texts]
        rows.append({"name": name, "tokenizer": tokenizer, "texts": vectors})
    text = json.dumps({"made_by": f"tokenizers {tokenizers.__version__}", "cases": rows}, ensure_ascii=True,
                      separators=(",", ":"))
    (ROOT / "tests/data/tokenizer_vectors.json").write_text(text.replace('{"name"', '\n{"name"') + "\n")
    print(f"{len(rows)} tokenizers, {sum(len(row['texts']) for row in rows)} texts, {len(text)} bytes")


main()
