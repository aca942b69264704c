"""Makes tiny encoders with references: XLM-RoBERTa with a Unigram tokenizer (embedding and class head), ModernBERT with
its class head, and Qwen3-Reranker as a GGUF file. Tokens are by tokenizers and sentencepiece, which must agree, numbers
by transformers (float32, CPU); GGUF files have the names and values that llama.cpp's converter gives them.
  make_encoders.py FOLDER && tar -C FOLDER --sort=name --mtime=@0 --owner=0 --group=0 -cJf tests/data/encoders.tar.xz .
Needs torch, transformers, tokenizers, sentencepiece, gguf and safetensors from PyPI (made with transformers 5.23)."""

import io
import json
import pathlib
import sys

import gguf
import numpy as np
import sentencepiece
import torch
import transformers
from safetensors.torch import save_file
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SAMPLES = """The fox and the crow sat in a tree, and the crow had a piece of cheese in her beak.
Who lives in the tree? The crow lives in the tree, the fox lives in the earth.
A vector of a text is the mean of the states of all its tokens, or the state of the first.
Der Fuchs und der Rabe: In einem Baum saß ein Rabe und hatte ein Stück Käse im Schnabel.
Wer wohnt im Baum? Der Rabe wohnt im Baum, der Fuchs wohnt unter der Erde.
Le renard et le corbeau: maître corbeau, sur un arbre perché, tenait en son bec un fromage.
El zorro y el cuervo estaban en el árbol, y el cuervo tenía un queso en el pico.
Лиса и ворона: вороне где-то бог послал кусочек сыру, на ель ворона взгромоздясь.
Кто живёт на дереве? Ворона живёт на дереве, а лиса живёт в норе.
狐狸和乌鸦坐在树上，乌鸦嘴里叼着一块奶酪。谁住在树上？乌鸦住在树上。
狐とカラスが木の上に座っていました。カラスはくちばしにチーズをくわえていました。
الثعلب والغراب كانا على الشجرة، وكان الغراب يحمل قطعة جبن في منقاره.
लोमड़ी और कौआ पेड़ पर बैठे थे, और कौए की चोंच में पनीर का टुकड़ा था।
Η αλεπού και το κοράκι κάθονταν στο δέντρο, και το κοράκι είχε ένα κομμάτι τυρί.
Tilki ve karga ağaçta oturuyordu, karganın gagasında bir parça peynir vardı.
In 2024 there were 1,250 trees (of 17 kinds); 3.14 is not 22/7, and 50 % of 8 is 4."""

# Texts for the map of characters, white space and characters that are no token. Groups of marks beyond 5 bytes, in
# which tokenizers and sentencepiece differ, are left out.
TEXTS = SAMPLES.split("\n") + [
    "", " ", "a", "  two  spaces  and\ta tab\nand a line ", "ﬁne ligatures: ﬂow, Ⅳ, ㎏, ½, ２０２４, ｆｕｌｌ　ｗｉｄｔｈ",
    "e\u0301te\u0301 and été, n\u0303 and ñ", "soft\u00adhyphen, zero\u200bwidth, no\u00a0break, bell\x07", "\u2581mark and a\u2581mark",
    "unknown: \U0001F98A\U0001F98A and \u1234\u1235 x \U0001F9C0", "ΑΛΕΠΟΥ ΚΑΙ ΚΟΡΑΚΙ", "ТЕКСТ ЗАГЛАВНЫМИ", "mixed 狐と fox и лиса",
    "hyphen-ated, under_scored, https://example.org/?a=b&c=d", "한국어 문장", "\ufeffbyte order mark", "Ｗｈｏ lives in the tree？",
    "crowcrowcrowfoxfoxfox", "x" * 40, "« le corbeau » … — “quoted” ‘twice’", "ｶﾗｽ"]
PAIRS = [("Who lives in the tree?", "The crow lives in the tree."), ("Wer wohnt im Baum?", "🦊"), ("fox", "")]

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
HIDDEN, HEADS, LAYERS, FFN = 30, 3, 2, 40  # of XLM-RoBERTa
SMALL = dict(hidden_size=24, num_attention_heads=2, intermediate_size=28, attn_implementation="eager")  # of the others


def train():
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SAMPLES.split("\n") * 4), model_writer=out, vocab_size=560, model_type="unigram",
        character_coverage=0.995, normalization_rule_name="nmt_nfkc", num_threads=1, minloglevel=2,
        hard_vocab_limit=False)
    return out.getvalue()


