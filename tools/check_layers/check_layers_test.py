"""Each rule of check_layers.py on a small tree made for it. A new rule is a row of REFUSED."""

import os
import tempfile
import unittest

import check_layers

GOOD = {
    "include/doppler/engine.h": "// The public API.\n#include <string>\n",
    "src/base/README.md": "# base\n",
    "src/base/text.h": "// Text helpers.\n#include <string>\n",
    "src/base/text.cpp": '#include "base/text.h"\n',
    "src/base/folders_posix.cpp": "// Folders.\n#include <filesystem>\n",
    "src/base/map_posix.cpp": "// Files in memory.\n#include <unistd.h>\n",
    "src/base/map_windows.cpp": "// The same.\n#include <windows.h>\n",
    "src/base/map_posix_test.cpp": "// Files that are cut.\n#include <sys/wait.h>\n",
    "src/gpu/README.md": "# gpu\n",
    "src/gpu/device_native.cpp": '// The device.\n#include "base/text.h"\n#include <webgpu/webgpu.h>\n',
    "src/kernels/README.md": "# kernels\n",
    "src/kernels/op/op.h": '// An operation.\n#include "gpu/device.h"\n#include "kernels/context.h"\n',
    "src/kernels/op/op.wgsl": "// A kernel.\n",
    "src/kernels/op/op_test.cpp": "// Its test.\n#include <filesystem>\n#include <thread>\n",
    "src/kernels/op/measured.h": "// What an H200 chose.\nint kEnough = 264;\n",
    "tools/thing.py": '"""A program."""\n',
}

REFUSED = [
    ("up_the_layers", "src/gpu/x.cpp", '// X.\n\n#include "kernels/op/op.h"\n',
     'src/gpu/x.cpp:3: gpu includes "kernels/op/op.h" of kernels; allowed are: base.'),
    ("public_api_down", "include/doppler/x.h", '// X.\n#include "base/text.h"\n',
     'include/doppler/x.h:2: doppler includes "base/text.h" of base; allowed are: nothing else of the project.'),
    ("webgpu_elsewhere", "src/kernels/op/x.cpp", '// X.\n#include "webgpu/webgpu.h"\n',
     "src/kernels/op/x.cpp:2: webgpu/webgpu.h belongs in src/gpu, in files ending in _native."),
    ("webgpu_without_suffix", "src/gpu/x.cpp", "// X.\n#include <webgpu/webgpu.h>\n",
     "src/gpu/x.cpp:2: webgpu/webgpu.h belongs in src/gpu, in files ending in _native."),
    ("threads_in_the_core", "src/base/x.cpp", "// X.\n#include <thread>\n",
     "src/base/x.cpp:2: <thread> is not in the WebAssembly build; only files ending in _native or _posix may include it."),
    ("system_header_in_a_native_file", "src/gpu/x_native.cpp", "// X.\n#include <unistd.h>\n",
     "src/gpu/x_native.cpp:2: <unistd.h> belongs to an operating system; only files of base and gpu that end in _posix or "
     "_windows may include it (docs/design/platforms.md)."),
    ("system_header_above_gpu", "src/kernels/op/x_posix.cpp", "// X.\n#include <sys/stat.h>\n",
     "src/kernels/op/x_posix.cpp:2: <sys/stat.h> belongs to an operating system; only files of base and gpu that end in "
     "_posix or _windows may include it (docs/design/platforms.md)."),
    ("system_header_in_a_test", "src/kernels/op/op_test.cpp", "// X.\n#include <dlfcn.h>\n",
     "src/kernels/op/op_test.cpp:2: <dlfcn.h> belongs to an operating system; only files of base and gpu that end in "
     "_posix or _windows may include it (docs/design/platforms.md)."),
    ("names_by_the_code_page", "src/gpu/x_native.cpp", "// X.\n#include <filesystem>\n",
     "src/gpu/x_native.cpp:2: <filesystem> reads names by the code page of Windows; base/folders.h and base/file.h take UTF-8."),
    ("a_file_removed_by_the_code_page", "src/gpu/x_native.cpp", "// X.\nint i = std::remove(path.c_str());\n",
     "src/gpu/x_native.cpp:2: std::remove(path.c_str()) reads names by the code page of Windows; base/file.h and "
     "base/own_folders_native.h have it in UTF-8."),
    ("a_semaphore", "src/gpu/x_native.cpp", "// X.\n#include <semaphore>\n",
     "src/gpu/x_native.cpp:2: <semaphore> loses wake-ups on Windows with GCC 12; use a condition variable."),
    ("platform_if", "src/kernels/op/x.cpp", "// X.\n#ifdef __wasm__\n#endif\n",
     "src/kernels/op/x.cpp:2: #if on the platform (__wasm...); make it a file with a platform suffix."),
    ("no_opening_comment", "src/base/x.h", "#pragma once\n",
     "src/base/x.h:1: the file does not open with a comment that says what it is for."),
    ("source_opening_with_another_header", "src/base/x.cpp", '#include "base/text.h"\n',
     "src/base/x.cpp:1: the file does not open with a comment that says what it is for."),
    ("component_write", "src/kernels/op/x.wgsl", "// X.\nfn f(i: u32) {\n  sums[i >> 2u][i & 3u] += 1.0;\n}\n",
     "src/kernels/op/x.wgsl:3: writes one component of a vector in an array, which may write all of it; use an array of "
     "scalars."),
    ("device_number", "src/kernels/op/x.cpp", "// X.\nint i;\nconstexpr int kEnough = 264;\n",
     "src/kernels/op/x.cpp:3: 264 is a GPU's name or its number of workgroups; give it a row in the folder's "
     "measured.h (kernels/common/measured.h)."),
    ("long_readme", "src/gpu/README.md", "# gpu\n" + "line\n" * 10, "src/gpu/README.md: 11 lines; at most 10."),
    ("no_readme", "src/model/x.h", "// X.\n",
     "src/model: README.md is missing (what lives here, what may it include, where to start reading)."),
    ("unknown_layer", "src/extra/README.md", "# extra\n", None),
    ("unknown_layer_source", "src/extra/x.h", "// X.\n",
     "src/extra/x.h: src/extra is not a layer; add it to MAY_INCLUDE of tools/check_layers with what it may include."),
]


def check_tree(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return check_layers.check(root)


class CheckLayersTest(unittest.TestCase):
    def test_a_good_tree_passes(self):
        self.assertEqual(check_tree(GOOD), ([], []))

    def test_each_rule_refuses_with_its_sentence(self):
        for name, path, text, sentence in REFUSED:
            with self.subTest(name):
                violations, _ = check_tree(GOOD | {path: text})
                if sentence is None:
                    self.assertEqual(violations, [])
                else:
                    self.assertIn(sentence, violations)

    def test_a_long_file_is_listed_but_passes(self):
        violations, long_files = check_tree(GOOD | {"src/base/x.h": "// X.\n" * 401})
        self.assertEqual((violations, long_files), ([], [(401, "src/base/x.h")]))


if __name__ == "__main__":
    unittest.main()
