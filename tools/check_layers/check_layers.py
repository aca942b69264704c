"""Checks the project's shape: includes follow the layers of docs/design/architecture.md, platform headers stay in
files named for the platform, names of files go through base, folders and files open by saying what they are for, WGSL
writes no single components of vectors in arrays. Prints a line a violation and exits 1 if there is one; files over 400
lines are listed without failing.
  check_layers.py [ROOT]
A new layer or exception is a row of the tables below. Tested by check_layers_test.py."""

import os
import re
import sys

# Layer -> what its files may include besides themselves. "doppler" is include/doppler, the public API.
MAY_INCLUDE = {
    "doppler": set(),
    "base": {"doppler"},  # the public error type is the one all layers use
    "gpu": {"base"},
    "images": {"base"},
    "kernels": {"gpu", "base"},
    "formats": {"base"},
    # formats: the names of weights (formats/tensor_id.h).
    "graph": {"formats", "base"},
    # Mathematics: these three name no kernel and no GPU. formats: the numbers of a model.
    "layers": {"graph", "formats", "base"},
    "families": {"layers", "graph", "formats", "base"},
    "lowering": {"graph", "kernels", "gpu", "base"},
    "store": {"formats", "base"},
    "swarm": {"store", "formats", "base"},
    # doppler: the types of requests and answers, no calls.
    "openai": {"doppler", "base"},
    "tokenizer": {"base"},
    # doppler: the type of a grammar.
    "guidance": {"doppler", "base"},
    "model": {"families", "lowering", "graph", "kernels", "gpu", "images", "formats", "base"},
    # doppler: the public option structs are the engine's own. formats: one open checkpoint feeds model and tokenizer.
    "engine": {"doppler", "model", "lowering", "tokenizer", "guidance", "kernels", "gpu", "images", "formats", "base"},
    "api": {"doppler", "engine", "model", "tokenizer", "kernels", "gpu", "formats", "base"},
    "capi": {"doppler", "base"},
    "bench": {"doppler", "api", "engine", "model", "tokenizer", "kernels", "gpu", "formats", "base"},
    "batch": {"doppler", "openai", "base"},
    # engine and tokenizer: templates with tools. model, formats and the like come with the engine's headers.
    "server": {"doppler", "batch", "openai", "engine", "tokenizer", "base"},
    # kernels: `doppler kernels` prints kernels/catalogue.h, which no model leads to. graph and the like: `doppler
    # graph`.
    "cli": {"doppler", "engine", "families", "graph", "lowering", "kernels", "gpu", "images", "formats", "store", "swarm",
            "openai", "bench", "batch", "server", "base"},
    # The public API blocks, which a browser must not: the exports run the engine's coroutines themselves.
    "web": {"doppler", "engine", "openai", "model", "tokenizer", "kernels", "gpu", "formats", "base"},
}

# Layers that are also compiled to WebAssembly: no threads, files or streams outside files named for a platform.
CORE = {"base", "images", "kernels", "graph", "layers", "families", "lowering", "formats", "tokenizer", "model", "engine"}
PLATFORM_HEADERS = {"thread", "mutex", "condition_variable", "future", "filesystem", "fstream", "iostream",
                    "format", "print"}
# Without a futex, as on Windows, GCC 12's semaphores and latches lose wake-ups. Condition variables do not.
LOSSY_HEADERS = {"semaphore", "latch", "barrier"}
# They take names in the system's code page on Windows. base/file.h and base/folders.h take UTF-8 everywhere.
NAME_HEADERS = {"filesystem", "fstream"}
NAME_CALLS = re.compile(r"\bstd::(fopen|freopen|rename|getenv)\(|\bstd::remove\([^,()]*(\(\))?\)")
PLATFORM_SUFFIX = re.compile(r"_(native|posix|windows|web)(_test)?\.(h|cpp)$")