# As published: the four first tokens in fairseq's order, <mask> last.
def unigram_tokenizer(model):
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    vocab = [(text, 0.0) for text in SPECIALS] + pieces[3:] + [("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=3))
    tokenizer.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(SPECIALS + [AddedToken("<mask>", lstrip=True)])
    return tokenizer, proto


def vectors_of(tokenizer, model):
    slow = sentencepiece.SentencePieceProcessor(model_proto=model)
    vectors = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        other = [3 if i == 0 else i + 1 for i in slow.encode(text)]
        if ids != other:
            raise SystemExit(f"tokenizers and sentencepiece differ in {text!r}: {ids} and {other}")
        vectors.append({"text": text, "ids": ids})
    return vectors


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            is_norm = "norm" in name.lower()
            scale = 0.1 if is_norm or weight.dim() == 1 else 1.5 / weight.shape[-1] ** 0.5
            weight.copy_(((1.0 if is_norm and name.endswith("weight") else 0.0) + scale * noise).half().float())
    return model.eval()


def save(folder, model, config, refs, drop=()):
    folder.mkdir(parents=True, exist_ok=True)
    # Matrices in f16, which the weights were rounded to.
    tensors = {name: weight.half().contiguous() for name, weight in model.state_dict().items()
               if not name.endswith(("position_ids", "token_type_ids")) and not name.startswith(drop)}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_file({name: torch.as_tensor(np.ascontiguousarray(value)) for name, value in refs.items()},
              folder / "embedding_refs.safetensors")


def config_of(model, architecture, **fields):
    config = {key: value for key, value in json.loads(model.config.to_json_string()).items()
              if key not in ("transformers_version", "dtype", "torch_dtype", "id2label", "label2id", "_name_or_path")}
    return {**config, "architectures": [architecture], **fields}


def states_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), output_hidden_states=True)


def embedding_refs(model, tokenizer):
    refs = {}
    for name, text in (("a", TEXTS[3]), ("b", TEXTS[9])):
        ids = tokenizer.encode(text).ids
        out = states_of(model, ids)
        last = out.last_hidden_state[0]
        refs[f"prompt_{name}"] = np.array(ids, np.int32)
        refs[f"last_hidden_{name}"] = last.numpy()
        for key, vector in (("embedding", last[0]), ("mean", last.mean(0))):
            refs[f"{key}_{name}"] = (vector / vector.norm()).numpy()
        if name == "a":
            refs["hidden_a_last"] = np.stack([layer[0, -1].numpy() for layer in out.hidden_states])
    return refs


def write_modules(folder):
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
         for i, (kind, path) in enumerate(modules)]))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling/config.json").write_text(json.dumps(
        {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))


BERT_NAMES = {"embeddings.word_embeddings": "token_embd", "embeddings.token_type_embeddings": "token_types",
              "embeddings.position_embeddings": "position_embd", "embeddings.LayerNorm": "token_embd_norm",
              "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
              "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
              "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}


# As llama.cpp's converter does it: positions without the first rows, tokens in fairseq's order, the map as bytes.
def write_xlmr_gguf(path, model, proto):
    config, offset = model.config, model.config.pad_token_id + 1
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_block_count(LAYERS)
    writer.add_context_length(config.max_position_embeddings - offset)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    kinds = gguf.TokenType
    pieces = [(piece.piece, piece.score, kinds.NORMAL) for piece in proto.pieces]
    pieces += [(f"[PAD{i}]", -10000.0, kinds.UNUSED) for i in range(len(pieces), config.vocab_size)]
    first = [(text, 0.0, kinds.UNKNOWN if text == "<unk>" else kinds.CONTROL) for text in SPECIALS]
    pieces = first + pieces[3:-1]
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([text for text, _, _ in pieces])
    writer.add_token_scores([score for _, score, _ in pieces])
    writer.add_token_types([int(kind) for _, _, kind in pieces])
    writer.add_add_space_prefix(proto.normalizer_spec.add_dummy_prefix)
    writer.add_token_type_count(1)
    writer.add_remove_extra_whitespaces(proto.normalizer_spec.remove_extra_whitespaces)
    writer.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)
    for name, number in (("bos", 0), ("eos", 2), ("unk", 3), ("sep", 2), ("pad", 1), ("mask", config.vocab_size - 1)):
        getattr(writer, f"add_{name}_token_id")(number)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    for name, weight in model.state_dict().items():
        stem, _, suffix = name.rpartition(".")
        if stem.startswith("pooler") or suffix not in ("weight", "bias"):
            continue
        layer = ""
        if stem.startswith("encoder.layer."):
            number, stem = stem.removeprefix("encoder.layer.").split(".", 1)
            layer = f"blk.{number}."
        data = weight.numpy()
        if stem.endswith("position_embeddings"):
            data = data[offset:]
        is_matrix = data.ndim == 2 and not stem.endswith(("position_embeddings", "token_type_embeddings"))
        writer.add_tensor(f"{layer}{BERT_NAMES[stem]}.{suffix}", data.astype(np.float16) if is_matrix else data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_xlm_roberta(home):
    model_bytes = train()
    tokenizer, proto = unigram_tokenizer(model_bytes)
    vectors = vectors_of(tokenizer, model_bytes)
    pairs = [{"first": first, "second": second, "ids": tokenizer.encode(first, second).ids} for first, second in PAIRS]
    numbers = dict(vocab_size=tokenizer.get_vocab_size(), hidden_size=HIDDEN, num_hidden_layers=LAYERS,
                   num_attention_heads=HEADS, intermediate_size=FFN, max_position_embeddings=82, type_vocab_size=1,
                   pad_token_id=1, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5, hidden_act="gelu")
    config = transformers.XLMRobertaConfig(**numbers, attn_implementation="eager")
    model = randomise(transformers.XLMRobertaModel(config, add_pooling_layer=False), 1)
    save(home / "xlmr_cls", model, config_of(model, "XLMRobertaModel"), embedding_refs(model, tokenizer))
    write_modules(home / "xlmr_cls")
    tokenizer.save(str(home / "xlmr_cls/tokenizer.json"), pretty=False)
    write_xlmr_gguf(home / "xlmr_mean.gguf", model, proto)
    (home / "xlmr_cls/tokens.json").write_text(json.dumps({"texts": vectors, "pairs": pairs}, ensure_ascii=False))
    scorer = randomise(transformers.XLMRobertaForSequenceClassification(
        transformers.XLMRobertaConfig(**numbers, num_labels=1, attn_implementation="eager")), 2)
    scorer.roberta.load_state_dict(model.state_dict())  # the archive holds equal bytes once
    ids = pairs[0]["ids"]
    with torch.no_grad():
        score = scorer(torch.tensor([ids])).logits[0].numpy()
    save(home / "xlmr_rerank", scorer, config_of(scorer, "XLMRobertaForSequenceClassification"),
         {"prompt_a": np.array(ids, np.int32), "score_a": score})
    tokenizer.save(str(home / "xlmr_rerank/tokenizer.json"), pretty=False)


def make_modernbert(home):
    numbers = dict(SMALL, vocab_size=50, num_hidden_layers=3, max_position_embeddings=64, local_attention=8, num_labels=1,
                   pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2)
    ids = np.random.default_rng(5).integers(3, 50, 21).astype(np.int32)
    refs = {"prompt_a": ids}
    for pool in ("cls", "mean"):
        config = transformers.ModernBertConfig(**numbers, classifier_pooling=pool)
        model = randomise(transformers.ModernBertForSequenceClassification(config), 3)
        with torch.no_grad():
            refs[f"score_{pool}"] = model(torch.tensor(ids[None].astype(np.int64))).logits[0].numpy()
    save(home / "modernbert_rerank", model, config_of(model, "ModernBertForSequenceClassification"), refs)


# The prompt of its model card, with every byte a token but the marks, "yes" and "no".
ASK = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
       'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web '
       "search query, retrieve relevant passages that answer the query\n<Query>: {}\n<Document>: {}<|im_end|>\n"
       "<|im_start|>assistant\n<think>\n\n</think>\n\n")
