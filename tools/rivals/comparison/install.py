"""Installs an engine into a folder of its own (ENGINES/NAME), which may be copied to a machine without network:
packages at the pinned version and SHA-512, and the harness, compiled against them."""

import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

from comparison import machine
from comparison.registry import ROOT

HARNESS = ROOT / "harness"
HEADLESS = machine.REPOSITORY / "web/surfaces/headless.mjs"  # of browser.mjs
COMPILE = ("c++", "-std=c++20", "-O2", "-Wall")
# The pinned wheel of a PyPI package. Only its libraries are used, so it need not be this Python's.
WHEELS = ("--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:")


class Impossible(Exception):
    """A missing part, or the step that failed."""


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache")
    return pathlib.Path(os.environ.get("DOPPLER_RIVALS") or pathlib.Path(cache) / "doppler" / "rivals")


def run(*command, cwd=None):
    try:
        done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Impossible(f"{command[0]}: {error.strerror}.") from None
    if done.returncode != 0:
        raise Impossible(f"{' '.join(str(word) for word in command[:4])} ... failed:\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def packed(package, folder):
    """The package's archive, checked against the registry's SHA-512."""
    name, version = package["name"], package["version"]
    if package["manager"] == "npm":
        run("npm", "pack", "--silent", f"{name}@{version}", cwd=folder)
        file = folder / f"{name.lstrip('@').replace('/', '-')}-{version}.tgz"
    else:
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *WHEELS, f"{name}=={version}", "--dest", ".", cwd=folder)
        (file,) = folder.glob(f"{name.replace('-', '_')}-{version}-*.whl")
    digest = "sha512-" + base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
    if digest != package["integrity"]:
        raise Impossible(f"{name} {version} has {digest}; the registry pins {package['integrity']}.")
    return file


