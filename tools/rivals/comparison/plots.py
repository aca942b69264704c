"""Plots as SVG, without a library: lines with their intervals, and bars. Colours tell apart by lightness too."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = ("#0b5394", "#cc4125", "#38761d", "#e69138", "#674ea7", "#45818e", "#7f6000", "#a64d79")
GRID, INK = "#dddddd", "#222222"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def steps(highest):
    """Four or five round values from 0 to just above `highest`."""
    if highest <= 0:
        return [0, 1]
    unit = 10 ** math.floor(math.log10(highest))
    step = next(unit * part for part in (0.2, 0.25, 0.5, 1, 2) if highest / (unit * part) <= 5)
    return [step * i for i in range(math.ceil(highest / step) + 1)]


def text(x, y, words, anchor="start", size=12, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}"{more}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def frame(title, x_title, y_title, ticks):
    """The parts of every plot, and where a value lies on the vertical axis."""
    def at(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / ticks[-1]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'font-family="sans-serif" role="img"><title>{escape(title)}</title>',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', text(LEFT, 22, title, size=14)]
    for value in ticks:
        parts += [line(LEFT, at(value), WIDTH - RIGHT, at(value), GRID), text(LEFT - 6, at(value) + 4, number(value), "end")]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_title, "middle"),
              text(16, middle, y_title, "middle", more=f' transform="rotate(-90 16 {middle:.1f})"')]
    return parts, at


def legend(names):
    parts = []
    for i, name in enumerate(names):
        y = TOP + 10 + 20 * i
        parts += [line(WIDTH - RIGHT + 12, y, WIDTH - RIGHT + 32, y, COLOURS[i % len(COLOURS)], 4),
                  text(WIDTH - RIGHT + 38, y + 4, name)]
    return parts


def lines(title, x_title, y_title, series):
    """series: name -> [(x, median, low, high)]. x on a logarithmic axis, a tick at each x that occurs."""
    points = [point for values in series.values() for point in values]
    places = sorted({point[0] for point in points})
    ticks = steps(max(point[3] for point in points))
    parts, at = frame(title, x_title, y_title, ticks)
    first, last = math.log(places[0]), math.log(places[-1])

    def across(x):
        share = (math.log(x) - first) / (last - first) if last > first else 0.5
        return LEFT + 20 + (WIDTH - RIGHT - LEFT - 40) * share
    parts += [text(across(x), HEIGHT - BOTTOM + 18, f"{x:,}", "middle") for x in places]
    for i, values in enumerate(series.values()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{at(y):.1f}" for x, y, _, _ in sorted(values))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y, low, high in values:
            parts += [line(across(x), at(low), across(x), at(high), colour),
                      f'<circle cx="{across(x):.1f}" cy="{at(y):.1f}" r="3.5" fill="{colour}"/>']
    return "\n".join([*parts, *legend(series), "</svg>", ""])


def bars(title, y_title, series):
    """series: name -> (median, low, high)."""
    ticks = steps(max(high for _, _, high in series.values()))
    parts, at = frame(title, "", y_title, ticks)
    room = (WIDTH - RIGHT - LEFT) / len(series)
    for i, (median, low, high) in enumerate(series.values()):
        x = LEFT + room * (i + 0.2)
        parts += [f'<rect x="{x:.1f}" y="{at(median):.1f}" width="{room * 0.6:.1f}" height="{at(0) - at(median):.1f}" '
                  f'fill="{COLOURS[i % len(COLOURS)]}"/>', line(x + room * 0.3, at(low), x + room * 0.3, at(high), INK),
                  text(x + room * 0.3, HEIGHT - BOTTOM + 18, number(median), "middle")]
    return "\n".join([*parts, *legend(series), "</svg>", ""])


def collect(results, key, place):
    series = {}
    for result in results:
        figure = result["figures"][key]
        series.setdefault(result["engine"], []).append((place(result), figure["median"], figure["low"], figure["high"]))
    return series


def of_record(record):
    """Kind of plot -> SVG; a plot over one place alone is left out, and so are two workloads at one place."""
    model, out = record["model"]["name"], {}
    if record["mode"] != "compute":
        first = record["results"][0]["workload"]
        chosen = [result for result in record["results"] if result["workload"] == first]
        series = {name: values[0][1:] for name, values in collect(chosen, "start_to_token_s", lambda _: 1).items()}
        out["load"] = bars(f"Start to first token, {record['mode']}, {first}: {model}", "seconds", series)
        return out
    one = [result for result in record["results"] if result["streams"] == 1 and result["prompt"] and result["decode"]]
    shapes = {result["prompt"]: result["decode"] for result in one}  # of one prompt length, the last workload
    one = [result for result in one if shapes[result["prompt"]] == result["decode"]]
    most = {(result["prompt"], result["decode"]) for result in record["results"] if result["streams"] > 1}
    if len({result["prompt"] for result in one}) > 1:
        out["decode"] = lines(f"Decode behind a prompt: {model}", "prompt tokens", "tokens per second",
                              collect(one, "decode_tok_s", lambda result: result["prompt"]))
        out["prefill"] = lines(f"Prefill: {model}", "prompt tokens", "tokens per second",
                               collect(one, "prefill_tok_s", lambda result: result["prompt"]))
    for shape in sorted(most)[:1]:
        many = [result for result in record["results"] if (result["prompt"], result["decode"]) == shape]
        if len({result["streams"] for result in many}) < 2:
            continue
        out["streams"] = lines(f"Decode of all streams, {shape[0]}x{shape[1]}: {model}", "streams", "tokens per second",
                               collect(many, "decode_tok_s", lambda result: result["streams"]))
    return out


def of_records(records):
    """File name -> SVG."""
    out = {}
    for record in records:
        if record["results"]:
            stem = record["model"]["name"].rsplit(".", 1)[0]
            for kind, svg in of_record(record).items():
                out[f"{kind}.{stem}.{record['mode']}.{record['profile']}.svg"] = svg
    return out
