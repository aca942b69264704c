"""The tables of docs/reference/models.md are what `doppler inspect --architectures` says; --write renews them.
  models_table.py --doppler PROGRAM [--write]   (in the repository's root; standard library only)"""

import argparse
import json
import subprocess
import sys

PAGE = "docs/reference/models.md"
BEGIN, END = "<!-- tables: tests/docs/models_table.py --write -->", "<!-- end of tables -->"


def code(names):
    return ", ".join(f"`{name}`" for name in names)


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
            named.setdefault((gguf, prefix + t["huggingface"], ", ".join(t["shape"])), []).append(row["family"])
    lines += ["", "| GGUF | Hugging Face | shape, outermost first | families |", "|---|---|---|---|"]
    for (gguf, hf, shape), families in named.items():
        who = "all" if len(families) == len(architectures) else ", ".join(families)
        lines.append(f"| `{gguf}` | `{hf}` | {shape} | {who} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doppler", required=True)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    said = subprocess.run([args.doppler, "inspect", "--architectures", "--json"], check=True, capture_output=True)
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    wanted = page[:begin] + "\n" + tables(json.loads(said.stdout)["architectures"]) + "\n" + page[end:]
    if args.write:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(wanted)
    elif page != wanted:
        sys.exit(f"{PAGE} is not what the program says; tests/docs/models_table.py --doppler PROGRAM --write renews it.")


if __name__ == "__main__":
    main()
