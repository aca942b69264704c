"""Installs Doppler into a temporary prefix, builds examples/ against that prefix only, and runs what is there.
  install_test.py --cmake CMAKE --build DIR --examples DIR --compiler CXX --c-compiler CC --model FILE
Exit status 77 (skipped) where the model is not there. Run by ctest (tests/install/CMakeLists.txt)."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
OPENING = "Once upon a time"


def run(*command, **options):
    """Standard output; ends the test when the command fails. Drivers may print to stderr: it is the program's own."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}\nexit status {done.returncode}")
    return done.stdout


def expect(condition, message):
    if not condition:
        sys.exit(message)


def expect_story(told, ending):
    expect(told.startswith(OPENING) and len(told.splitlines()[0]) > 2 * len(OPENING) and ending in told,
           f"The example tells no story:\n{told}")


def main():
    parser = argparse.ArgumentParser(description="Installs Doppler and builds the examples against it.")
    for name in ("cmake", "build", "examples", "compiler", "c-compiler", "model"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    args.model = os.path.abspath(args.model)
    if not os.path.exists(args.model):
        print(f"skipped: there is no {args.model}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        prefix, project = os.path.join(folder, "prefix"), os.path.join(folder, "project")
        run(args.cmake, "--install", args.build, "--prefix", prefix)

        program = os.path.join(prefix, "bin", "doppler")
        inspected = run(program, "inspect", cwd=folder)
        expect(inspected.startswith(f"{prefix}/share/doppler/models/storyteller.gguf: "),
               f"The installed program does not find the installed model:\n{inspected}")

        # Ninja, which tools/setup installs: a bare machine has no make, CMake's own choice.
        run(args.cmake, "-G", "Ninja", "-S", args.examples, "-B", project, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={args.compiler}", f"-DCMAKE_C_COMPILER={args.c_compiler}",
            "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
        run(args.cmake, "--build", project)
        told = run(os.path.join(project, "story"), args.model, OPENING, cwd=folder)
        expect_story(told, "32 + 8 tokens on")
        told = run(os.path.join(project, "story_c"), args.model, OPENING, cwd=folder)
        expect_story(told, "stopped by token-limit")

        library = os.path.join(prefix, "lib", "libdoppler.so")
        shown = run("nm", "-D", "--defined-only", "--demangle", "--format=just-symbols", library).split("\n")
        foreign = [name for name in shown if name and not name.startswith(("doppler_", "doppler::"))]
        expect(not foreign, "libdoppler.so shows what is not of Doppler's API:\n" + "\n".join(foreign[:20]))
        told = run(sys.executable, "-B", os.path.join(args.examples, "python", "story.py"), args.model, OPENING,
                   "--library", library, cwd=folder)
        expect_story(told, "1: Once upon a time")
        expect("2: The fox and the crow" in told, f"The example tells no second story:\n{told}")

        if shutil.which("pkg-config"):
            flags = run("pkg-config", "--cflags", "--libs", "doppler",
                        env=os.environ | {"PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig")})
            run(args.c_compiler, "-std=c99", "-o", os.path.join(folder, "story"),
                os.path.join(args.examples, "c", "story.c"), *flags.split())
        else:
            print("doppler.pc was not tried: there is no pkg-config.")
    print("1 passed, 0 failed, 0 skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
