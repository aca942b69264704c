"""`doppler serve` with the shipped model: each API whole and streamed, errors by name, limits, clients that misbehave,
an orderly end. One server for all of it, since loading takes longest.
  python3 server_test.py --doppler PROGRAM [--embedding-model FOLDER] [--scoring-model FOLDER] [unittest options]"""

import os
import sys
import unittest

from load_cases import Load  # noqa: F401
from openai_cases import OpenAI  # noqa: F401
from other_cases import Embeddings, Others, Rerank  # noqa: F401
from process_cases import Defaults, Devices, Ends, WarmUp  # noqa: F401
from served_case import GIVEN, ServerCase

if __name__ == "__main__":
    arguments = sys.argv[1:]

    def path_of(flag, otherwise):
        if flag not in arguments:
            return otherwise
        at = arguments.index(flag)
        path = os.path.abspath(arguments[at + 1])
        del arguments[at:at + 2]
        return path

    GIVEN.doppler = path_of("--doppler", GIVEN.doppler)
    GIVEN.embedding_model, GIVEN.scoring_model = path_of("--embedding-model", ""), path_of("--scoring-model", "")
    program = unittest.main(argv=[sys.argv[0], *arguments], exit=False)
    ServerCase.end_server()
    sys.exit(not program.result.wasSuccessful())
