"""Records as Markdown: a table a record, losses beside wins, and below it what a reader needs to judge it. Plots:
plots.py."""

from comparison import plots

COLUMNS = {
    "compute": (("prefill_tok_s", "prefill tok/s", ".0f"), ("ttft_s", "first token s", ".4f"),
                ("decode_tok_s", "decode tok/s", ".1f"), ("total_tok_s", "whole answer tok/s", ".1f")),
    "load": (("load_s", "load s", ".3f"), ("start_and_load_s", "start and load s", ".3f"),
             ("ttft_s", "first token s", ".3f"), ("start_to_token_s", "start to first token s", ".3f")),
}
MODES = {
    "compute": "loaded and warm",
    "warm": "each round a new process, caches of an earlier one",
    "cold": "each round a new process, caches empty and the model file out of the page cache",
}


def columns_of(record):
    return COLUMNS["compute" if record["mode"] == "compute" else "load"]


def is_rate(key):
    """Rates are better when they are higher, times when they are lower."""
    return key.endswith("_tok_s")


def advantage(key, value, base):
    """Above 1: better than the base."""
    if not value or not base:
        return 0.0
    return value / base if is_rate(key) else base / value


def cell(figure, digits):
    return f"{figure['median']:{digits}} ({figure['low']:{digits}} to {figure['high']:{digits}})"


def output_words(result):
    output = result["output"]
    if output["base"] == result["engine"]:
        return "base"
    if not output["streams"]:
        return "not compared"
    if output["same"] == output["streams"]:
        return f"same {output['compared']}"
    return f"**differs** in {output['streams'] - output['same']} of {output['streams']}, " \
           f"first at {output['first_difference']} ({output['compared']})"


def table(record):
    columns = columns_of(record)
    lines = ["| workload | engine | " + " | ".join(title for _, title, _ in columns) + " | against the base | output |",
             "|---" * (len(columns) + 4) + "|"]
    key = "decode_tok_s" if record["mode"] == "compute" else "start_to_token_s"
    first = {}
    for result in record["results"]:
        base = first.setdefault(result["workload"], result)
        figures = result["figures"]
        told = key if key in figures else next(iter(figures))  # a squeeze measures one figure a workload
        ratio = advantage(told, figures[told]["median"], base["figures"][told]["median"])
        cells = [cell(figures[name], digits) if name in figures else "" for name, _, digits in columns]
        lines.append(f"| {result['workload']} | {result['engine']} | {' | '.join(cells)} | "
                     f"{'' if result is base else f'{ratio:.2f}x'} | {output_words(result)} |")
    return lines


def section(record):
    machine, model, settings = record["machine"], record["model"], record["settings"]
    what = "decode" if record["mode"] == "compute" else "start to first token"
    apart = ", one engine in memory at a time" if settings["apart"] else ""
    fewer = "; ".join(f"{name} {workload}: {count}" for name, counts in settings.get("rounds_of", {}).items()
                      for workload, count in counts.items())
    lines = [f"## {model['name']}, {record['mode']}, {record['profile']}", ""]
    if record["label"]:
        lines += [f"**{record['label']}**", ""]
    lines += [
        f"{machine['device']} ({machine['driver'] or 'no driver named'}); {machine['description'] or machine['processor']}; "
        f"{machine['system']}; {record['date']}; commit {record['commit']}; intent {record['intent']}.",
        f"{settings['rounds']} rounds by turns{apart}{f' (fewer of {fewer})' if fewer else ''}; {MODES[record['mode']]}. Medians, in brackets their 95 % intervals by "
        f"bootstrap; against the base: {what}, above 1 is better than the first engine of that workload.", "",
        *table(record), ""]
    lines += [f"- {failure['engine']} did not run {failure['workload']}: {failure['reason']}" for failure in record["failures"]]
    lines += ["", f"Made by: `{record['command']}`", "", "Engines:", ""]
    for engine in record["engines"]:
        told = ", ".join(f"{key} {value}" for key, value in {**engine["options"], **engine["settings"]}.items())
        env = "".join(f", {key}={value}" for key, value in engine["environment"].items())
        lines.append(f"- {engine['title']} ({engine['name']}), {engine['version']}, on {engine['device']}: {told}{env}.")
        lines += [f"  - {note}" for note in engine["fairness"]]
    return lines + story_lines(record.get("story")) + [""]


def story_lines(story):
    """The findings of a squeeze between its two engines."""
    if not story:
        return []
    kept = [attempt for attempt in story["tuning"]["attempts"] if attempt["kept"]]
    cadence, check = story["cadence"], story["correctness"]
    lines = ["", f"Cadence: {cadence['batch']} steps a submit, {cadence['readback_interval']} submits together. "
             f"Logits against the portable lane: {check['error_before']:.2g} before, {check['error_after']:.2g} after; "
             f"{check['equal_tokens']} of {check['tokens']} tokens equal.", ""]
    lines += [f"- Kept: {attempt['operation']} {attempt['shape']}, {attempt['to']} instead of {attempt['from']} "
              f"({attempt['verdict']})" for attempt in kept]
    lines += [f"- Red flag {when}: {flag['sentence']}" for when in ("before", "after") for flag in story["red_flags"][when]]
    return lines + ["", "Its parts, one by one:", ""] + [f"    {command}" for command in story["commands"]]


def markdown(records, pictures):
    """pictures: file names of plots, which lie beside the page."""
    lines = ["# Engines side by side", "",
             "Workload PxN: P prompt tokens, N generated, greedy; PxNxS: S streams. Prefill: prompt tokens over the time until "
             "all streams have a first token. Decode: the N-1 intervals between tokens, streams added up. Whole answer: generated "
             "tokens over the time of the whole request. docs/howto/rivals.md says how to make these figures.", ""]
    for record in records:
        lines += section(record)
    lines += [f"![{name}]({name})" for name in pictures]
    return "\n".join(lines).rstrip() + "\n"


def write(records, folder):
    """README.md and the plots; the names of what was written."""
    pictures = plots.of_records(records)
    for name, text in pictures.items():
        (folder / name).write_text(text)
    (folder / "README.md").write_text(markdown(records, list(pictures)))
    return ["README.md", *pictures]