# Headers of an operating system, as far as the C++ library does not have them. Only base and gpu know the system, in
# files that end in _posix or _windows; everything above uses headers of base. A test of signals and the like ends in
# _posix_test.
SYSTEM_HEADERS = re.compile(
    r"^(sys|arpa|netinet|net|mach|mach-o|editline|linux)/|^(unistd|dlfcn|fcntl|pthread|dirent|pwd|grp|poll|spawn|termios|"
    r"signal|netdb|ifaddrs|regex|sched|glob|langinfo|io|direct|process|windows|winsock2|ws2tcpip|mswsock|iphlpapi|winternl|"
    r"shellapi|shlobj|bcrypt|aclapi|sddl)\.h$")
SYSTEM_LAYERS = {"base", "gpu"}
SYSTEM_SUFFIX = re.compile(r"_(posix|windows)\.(h|cpp)$")
SYSTEM_TEST = re.compile(r"_(posix|windows)_test\.cpp$")
# Tests, benches and fuzz targets run natively only.
NATIVE_ONLY = re.compile(r"_(test|bench|fuzz)\.cpp$|/testing/|/test_\w+\.(h|cpp)$")
PLATFORM_IF = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*(__wasm|__linux|_WIN32|__APPLE__|__EMSCRIPTEN|__unix)", re.M)

# WGSL: a write of one component of a vector may write the whole vector (Metal and D3D12 do), so two invocations that
# write components of one vector in workgroup memory or a buffer race.
COMPONENT_WRITE = re.compile(r"^.*\[[^\]]*\](\[[^\]]*\]|\.[xyzwrgba])\s*[-+*/|&^]?=(?!=)", re.M)

# Numbers of one device, and its name, stand in the tables of what was measured on it.
DEVICE_NUMBERS = re.compile(r"\b(132|264|396|528)\b|H[12]00")
DEVICE_TABLE = "measured.h"

README_LINES = 10
LONG_FILE_LINES = 400
SOURCES = (".h", ".cpp", ".wgsl", ".py", ".sh", ".js", ".mjs", ".ts", ".cmake")
CHECKED_FOLDERS = ("include", "src", "tools", "tests", "cmake", "web", "examples")
SKIPPED_FOLDERS = {"node_modules", "dist", "data", "__pycache__", "corpus"}


def files_of(root):
    for folder in CHECKED_FOLDERS:
        for path, folders, names in os.walk(os.path.join(root, folder)):
            folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
            for name in sorted(names):
                yield os.path.relpath(os.path.join(path, name), root).replace(os.sep, "/")


def layer_of(path):
    parts = path.split("/")
    if parts[0] == "include":
        return "doppler"
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def may_know_the_system(path, layer):
    return bool(layer in SYSTEM_LAYERS and SYSTEM_SUFFIX.search(path) or SYSTEM_TEST.search(path))


def check_includes(path, text):
    layer = layer_of(path)
    if layer is None:
        return
    if layer not in MAY_INCLUDE:
        yield f"{path}: src/{layer} is not a layer; add it to MAY_INCLUDE of tools/check_layers with what it may include."
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not match:
            continue
        header, first = match[2], match[2].split("/")[0]
        if match[1] == '"' and first in MAY_INCLUDE and "/" in header:
            if first != layer and first not in MAY_INCLUDE[layer]:
                allowed = ", ".join(sorted(MAY_INCLUDE[layer])) or "nothing else of the project"
                yield f'{path}:{number}: {layer} includes "{header}" of {first}; allowed are: {allowed}.'
        elif match[1] == "<" and SYSTEM_HEADERS.search(header) and not may_know_the_system(path, layer):
            yield (f"{path}:{number}: <{header}> belongs to an operating system; only files of base and gpu that end in "
                   "_posix or _windows may include it (docs/design/platforms.md).")
        elif match[1] == "<" and header in NAME_HEADERS and layer != "base" and not NATIVE_ONLY.search(path):
            yield (f"{path}:{number}: <{header}> reads names by the code page of Windows; base/folders.h and base/file.h "
                   "take UTF-8.")
        elif match[1] == "<" and header in LOSSY_HEADERS and not NATIVE_ONLY.search(path):
            yield f"{path}:{number}: <{header}> loses wake-ups on Windows with GCC 12; use a condition variable."
        elif first == "webgpu" and not (layer == "gpu" and "_native" in path):
            yield f"{path}:{number}: {header} belongs in src/gpu, in files ending in _native."
        elif (header in PLATFORM_HEADERS and layer in CORE and not PLATFORM_SUFFIX.search(path)
              and not NATIVE_ONLY.search(path)):
            yield f"{path}:{number}: <{header}> is not in the WebAssembly build; only files ending in _native or _posix may include it."


