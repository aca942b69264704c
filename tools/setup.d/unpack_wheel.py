"""Copies single files out of a wheel (a zip archive): unpack_wheel.py WHEEL FOLDER, rows `name|member|target` on
standard input. Written next to the target first and renamed, so that an interrupted run leaves no half file."""

import os
import shutil
import sys
import zipfile


def main(wheel: str, folder: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for row in sys.stdin:
            _, member, target = row.rstrip("\n").split("|")
            path = os.path.join(folder, target)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(member) as source, open(path + ".part", "wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
            os.replace(path + ".part", path)


if __name__ == "__main__":
    main(*sys.argv[1:])
