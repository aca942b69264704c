"""Copies files out of a wheel (a zip archive): unpack_wheel.py WHEEL FOLDER, rows `name|member|target` on standard
input. Written next to the target first and renamed, so that an interrupted run leaves no half file. A member that ends
in / is a folder with all in it; its files keep their rights."""

import os
import shutil
import sys
import zipfile


def copy(archive: zipfile.ZipFile, member: str, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with archive.open(member) as source, open(path + ".part", "wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
    os.replace(path + ".part", path)


def main(wheel: str, folder: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for row in sys.stdin:
            _, member, target = row.rstrip("\n").split("|")
            if not member.endswith("/"):
                copy(archive, member, os.path.join(folder, target))
                continue
            for info in archive.infolist():
                if info.filename.startswith(member) and not info.is_dir():
                    path = os.path.join(folder, target, info.filename[len(member):])
                    copy(archive, info.filename, path)
                    os.chmod(path, info.external_attr >> 16 & 0o777)


if __name__ == "__main__":
    main(*sys.argv[1:])
