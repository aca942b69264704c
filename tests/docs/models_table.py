"""The tables of docs/reference/models.md are what `doppler models` and `doppler inspect --architectures` say; --write
renews them.
  models_table.py --doppler PROGRAM [--write]   (in the repository's root; standard library only)"""

import json
import subprocess

import generated_page

TOOLS = "tools_"  # what such a feature begins with


def code(names):
    return ", ".join(f"`{name}`" for name in names)


def distance(worst):
    if not worst:
        return "-"
    return f"{max(worst):.1e}" if max(worst) else "equal"


def matrix(families):
    """A line a family and feature: in which formats and lanes it was shown, and the worst distance. The formats of
    calls, which the chat template decides, are one line."""
    lines = ["| family | shown | formats | lanes | worst relative L2, exact | other lanes |", "|---|---|---|---|---|---|"]
    for family in families:
        features = {}
        tools = sorted(row["feature"].removeprefix(TOOLS) for row in family["shown"] if row["feature"].startswith(TOOLS))
        for row in family["shown"]:
            if row["feature"].startswith(TOOLS):
                continue
            have = features.setdefault(row["feature"], {"format": set(), "lane": set(), "exact": [], "others": []})
            have["format"].add(row["format"])
            have["lane"].add(row["lane"])
            have["exact" if row["lane"] == "exact" else "others"].append(row["worst"])
        for feature, have in sorted(features.items()):
            exact, others = (distance(have[key]) for key in ("exact", "others"))
            lines.append(f"| {family['family']} | {feature.replace('_', ' ')} | {', '.join(sorted(have['format']))} | "
                         f"{', '.join(sorted(have['lane']))} | {exact} | {others} |")
        if tools:
            lines.append(f"| {family['family']} | tools: {', '.join(tools)} | chat template | - | - | - |")
        if not features:
            lines.append(f"| {family['family']} | - | - | - | - | - |")
    devices = sorted({row["device"] for family in families for row in family["shown"]} - {"host"})
    return "\n".join(lines + ["", "Shown on: " + "; ".join(devices) + "."])


def tables(architectures):
    lines = ["| family | GGUF | rope pairing | Hugging Face (its sliding window is for) | rope pairing | norms stored as |",
             "|---|---|---|---|---|---|"]
    for row in architectures:
        gguf, hf = row["gguf"], row["huggingface"]
        types = ", ".join(f"`{t['model_type']}` ({t['sliding_window']})" for t in hf["model_types"])
        norms = f"w - {hf['norm_offset']:g}" if hf["norm_offset"] else "w"
        lines.append(f"| {row['family']} | {code(gguf['architectures'])} | {gguf['rope_pairing']} | {types} | "
                     f"{hf['rope_pairing']} | {norms} |")
    named = {}  # families by tensor
    for row in architectures:
        for t in row["tensors"]:
            gguf = ("blk.N." if t["in_layer"] else "") + t["gguf"]
            prefix = row["huggingface"]["layers"] + "N." if t["in_layer"] else ""
            if t["in_next_layer"]:
                prefix = "mtp."
            named.setdefault((gguf, prefix + t["huggingface"], ", ".join(t["shape"])), []).append(row["family"])
    lines += ["", "| GGUF | Hugging Face | shape, outermost first | families |", "|---|---|---|---|"]
    for (gguf, hf, shape), families in named.items():
        who = "all" if len(families) == len(architectures) else ", ".join(families)
        lines.append(f"| `{gguf}` | `{hf}` | {shape} | {who} |")
    return "\n".join(lines)


def make(program):
    def said(*words):
        run = subprocess.run([program, *words, "--json"], check=True, capture_output=True)
        return json.loads(run.stdout)

    return tables(said("inspect", "--architectures")["architectures"]) + "\n\n" + matrix(said("models")["families"])


if __name__ == "__main__":
    generated_page.run("models_table.py", "docs/reference/models.md", __doc__, make)