def unpacked(package, folder):
    """Its files, in a folder of that package."""
    target = folder / package["name"].replace("/", "-")
    file = packed(package, folder)
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            archive.extractall(target)
        return target
    with tarfile.open(file) as archive:
        archive.extractall(target, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(target)
    return target / "package"


def compile_harness(source, target, includes, libraries):
    """Libraries are found in lib/ beside the program, wherever that folder goes."""
    run(*COMPILE, f"-I{HARNESS}", *(f"-I{folder}" for folder in includes), HARNESS / source, "-o", target,
        *libraries, "-Wl,-rpath,$ORIGIN/lib", "-Wl,-rpath-link," + str(target.parent / "lib"))


def doppler(engine, home, build):
    """A build folder of Doppler: its library, its WebGPU providers and its program."""
    if not build:
        raise Impossible("doppler-native needs --doppler BUILD, a build folder such as build/release.")
    build = pathlib.Path(build)
    library = build / "libdoppler.so"
    if not library.is_file():
        raise Impossible(f"{library} does not exist; build the target `all` there.")
    source = next(path for path in (build.resolve(), *build.resolve().parents) if (path / "include/doppler").is_dir())
    for folder in ("lib", "bin"):
        (home / folder).mkdir(parents=True)
    soname = library.readlink().name if library.is_symlink() else library.name
    shutil.copy(library, home / "lib" / soname)
    shutil.copy(build / "src/cli/doppler", home / "bin" / "doppler")
    for provider in ("libdawn.so", "libwgpu_native.so"):
        if (source / ".deps/lib" / provider).is_file():
            shutil.copy(source / ".deps/lib" / provider, home / "lib" / provider)
    compile_harness(engine["harness"]["source"], home / "harness", [source / "include"], [home / "lib" / soname])
    run("strip", "--strip-unneeded", *(home / "lib").iterdir(), home / "bin" / "doppler")
    revision = run("git", "-C", source, "rev-parse", "--short=12", "HEAD").strip()
    changed = run("git", "-C", source, "status", "--porcelain", "--untracked-files=no").strip()
    (home / "commit").write_text(revision + ("+changes\n" if changed else "\n"))


def llama(engine, home, build):
    """npm's libllama, and the headers of the same release out of a git bundle in npm's node-llama-cpp."""
    shutil.rmtree(llama_source(engine, home, build))


def llama_source(engine, home, _build):
    """As llama(), but the release's source stays, and is what it returns."""
    work = home / "packages"
    work.mkdir()
    folders = {package["name"]: unpacked(package, work) for package in engine["install"]["packages"]}
    source = home / "source"
    run("git", "clone", "--quiet", "--no-checkout", folders.pop("node-llama-cpp") / "llama/gitRelease.bundle", source)
    run("git", "-C", source, "checkout", "--quiet", "HEAD", "--", ".")
    (binaries,) = [path for folder in folders.values() for path in (folder / "bins").iterdir()]
    shutil.copytree(binaries, home / "lib", ignore=shutil.ignore_patterns("*.node", "libllama-common*"))
    libraries = [next((home / "lib").glob(f"{stem}.*so")) for stem in ("libllama", "libggml", "libggml-base")]
    compile_harness(engine["harness"]["source"], home / "harness", [source / "include", source / "ggml/include"], libraries)
    shutil.rmtree(work)
    return source


def llama_cuda(engine, home, build):
    """As llama(), with ggml's CUDA backend built here for the GPU that is here: npm's wants a newer driver than many
    have."""
    if not shutil.which("nvcc"):
        raise Impossible("llama.cpp-cuda is built where nvcc is; none was found.")
    source = llama_source(engine, home, build)
    (source / "ggml/ggml.pc.in").touch()  # the bundle leaves it out, and its build asks for it
    run("cmake", "-S", source / "ggml", "-B", home / "build", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
        "-DGGML_BACKEND_DL=ON", "-DGGML_CUDA=ON", "-DGGML_NATIVE=OFF", "-DGGML_BUILD_TESTS=OFF",
        "-DGGML_BUILD_EXAMPLES=OFF", "-DCMAKE_CUDA_ARCHITECTURES=native")
    run("cmake", "--build", home / "build", "--target", "ggml-cuda", "-j", os.cpu_count() or 1)
    shutil.copy(next((home / "build").rglob("libggml-cuda.so")), home / "lib")
    shutil.rmtree(home / "build")
    shutil.rmtree(source)


def onnxruntime(engine, home, _build):
    """Libraries out of PyPI's wheels. Graphs are no part of it: harness/onnx_model.py makes them."""
    work = home / "packages"
    work.mkdir()
    (home / "lib").mkdir()
    for package in engine["install"]["packages"]:
        for library in unpacked(package, work).rglob("libonnxruntime*.so*"):
            shutil.copy(library, home / "lib" / library.name.replace(f".so.{package['version']}", ".so.1"))
    compile_harness(engine["harness"]["source"], home / "harness", [],
                    [home / "lib/libonnxruntime-genai.so", home / "lib/libonnxruntime.so.1"])
    shutil.rmtree(work)


def npm(engine, home, _build):
    """npm packages, and the harness as a module beside them."""
    archives = home / "packages"
    archives.mkdir()
    files = [packed(package, archives) for package in engine["install"]["packages"]]
    (home / "package.json").write_text(json.dumps({"name": "rival", "private": True, "type": "module"}))
    run("npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", *files, cwd=home)
    shutil.rmtree(archives)
    for path in (*HARNESS.glob("*.mjs"), HEADLESS):
        shutil.copy(path, home / path.name)


def doppler_web(engine, home, build):
    """As npm(), with Doppler's own package: web/ of this checkout and the WebAssembly core of a build folder."""
    core = pathlib.Path(build or "build/wasm") / "src/web/doppler_core.wasm"
    if not core.is_file():
        raise Impossible(f"{core} does not exist; name the WebAssembly build with --doppler (cmake --preset wasm).")
    npm(engine, home, build)
    shutil.copytree(machine.REPOSITORY / "web", home / "doppler", ignore=shutil.ignore_patterns("node_modules", "page", "dist"))
    for module in core.parent.glob("doppler_core*.wasm"):
        shutil.copy(module, home / "doppler")


def fingerprint(engine):
    """The sources of an installation; with other sources it has to be made anew."""
    source = HARNESS / engine["harness"]["source"]
    shared = [path for path in sorted(HARNESS.glob("protocol.*")) if (path.suffix == ".mjs") == (source.suffix == ".mjs")]
    if source.name == "browser.mjs":
        shared.append(HEADLESS)
    parts = [json.dumps(engine["install"], sort_keys=True), *(path.read_text() for path in (source, *shared))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_installed(engine, folder):
    stamp = folder / engine["name"] / "installed"
    return "install" in engine and stamp.is_file() and stamp.read_text() == fingerprint(engine)


def install(engine, folder, build):
    if "install" not in engine:
        raise Impossible(f"{engine['name']} does not run: {engine['reason']}")
    home = folder / engine["name"]
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    recipes = {"doppler": doppler, "doppler_web": doppler_web, "llama": llama, "llama_cuda": llama_cuda, "npm": npm,
               "onnxruntime": onnxruntime}
    recipes[engine["install"]["recipe"]](engine, home, build)
    (home / "installed").write_text(fingerprint(engine))
    return home
