"""Packs an installed Doppler as a Python wheel, whose command `doppler` starts the program: make_wheel.py --root FOLDER
--version V --platform TAG --out FOLDER. The layout is that of the binary distribution format of PyPA's specifications;
it needs no build backend, since it compiles no code. Used by package.sh."""

import argparse
import base64
import hashlib
import os
import zipfile

NAME = "doppler_webgpu"

LAUNCHER = '''"""Doppler: large language models on WebGPU. The package carries the program and its library; `doppler` on the command
line starts the program, folder() is where they lie."""

import os
import subprocess
import sys


def folder():
    """The installation: bin/doppler and share/doppler; elsewhere than on Windows also lib/libdoppler.so and include/doppler."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")


def main():
    program = os.path.join(folder(), "bin", "doppler")
    if os.name == "nt":  # there execv() would return to the terminal at once
        sys.exit(subprocess.call([program + ".exe", *sys.argv[1:]]))
    os.execv(program, [program, *sys.argv[1:]])
'''

METADATA = """Metadata-Version: 2.1
Name: doppler-webgpu
Version: {version}
Summary: Large language models on WebGPU, natively: program and library
License: Apache-2.0
Requires-Python: >=3.8
"""

WHEEL = """Wheel-Version: 1.0
Generator: tools/package/make_wheel.py
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""

ENTRY_POINTS = "[console_scripts]\ndoppler = {name}:main\n"


def installed(root):
    """(path in the package, path on disk) of every file. A wheel has no links: the link libdoppler.so becomes the file,
    and
    its names with versions are left out."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if ".so." not in name:
                path = os.path.join(folder, name)
                yield f"{NAME}/files/{os.path.relpath(path, root)}", path


class Archive:
    """A wheel: a zip file whose RECORD lists every file with its SHA-256 and size."""

    def __init__(self, path, version):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info = f"{NAME}-{version}.dist-info"
        self.record = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self):
        name = f"{self.info}/RECORD"
        self.add(name, "\n".join(self.record + [f"{name},,", ""]).encode())
        self.zip.close()


def main():
    parser = argparse.ArgumentParser()
    for option in ("root", "version", "platform", "out"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    archive = Archive(os.path.join(args.out, f"{NAME}-{args.version}-py3-none-{args.platform}.whl"), args.version)
    archive.add(f"{NAME}/__init__.py", LAUNCHER.encode())
    for name, path in installed(args.root):
        with open(path, "rb") as file:
            archive.add(name, file.read(), 0o755 if os.access(path, os.X_OK) else 0o644)
    archive.add(f"{archive.info}/METADATA", METADATA.format(version=args.version).encode())
    archive.add(f"{archive.info}/WHEEL", WHEEL.format(platform=args.platform).encode())
    archive.add(f"{archive.info}/entry_points.txt", ENTRY_POINTS.format(name=NAME).encode())
    archive.close()


if __name__ == "__main__":
    main()
