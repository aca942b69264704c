"""Makes graphs of a GGUF file for ONNX Runtime GenAI: the file's weights as a Hugging Face folder, out of which its own
builder makes them, where onnxruntime.cpp finds them (ENGINES/graphs), and transformers.mjs. Needs PyTorch:
onnx_model.txt."""

import argparse
import copy
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from comparison import install  # noqa: E402

# Name -> precision, provider, options of the builder. Rows named only after the provider are the builder's defaults.
GRAPHS = {
    "int4-cpu": ("int4", "cpu", ()),
    "int4-cpu-last": ("int4", "cpu", ("prune_lm_head=true",)),  # logits of a prompt's last token only
    "int4-cpu-f32": ("int4", "cpu", ("accuracy_level=1",)),  # activations are not rounded to 8 bits
    "fp32-cpu": ("fp32", "cpu", ()),
    "int4-webgpu": ("int4", "webgpu", ()),
    "int4-webgpu-captured": ("int4", "webgpu", ("prune_lm_head=true", "enable_webgpu_graph=true")),
    "int4-webgpu-f32": ("int4", "webgpu", ("use_webgpu_fp32=true",)),  # for devices without 16-bit floats in shaders
}
LEAST_LAYERS = 3  # one that may be repeated, between the first and the last
# Where its builder writes a layer's number: in nodes, weights and values, in the cache's inputs and outputs.
LAYER = re.compile(r"(?<=layers\.)\d+|(?<=past_key_values\.)\d+|(?<=present\.)\d+")
# No request and no report goes to a hub.
QUIET = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "ORT_TELEMETRY_DISABLED": "1", "ORT_GENAI_TELEMETRY_DISABLED": "1"}


def hugging_face_folder(model, folder):
    """The file's weights as 32-bit numbers, its configuration and its tokenizer. transformers saves no model that it
    read from GGUF, as such a one counts as quantised; so its tensors are written one by one."""
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


def renumbered(item, by, least=0):
    """A copy of a node, a weight or a value, all layer numbers in it that are not below `least` raised."""
    def raised(name):
        return LAYER.sub(lambda found: str(int(found[0]) + (by if int(found[0]) >= least else 0)), name)
    made = copy.deepcopy(item)
    made.name = raised(made.name)
    for names in (made.input, made.output) if hasattr(made, "op_type") else ():
        names[:] = [raised(name) for name in names]
    return made


def with_layers(items, count, layers):
    """Repeats the last but one layer of a graph of `count` layers until it has `layers`; copies stand before the nodes
    that follow."""
    out, middle = [], []

    def repeat():
        out.extend(renumbered(item, by) for by in range(layers - count + 1) for item in middle)
        middle.clear()
    for item in items:
        found = LAYER.search(item.name)
        layer = int(found[0]) if found else None
        if layer == count - 2:
            middle.append(item)
        elif layer is not None and layer >= count - 1:
            repeat()
            out.append(renumbered(item, layers - count))
        else:
            out.append(renumbered(item, layers - count, count - 1))
    repeat()
    return out


def repeat_layer(folder, layers):
    """Copies share their weights' bytes in the file, not in memory: a shape's speed without its size on disk."""
    import onnx

    config = json.loads((folder / "genai_config.json").read_text())
    count = config["model"]["decoder"]["num_hidden_layers"]
    if not LEAST_LAYERS <= count <= layers:
        raise SystemExit(f"A graph of {count} layers cannot become one of {layers}: it needs {LEAST_LAYERS} or more, and no more.")
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    for field in (model.graph.node, model.graph.initializer, model.graph.value_info, model.graph.input, model.graph.output):
        made = with_layers(field, count, layers)
        del field[:]
        field.extend(made)
    onnx.save(model, folder / "model.onnx")
    config["model"]["decoder"]["num_hidden_layers"] = layers
    (folder / "genai_config.json").write_text(json.dumps(config, indent=4))


def for_transformers_js(source, out):
    """Its configuration, and the size of a head where the builder wrote a name that Transformers.js does not know."""
    import onnx

    shutil.copy(source / "config.json", out)
    size = json.loads((out / "genai_config.json").read_text())["model"]["decoder"]["head_size"]
    model = onnx.load(out / "model.onnx", load_external_data=False)
    for value in (*model.graph.input, *model.graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param == "kv_cache_dim":
                dimension.dim_value = size
    onnx.save(model, out / "model.onnx")


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make(model, names, folder, stem, layers):
    """Graphs of one file; each appears in `folder` when it is whole. layers: None, or as many as the graphs shall
    have."""
    import onnxruntime_genai

    folder.mkdir(parents=True, exist_ok=True)
    digest = digest_of(model)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        source, out = pathlib.Path(scratch) / "hf", pathlib.Path(scratch) / "graph"
        source.mkdir()
        hugging_face_folder(model, source)
        for name in names:
            precision, provider, options = GRAPHS[name]
            subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", out, "-p", precision,
                            "-e", provider, "-c", pathlib.Path(scratch) / "cache", "--extra_options", "hf_token=false", *options],
                           check=True)
            told = [f"{precision} for {provider} by its builder {onnxruntime_genai.__version__}", *options]
            for_transformers_js(source, out)
            if layers:
                repeat_layer(out, layers)
                told.append(f"a layer repeated to make {layers}")
            (out / "made_by").write_text(f"{', '.join(told)}, of the file with SHA-256 {digest[:12]}")
            target = folder / f"{stem}.{name}"
            shutil.rmtree(target, ignore_errors=True)
            out.rename(target)
            print(target)


def main(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path, help="a GGUF file")
    parser.add_argument("graph", nargs="+", choices=tuple(GRAPHS), help="which graphs")
    parser.add_argument("--layers", type=int, metavar="N", help="repeat the last layer but one until there are N")
    parser.add_argument("--name", metavar="STEM", help="the model that the graphs are for (default: the file's own name)")
    parser.add_argument("--folder", type=pathlib.Path, default=install.default_folder(), help="where engines are installed")
    arguments = parser.parse_args(words)
    os.environ.update(QUIET)
    make(arguments.model, arguments.graph, arguments.folder / "graphs", arguments.name or arguments.model.stem, arguments.layers)


if __name__ == "__main__":
    main(sys.argv[1:])
