"""The tests of programs for other systems share this (tests/windows/run, tests/arm64/run): the build, counts, and the
groups unit, tokens, pictures and stories. `wrap` makes a script of this machine that starts such a program:
wrap(name, path)."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "models", "storyteller.gguf")
PROMPT = "The fox and the crow"
PICTURES = ["l_rgba.png", "n_palette.png", "e_420.jpg", "i_exif6.jpg"]
UNIT_TESTS = ["base_test", "formats_adapters_test", "formats_architectures_test", "formats_checkpoint_test",
              "formats_convert_test", "formats_corpus_test", "formats_next_layer_test", "formats_rdrr_test",
              "formats_synth_test", "quant_codec_test", "quant_repack_tiles_test", "tokenizer_test", "guidance_test",
              "images_test", "openai_test", "plan_test", "native_guards_test", "store_test", "server_parts_test"]


class Results:
    """seconds: a test that takes longer has hung."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.passed = self.failed = self.skipped = 0
        self.began = time.monotonic()

    def add(self, name, fault=None):
        seconds, self.began = time.monotonic() - self.began, time.monotonic()
        print(f"{'FAILED' if fault else 'passed'} {name} ({seconds:.1f} s)" + (f"\n{fault}\n" if fault else ""), flush=True)
        self.failed += fault is not None
        self.passed += fault is None

    def skip(self, name, reason):
        print(f"skipped {name}: {reason}")
        self.skipped += 1

    def command(self, name, command, **options):
        """Passes if it ends with 0. Its output."""
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", check=False, timeout=self.seconds, **options)
        except subprocess.TimeoutExpired:
            self.add(name, f"it ran for more than {self.seconds} s")
            return ""
        self.add(name, None if done.returncode == 0 else f"exit status {done.returncode}\n" + done.stdout[-4000:])
        return done.stdout

    def run_groups(self, groups, asked):
        """The exit status of the program, after its last line."""
        for name, run in groups.items():
            if not asked or name in asked:
                run()
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def check_groups(groups, asked):
    if unknown := set(asked) - set(groups):
        sys.exit(f"Unknown group {', '.join(sorted(unknown))}; known are: {', '.join(groups)}.")


def build(preset, *targets):
    """The folder of the build, with its unit tests."""
    folder = os.path.join(ROOT, "build", preset)
    for command in (["cmake", "--preset", preset, "-DDOPPLER_TESTS=ON", "-DDOPPLER_BATCHES=ON"],
                    ["cmake", "--build", folder, "--target", "doppler", "doppler_python_names", *targets, *UNIT_TESTS]):
        if subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode != 0:
            sys.exit(f"The build by preset {preset} failed.")


def install(preset):
    """The folder of the program, as its users have it."""
    folder = os.path.join(ROOT, "build", preset, "try", "doppler")
    subprocess.run(["cmake", "--install", os.path.join(ROOT, "build", preset), "--prefix", folder, "--strip"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def run_unit(results, preset, wrap, left_out):
    """left_out: by program, cases that cannot work, each with its reason."""
    programs = {}
    for path, _, names in os.walk(os.path.join(ROOT, "build", preset, "src")):
        programs.update({name.removesuffix(".exe"): os.path.join(path, name) for name in names})
    for name in UNIT_TESTS:
        cases = left_out.get(name, {})
        for case, reason in cases.items():
            results.skip(f"{name} {case}", reason)
        results.command(name, [wrap(name, programs[name]), "--gtest_brief=1", "--gtest_filter=-" + ":".join(cases)], cwd=ROOT)


def data(preset, name):
    """The folder with what tests/data/NAME.tar.xz holds."""
    folder = os.path.join(ROOT, "build", preset, "try", name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(os.path.join(ROOT, "tests", "data", name + ".tar.xz"), folder)
    return folder


def tokens_of(program, *flags, model=MODEL):
    done = subprocess.run([program, "run", PROMPT, "--model", model, "--temp", "0", "--max-tokens", "20", "--json", *flags],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return (json.loads(done.stdout)["tokens"], None) if done.returncode == 0 else (None, done.stderr)


def run_tokens(results, doppler, native):
    if not os.path.exists(native):
        results.skip("tokens", f"there is no {os.path.relpath(native)}; --native names one")
        return
    for lane in ("fast", "exact"):
        (here, fault), (there, other) = tokens_of(doppler, "--lane", lane), tokens_of(native, "--lane", lane)
        results.add(f"tokens of lane {lane} equal those of this machine's program",
                    fault or other or (None if here == there else f"{here} instead of {there}"))


def run_pictures(results, preset, doppler, native):
    """A model that sees answers the same to a picture of each format. images_test compares pixels."""
    if not os.path.exists(native):
        results.skip("pictures", f"there is no {os.path.relpath(native)}; --native names one")
        return
    model, pictures = os.path.join(data(preset, "vision"), "qwen3_vl"), os.path.join(data(preset, "images"), "images")
    for name in PICTURES:
        picture = os.path.join(pictures, name)
        (here, fault), (there, other) = (tokens_of(program, "--image", picture, model=model) for program in (doppler, native))
        results.add(f"tokens about {name} equal those of this machine's program",
                    fault or other or (None if here == there else f"{here} instead of {there}"))


def run_stories(results, preset, doppler, names):
    files = [f"tests/stories/{name}.story" for name in names]
    output = results.command("stories", [sys.executable, "-B", "tests/run_stories.py", "--doppler", doppler, "--configs",
                                         "tests/stories/configs", "--config", "wgpu", "--have", "model", "--have", "vision",
                                         *files], cwd=ROOT, env=os.environ | {
                                             "VISION": data(preset, "vision"),
                                             "IMAGES": os.path.join(data(preset, "images"), "images")})
    for line in output.splitlines():
        if line.startswith("skipped"):
            print(line)
    counts = re.findall(r"\d+", (output.splitlines() or ["0 0 0"])[-1])
    results.passed += int(counts[0]) - 1
    results.skipped += int(counts[2])
