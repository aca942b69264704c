"""Prints a deb822 apt source for a suite and its backports, derived from this machine's own sources, so that the
mirror in use stays in use: backports_source.py CODENAME [FOLDER]. Exit status 1 if no source lists the suite.
FOLDER (default /etc/apt) holds sources.list and sources.list.d/."""

import glob
import os
import re
import sys


def stanzas(folder: str):
    """Every source of the machine as {"URIs": ..., "Suites": ..., other fields}."""
    for path in sorted(glob.glob(os.path.join(folder, "sources.list.d", "*.sources"))):
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip() for line in file if not line.startswith("#")]
        for block in re.split(r"\n\s*\n", "\n".join(lines)):
            yield {m[1]: m[2].strip() for m in re.finditer(r"^(\S+):((?:.*)(?:\n[ \t].*)*)", block, re.M)}
    lists = [os.path.join(folder, "sources.list")] + sorted(glob.glob(os.path.join(folder, "sources.list.d", "*.list")))
    for path in filter(os.path.exists, lists):
        with open(path, encoding="utf-8") as file:
            for line in file:
                match = re.match(r"\s*(deb)\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line)
                if match:
                    options = dict(o.split("=", 1) for o in (match[2] or "").split() if "=" in o)
                    yield {"Types": match[1], "URIs": match[3], "Suites": match[4],
                           **({"Signed-By": options["signed-by"]} if "signed-by" in options else {}),
                           **({"Trusted": options["trusted"]} if "trusted" in options else {})}


def backports(codename: str, folder: str) -> str | None:
    for fields in stanzas(folder):
        enabled = fields.get("Enabled", "yes").lower() not in ("no", "false", "0")
        if enabled and "deb" in fields.get("Types", "").split() and codename in fields.get("Suites", "").split():
            kept = [f"{key}: {fields[key]}" for key in ("Signed-By", "Trusted") if key in fields]
            return "\n".join(["Types: deb", f"URIs: {fields['URIs']}", f"Suites: {codename} {codename}-backports",
                              "Components: main", *kept, ""])
    return None


if __name__ == "__main__":
    text = backports(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "/etc/apt")
    if text is None:
        sys.exit(1)
    print(text)
