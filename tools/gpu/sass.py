#!/usr/bin/env python3
"""Prints the machine code that NVIDIA's Vulkan driver made of compute pipelines, out of its cache of shaders, with what
each instruction waits for: whether a load is early enough, whether fragments are LDSM, how many registers a kernel has.
  __GL_SHADER_DISK_CACHE_PATH=CACHE PROGRAM     (an empty folder: one program, few pipelines)
  sass.py CACHE OUT                             (writes OUT/N.sass, N from the first pipeline compiled, and prints a
  line for each)
Needs zstd, and nvdisasm and ptxas of a CUDA toolkit that knows the GPU (--arch, sm_90 by default). Seen with driver
580.

A line is: address, cycles until the next instruction of the warp may issue (st), the counter that a load sets when its
result is there (W) or its operands are read (R), the counters that must be zero before it issues (wait), the
instruction. There are six counters: loads that share one are waited for together."""

import argparse
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter

ZSTD, SHADER = b"\x28\xb5\x2f\xfd", b"NVDANVVM"
CODE = 1  # the kind of a section
BEHIND = 8  # bytes from a section's offset, as the header counts, to its first byte
NOP = bytes.fromhex("18790000000000000000000000c00f00")


def unpacked(cache):
    """The entries of the cache's files that are compiled shaders."""
    for path in sorted(pathlib.Path(cache).rglob("*.bin")):
        data = path.read_bytes()
        for found in re.finditer(re.escape(ZSTD), data):
            # Bytes that are no zstd follow the entry; the program complains, but it has given the entry by then.
            done = subprocess.run(["zstd", "-dcq"], input=data[found.start():], capture_output=True, check=False)
            if done.stdout.startswith(SHADER):
                yield done.stdout


def code_of(shader):
    """The instructions, 16 bytes each; None if the header has no section of instructions."""
    for at in range(0x28, min(len(shader), 0x400) - 12, 4):
        kind, size, offset = struct.unpack_from("<III", shader, at)
        if kind == CODE and size >= 0x100 and size % 16 == 0 and at < offset and offset + BEHIND + size <= len(shader):
            return shader[offset + BEHIND:offset + BEHIND + size]
    return None


def waits(instruction):
    """The scheduling bits of an instruction, as text."""
    bits = struct.unpack("<Q", instruction[8:])[0] >> 41
    stall, written, read, mask = bits & 15, bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63
    counters = "".join(str(i) for i in range(6) if mask >> i & 1)
    return f"st{stall:2d} {f'W{written}' if written < 7 else '  '} {f'R{read}' if read < 7 else '  '} wait[{counters:6s}]"


def empty_cubin(arch, folder):
    """A program of that architecture with much room for code: nvdisasm reads nothing but programs."""
    lines = "".join(f"ld.volatile.global.u32 %r1,[%d1+{4 * i}]; st.volatile.global.u32 [%d1+{4 * i}],%r1;\n" for i in range(8000))
    (folder / "room.ptx").write_text(f".version 8.0\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n"
                                     f".reg .u32 %r<4>; .reg .u64 %d<4>; ld.param.u64 %d1,[p];\n{lines}ret; }}\n")
    subprocess.run(["ptxas", f"-arch={arch}", folder / "room.ptx", "-o", folder / "room.cubin"], check=True)
    return (folder / "room.cubin").read_bytes()


def with_code(cubin, code):
    """The program with other instructions."""
    sections, = struct.unpack_from("<Q", cubin, 0x28)
    count, names = struct.unpack_from("<HH", cubin, 0x3c)

    def section(i):
        return struct.unpack_from("<IIQQQQIIQQ", cubin, sections + 64 * i)

    for i in range(count):
        name, _, _, _, offset, size, *_ = section(i)
        at = section(names)[4] + name
        if cubin[at:cubin.index(b"\0", at)] == b".text.k":
            if len(code) > size:
                sys.exit(f"sass.py: a pipeline has {len(code)} bytes of code, of which {size} fit.")
            return cubin[:offset] + code + NOP * ((size - len(code)) // 16) + cubin[offset + size:]
    sys.exit("sass.py: ptxas made a program without the section .text.k.")


def listing(code, disassembly):
    lines = []
    for address, text in re.findall(r"^\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;", disassembly, re.MULTILINE):
        at = int(address, 16)
        if at < len(code) and not text.startswith("NOP"):
            lines.append(f"{address} {waits(code[at:at + 16])} {text}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_90")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    number = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        room = empty_cubin(arguments.arch, folder)
        for shader in unpacked(arguments.cache):
            code = code_of(shader)
            if code is None:
                continue
            (folder / "code.cubin").write_bytes(with_code(room, code))
            said = subprocess.run(["nvdisasm", "-c", folder / "code.cubin"], capture_output=True, text=True, check=False)
            lines = listing(code, said.stdout)
            if not lines:
                sys.exit(f"sass.py: nvdisasm does not read pipeline {number} as {arguments.arch}: {said.stderr[:200].strip()}")
            (arguments.out / f"{number}.sass").write_text("\n".join(lines) + "\n")
            registers = max(map(int, re.findall(r"\bR(\d+)\b", "\n".join(lines))), default=0) + 1
            kinds = Counter(re.sub(r"^.*\] (@!?U?P\d+ )?", "", line).split()[0] for line in lines)
            most = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(8))
            print(f"{number}.sass: {len(lines)} instructions, {registers} registers: {most}")
            number += 1
    if number == 0:
        sys.exit(f"sass.py: there are no compiled shaders in {arguments.cache}; __GL_SHADER_DISK_CACHE_PATH says where the driver keeps them.")


if __name__ == "__main__":
    main()
