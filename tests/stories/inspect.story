# What a model file holds, without a GPU; also for models that cannot be run.

== the shipped model
needs model
$ doppler inspect
~.*storyteller\.gguf: GGUF version 3, 25\.17 M parameters, .*

Architecture
family        llama
layers        8
hidden        512
heads         8 of 64, 2 for keys and values
...
Memory on the device
~weights +.*
~cache +4\.00 MiB \(1024 tokens, f16\)
...
kind       byte-level BPE
tokens     8192
bos        1 <|begin|>
eos        0 <|end|>
...
~tokenizer\.ggml\.tokens +\["<\|end\|>", .*\.\.\. 8192 in all\]
...

== its tensors and its template
needs model
$ doppler inspect --tensors | grep -A1 '^Tensors'
~Tensors +type +shape +size
~[a-z0-9._]+ +[a-z0-9_]+ +[0-9x ]+ +[0-9.]+ [KM]?i?B
$ doppler inspect --template | head -c 14
{%- for m in m

== the estimate follows context and cache format
$ doppler inspect --synthetic llama-3.1-8b --ctx 8192 | grep '^cache'
~cache +1\.00 GiB \(8192 tokens, f16\)
$ doppler inspect --synthetic llama-3.1-8b --ctx 8192 --kv f32 | grep '^cache'
~cache +2\.00 GiB \(8192 tokens, f32\)
$ doppler inspect --synthetic llama-3.1-8b --ctx 8192 --kv q8_0 | grep '^cache'
~cache +544\.0 MiB \(8192 tokens, q8_0\)

== synthetic models say that they are
$ doppler inspect --synthetic llama-tiny | grep '^family'
family        llama (SYNTHETIC: random weights)

== a layer that predicts the token after the next one
$ mkdir next
$ echo '{"model_type": "qwen3_5_text", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "intermediate_size": 96, "vocab_size": 512, "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 32, "linear_value_head_dim": 32, "mtp_num_hidden_layers": 1, "tie_word_embeddings": true}' > next/config.json
$ doppler inspect --synthetic next/config.json:q8_0 | grep '^layers'
layers        4, 1 for further tokens
$ doppler inspect --synthetic next/config.json:q8_0 --json | grep '"layers"\|"next_layers"'
~ +"layers": 4,
~ +"next_layers": 1,

== JSON for programs
$ doppler inspect --synthetic llama-tiny:q8_0 --json > report.json
$ grep -c '"name": "blk\.' report.json
18
$ grep '"total_bytes"\|"runs"' report.json
  "runs": true,
~    "total_bytes": \d+

== an architecture that cannot be run is described all the same
$ doppler synth llama-tiny:f16 -o model.gguf > log
$ sed 's/\(general\.architecture.\{12\}\)llama/\1newer/' model.gguf > newer.gguf
$ doppler inspect newer.gguf
~newer\.gguf: GGUF version 3, .*

~This build cannot run it: Architecture "newer" is not supported; supported in GGUF files: llama, .*
...
~general\.architecture +"newer"
...
$ doppler run --model newer.gguf hello 2>&1 | head -1
~doppler: Architecture "newer" is not supported; supported in GGUF files: llama, .*

== what files of each family call things, without a model
$ doppler inspect --architectures
~family +GGUF +pairing +Hugging Face +pairing
~llama +llama +GPT-J +llama, mistral +NEOX
...
~gemma3 +gemma3 +NEOX +gemma3_text, gemma3 +NEOX
...
$ doppler inspect --architectures --json | grep -c post_self_attn_layernorm
1

== flags that exclude each other, values that are not allowed
$ doppler inspect a b
doppler: Several files were given; one is inspected at a time.
exit 2
$ doppler inspect --synthetic llama-tiny a
doppler: Both a file and --synthetic were given; one is needed.
exit 2
$ doppler inspect --kv q8 a
doppler: Flag --kv was given "q8"; allowed are f16, f32 and q8_0.
exit 2