MARKS = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]


def byte_characters():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = {byte: 256 + i for i, byte in enumerate(b for b in range(256) if b not in kept)}
    return [chr(moved.get(byte, byte)) for byte in range(256)]


def make_qwen3_reranker(home):
    tokens = byte_characters() + ["ye", "yes", "no"] + MARKS
    yes, no = tokens.index("yes"), tokens.index("no")
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, [("y", "e"), ("ye", "s"), ("n", "o")]))
    qwen = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(qwen), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.add_special_tokens(MARKS)
    config = transformers.Qwen3Config(
        **SMALL, vocab_size=len(tokens), num_hidden_layers=1, num_key_value_heads=1, head_dim=12,
        max_position_embeddings=1024, tie_word_embeddings=True, rms_norm_eps=1e-6, rope_theta=10000.0)
    model = randomise(transformers.Qwen3ForCausalLM(config), 7)
    ids = tokenizer.encode(ASK.format("Who lives in the tree?", "The crow does.")).ids
    with torch.no_grad():
        last = model(torch.tensor([ids])).logits[0, -1]
    folder = home / "qwen3_reranker"
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"prompt_a": torch.tensor(ids, dtype=torch.int32), "score_a": torch.stack([last[yes], last[no]])},
              folder / "embedding_refs.safetensors")
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "input_layernorm": "attn_norm",
             "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
             "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}
    writer = gguf.GGUFWriter(folder / "model.gguf", "qwen3")
    writer.add_block_count(1)
    writer.add_context_length(1024)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(1)
    writer.add_key_length(12)
    writer.add_value_length(12)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_classifier_output_labels(["yes", "no"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if text in MARKS else 1 for text in tokens])
    writer.add_token_merges(["y e", "ye s", "n o"])
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    table = model.model.embed_tokens.weight.detach().numpy()
    writer.add_tensor("cls.output.weight", np.stack([table[yes], table[no]]).astype(np.float16))
    for name, weight in model.state_dict().items():
        stem = name.removesuffix(".weight")
        if stem == "lm_head":
            continue
        layer = ""
        if stem.startswith("model.layers."):
            number, stem = stem.removeprefix("model.layers.").split(".", 1)
            layer = f"blk.{number}."
        data = weight.numpy()
        writer.add_tensor(f"{layer}{names[stem]}.weight", data.astype(np.float16) if data.ndim == 2 else data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    home = pathlib.Path(sys.argv[1])
    make_xlm_roberta(home)
    make_modernbert(home)
    make_qwen3_reranker(home)
