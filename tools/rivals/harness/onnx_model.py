"""Makes a graph of a GGUF file for ONNX Runtime GenAI: the file's weights as a Hugging Face folder, out of which its own
builder makes the graph, where onnxruntime.cpp finds it (ENGINES/graphs). Needs PyTorch and more: onnx_model.txt."""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from comparison import install  # noqa: E402

# Name -> precision, provider, options of the builder. Rows named after the provider alone are the builder's defaults.
GRAPHS = {
    "int4-cpu": ("int4", "cpu", ()),
    "int4-cpu-last": ("int4", "cpu", ("prune_lm_head=true",)),  # logits of a prompt's last token alone
    "int4-cpu-f32": ("int4", "cpu", ("accuracy_level=1",)),  # activations are not rounded to 8 bits
    "fp32-cpu": ("fp32", "cpu", ()),
    "int4-webgpu": ("int4", "webgpu", ()),
    "int4-webgpu-captured": ("int4", "webgpu", ("prune_lm_head=true", "enable_webgpu_graph=true")),
    "int4-webgpu-f32": ("int4", "webgpu", ("use_webgpu_fp32=true",)),  # for devices without 16-bit floats in shaders
}
# Nothing is asked of a hub, and nothing is reported to one.
QUIET = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "ORT_TELEMETRY_DISABLED": "1", "ORT_GENAI_TELEMETRY_DISABLED": "1"}


def hugging_face_folder(model, folder):
    """The file's weights as 32-bit numbers, its configuration and its tokenizer. transformers saves no model that it read
    from GGUF, as such a one counts as quantised; so its tensors are written one by one."""
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": str(model.parent), "gguf_file": model.name}
    AutoTokenizer.from_pretrained(**where).save_pretrained(folder)
    loaded = AutoModelForCausalLM.from_pretrained(**where, dtype="float32")
    tensors = loaded.state_dict()
    if loaded.config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    del loaded.config.quantization_config
    loaded.config.architectures = [type(loaded).__name__]
    loaded.config.save_pretrained(folder)


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make(model, name, target):
    """target: a new folder; it appears when it is whole."""
    import onnxruntime_genai

    precision, provider, options = GRAPHS[name]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        source, out = pathlib.Path(scratch) / "hf", pathlib.Path(scratch) / "graph"
        source.mkdir()
        hugging_face_folder(model, source)
        subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", out, "-p", precision,
                        "-e", provider, "-c", pathlib.Path(scratch) / "cache", "--extra_options", "hf_token=false", *options],
                       check=True)
        told = f"{precision} for {provider} by its builder {onnxruntime_genai.__version__}"
        (out / "made_by").write_text(f"{', '.join((told, *options))}, of the file with SHA-256 {digest_of(model)[:12]}")
        out.rename(target)


def main(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path, help="a GGUF file")
    parser.add_argument("graph", nargs="+", choices=tuple(GRAPHS))
    parser.add_argument("--folder", type=pathlib.Path, default=install.default_folder(), help="where engines are installed")
    arguments = parser.parse_args(words)
    os.environ.update(QUIET)
    for name in arguments.graph:
        target = arguments.folder / "graphs" / f"{arguments.model.stem}.{name}"
        shutil.rmtree(target, ignore_errors=True)
        make(arguments.model, name, target)
        print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