def check_name_calls(path, text):
    layer = layer_of(path)
    if layer in (None, "base") or NATIVE_ONLY.search(path):
        return
    for match in NAME_CALLS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: {match[0]} reads names by the code page of Windows; base/file.h and base/own_folders_native.h have it in UTF-8."


def check_platform_if(path, text):
    if layer_of(path) in set(MAY_INCLUDE) - {"base", "gpu", "doppler"}:
        for match in PLATFORM_IF.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: #if on the platform ({match[1]}...); make it a file with a platform suffix."


def check_opening(path, text):
    opening = text.lstrip()
    if opening.startswith("#!") or opening.startswith("# ") or opening.startswith('"""'):
        return
    # A source that starts by including its own header is opened by that header, which has the comment.
    own_header = f'#include "{path[len("src/"):-len(".cpp")]}.h"\n'
    if path.endswith(".cpp") and opening.startswith(own_header):
        return
    if not opening.startswith(("//", "/*")):
        yield f"{path}:1: the file does not open with a comment that says what it is for."


def check_component_writes(path, text):
    for match in COMPONENT_WRITE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: writes one component of a vector in an array, which may write all of it; use an array of scalars."


def check_device_numbers(path, text):
    if not path.startswith("src/kernels/") or not path.endswith((".h", ".cpp")) or path.endswith("/" + DEVICE_TABLE):
        return
    for match in DEVICE_NUMBERS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield (f"{path}:{line}: {match[0]} is a GPU's name or its number of workgroups; give it a row in the folder's "
               f"{DEVICE_TABLE} (kernels/common/{DEVICE_TABLE}).")


def check_readmes(root, paths):
    layers = sorted({layer_of(p) for p in paths if p.startswith("src/") and layer_of(p)})
    for layer in layers:
        if f"src/{layer}/README.md" not in paths:
            yield f"src/{layer}: README.md is missing (what lives here, what may it include, where to start reading)."
    for path in paths:
        if path.startswith("src/") and path.endswith("/README.md"):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                lines = len(file.read().splitlines())
            if lines > README_LINES:
                yield f"{path}: {lines} lines; at most {README_LINES}."


def check(root):
    """(violations, long files) of the tree at root."""
    paths = list(files_of(root))
    violations, long_files = list(check_readmes(root, set(paths))), []
    for path in paths:
        if not path.endswith(SOURCES):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.count("\n")
        if lines > LONG_FILE_LINES:
            long_files.append((lines, path))
        violations.extend(check_opening(path, text))
        if path.endswith(".wgsl"):
            violations.extend(check_component_writes(path, text))
        if path.endswith((".h", ".cpp")):
            violations.extend(check_includes(path, text))
            violations.extend(check_name_calls(path, text))
            violations.extend(check_platform_if(path, text))
            violations.extend(check_device_numbers(path, text))
    return sorted(violations), sorted(long_files, reverse=True)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    violations, long_files = check(root)
    for violation in violations:
        print(violation)
    for lines, path in long_files:
        print(f"note: {path} has {lines} lines; over {LONG_FILE_LINES}, ask which second responsibility moved in.")
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
