"""Medians with their bootstrap intervals. A seed makes the same samples give the same interval."""

import math
import random
import statistics

RESAMPLES = 2000  # the ends of a 95 % interval then rest on 50 resamples each
LEVEL = 0.95
SEED = 17


def interval_of_median(samples):
    """The percentile bootstrap: medians of samples drawn with replacement, without the outer 2.5 % at either end."""
    if len(samples) < 2:
        return samples[0], samples[0]
    draw = random.Random(SEED)
    medians = sorted(statistics.median(draw.choices(samples, k=len(samples))) for _ in range(RESAMPLES))
    outside = (1 - LEVEL) / 2
    return medians[math.floor(outside * RESAMPLES)], medians[math.ceil((1 - outside) * RESAMPLES) - 1]


def estimate(samples):
    """The part of one figure that a record keeps."""
    low, high = interval_of_median(samples)
    return {"median": statistics.median(samples), "low": low, "high": high, "samples": list(samples)}


def spread(figure):
    """Half of the interval, as a part of the median: how far the runs move it by themselves."""
    return (figure["high"] - figure["low"]) / 2 / figure["median"] if figure["median"] else 0.0
