"""sass.py finds code and scheduling bits in bytes as the driver lays them out; programs of a CUDA toolkit are not
needed."""
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sass

# LDG.E.128 of a real kernel: stalls 1, sets counter 5, operands free 0, waits for 1 and 2.
CONTROL = 1 | 5 << 5 | 0 << 8 | 0b000110 << 11
LOAD = struct.pack("<QQ", 0x1234, CONTROL << 41)
PLAIN = struct.pack("<QQ", 0x5678, (4 | 7 << 5 | 7 << 8) << 41)


def shader(code):
    header = bytearray(0x150)
    header[:8] = sass.SHADER
    struct.pack_into("<III", header, 0x48, sass.CODE, len(code), len(header))
    return bytes(header) + bytes(sass.BEHIND) + code + bytes(64)


class SassTest(unittest.TestCase):
    def test_scheduling_bits(self):
        self.assertEqual(sass.waits(LOAD), "st 1 W5 R0 wait[12    ]")
        self.assertEqual(sass.waits(PLAIN), "st 4       wait[      ]")

    def test_the_section_of_code(self):
        code = LOAD * 8 + PLAIN * 8
        self.assertEqual(sass.code_of(shader(code)), code)
        self.assertIsNone(sass.code_of(bytes(0x400)))

    def test_lines_have_their_bits_and_no_filling(self):
        said = "        /*0000*/                   LDG.E.128 R4, [R2] ;\n        /*0010*/                   NOP ;\n        /*0020*/   EXIT ;\n"
        self.assertEqual(sass.listing(LOAD + PLAIN, said), ["0000 st 1 W5 R0 wait[12    ] LDG.E.128 R4, [R2]"])


if __name__ == "__main__":
    unittest.main()
