"""Prompts that never repeat: words drawn at random from the model's own vocabulary, from one seed, so that every engine
gets the same ones in the same round. A model without words (random weights) gets random tokens, which have no text."""

import dataclasses
import random

SEED = 20261123


@dataclasses.dataclass
class Prompt:
    tokens: list
    text: str | None  # what a tokenizer makes `tokens` of, its first token added by itself; None: there is no such text


def vocabulary_range(size):
    """Ids that are no control tokens in the vocabularies of ours: those lie at the two ends."""
    return size // 8, size - size // 64


def prompt(workload, turn, stream, size, vocabulary):
    draw = random.Random(f"{SEED}/{workload['name']}/{turn}/{stream}")
    if vocabulary is None:
        low, high = vocabulary_range(size)
        return Prompt([draw.randrange(low, high) for _ in range(workload["prompt"])], None)
    first = [] if vocabulary.bos is None else [vocabulary.bos]
    drawn = draw.choices(vocabulary.words, k=workload["prompt"] - len(first))
    text = (" " if vocabulary.leading_space else "") + " ".join(word for _, word in drawn)
    return Prompt(first + [token for token, _ in drawn], text)


def prompts(workload, turn, size, vocabulary):
    """One for each stream. turn: a round, negative in warm-ups. size, vocabulary: of the model (gguf.py)."""
    return [prompt(workload, turn, stream, size, vocabulary) for stream in range(workload["streams"])]
