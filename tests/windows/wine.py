"""Wine for the tests: a folder of its own, an X display without a screen, which Wine's Vulkan wants, and small scripts
that start programs for Windows, so that tests written for Linux can start them."""

import atexit
import os
import shutil
import subprocess
import sys

WINE = "/usr/lib/wine/wine64"
SERVER = "/usr/lib/wine/wineserver64"
COMPILER = "x86_64-w64-mingw32-gcc-posix"
HERE = os.path.dirname(os.path.abspath(__file__))


class Wine:
    """folder: keeps the Wine folder, the cache of shaders and the scripts."""

    def __init__(self, folder):
        missing = [program for program in (WINE, shutil.which("Xvfb") or "Xvfb") if not os.path.exists(program)]
        if missing:
            sys.exit(f"These programs are missing: {', '.join(missing)}. Run tools/setup windows.")
        self.folder = folder
        self.prefix = os.path.join(folder, "prefix")
        self.scripts = os.path.join(folder, "bin")
        for path in (self.prefix, self.scripts):
            os.makedirs(path, exist_ok=True)
        read, write = os.pipe()
        self.screen = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
                                       pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.end)  # also if a test cannot be started
        os.close(write)
        with os.fdopen(read) as told:
            display = told.readline().strip()
        os.environ.update({
            "DISPLAY": ":" + display, "WINEPREFIX": self.prefix, "WINEARCH": "win64", "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree,mshtml=", "MESA_SHADER_CACHE_DIR": os.path.join(folder, "shaders"),
            "DOPPLER_WEBGPU": "wgpu"})
        # A server that is there saves each program a second.
        subprocess.run([SERVER, "-p"], stderr=subprocess.DEVNULL, check=True)
        if not os.path.exists(os.path.join(self.prefix, "system.reg")):
            # Windows 10 is the oldest that Doppler is for.
            for words in (["wineboot", "-i"], ["winecfg", "-v", "win10"]):
                subprocess.run([WINE, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The first program starts Wine's own ones, which keep the first one's output open.
        subprocess.run([WINE, "cmd.exe", "/c", "ver"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        library = os.path.join(self.prefix, "drive_c/windows/system32/bcryptprimitives.dll")
        if not os.path.exists(library):
            subprocess.run([COMPILER, "-shared", "-O1", "-o", library, os.path.join(HERE, "bcryptprimitives.c"),
                            "-ladvapi32"], check=True)

    def end(self):
        subprocess.run([SERVER, "-k"], stderr=subprocess.DEVNULL, check=False)  # the one of this folder
        self.screen.terminate()
        self.screen.wait()

    def script(self, name, program):
        """The path of a script that becomes the program: who ends it ends the program."""
        path = os.path.join(self.scripts, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {WINE} "{program}" "$@"\n')
        os.chmod(path, 0o755)
        return path
