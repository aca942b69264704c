"""Says if two engines gave the same answer: by tokens if both hand them out, or else by text."""


def first_difference(a, b):
    """The least index where they differ; None: they are the same."""
    if a == b:
        return None
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def compare(base_name, base, other):
    """base, other: turn -> streams of an answer. Only turns that both have count."""
    streams, same, least, how = 0, 0, None, "nothing"
    for turn in sorted(set(base) & set(other)):
        for left, right in zip(base[turn], other[turn]):
            by_tokens = bool(left.get("tokens")) and bool(right.get("tokens"))
            how = "tokens" if by_tokens and how != "text" else "text"
            key = "tokens" if by_tokens else "text"
            at = first_difference(left[key], right[key])
            streams += 1
            same += at is None
            if at is not None:
                least = at if least is None else min(least, at)
    return {"base": base_name, "compared": how, "streams": streams, "same": same, "first_difference": least}
