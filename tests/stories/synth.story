# Synthetic models: real shapes, random weights, always labelled.

== the shapes
$ doppler synth --list
~shape +layers +hidden .*
~llama-tiny +2 +256 .*
~llama-3\.2-1b +16 +2048 .*
...
~QUANT is one of f32, .* \(default: q4_k_m\)\.

== a file that says it is synthetic
$ doppler synth llama-tiny:q8_0 -o tiny.gguf
~tiny\.gguf: synthetic-llama-tiny-q8_0, synthetic \(random weights\), 1\.89 MiB in .*
$ doppler inspect tiny.gguf | grep '^general.name'
~general\.name +"synthetic-llama-tiny-q8_0"

== a file that exists stays unless it is to be replaced
$ echo mine > tiny.gguf; doppler synth llama-tiny:q8_0 -o tiny.gguf
doppler: tiny.gguf exists already; --replace puts the result in its place.
exit 1
$ cat tiny.gguf
mine
$ doppler synth llama-tiny:q8_0 -o tiny.gguf --replace > log; head -c 4 tiny.gguf
GGUF

== the same spec gives the same bytes
$ doppler synth llama-tiny:q4_k_m -o a.gguf > log
$ doppler synth llama-tiny -o b.gguf > log
$ cmp a.gguf b.gguf

== the shape of any config.json
$ mkdir my-model
$ echo '{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "intermediate_size": 96, "vocab_size": 512, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}' > my-model/config.json
$ doppler synth my-model/config.json:q8_0 -o tiny.gguf
~tiny\.gguf: synthetic-my-model-q8_0, synthetic \(random weights\), .*
$ doppler synth none/config.json -o x.gguf
~doppler: .*none/config\.json.*
exit 1
$ echo '{"model_type": "lama"}' > my-model/config.json
$ doppler synth my-model/config.json -o x.gguf
~doppler: .*lama.*
exit 2

== a pair of models of which one guesses what the other writes
needs webgpu
$ mkdir shape
$ echo '{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 512, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "intermediate_size": 256, "vocab_size": 1024, "rms_norm_eps": 1e-5, "max_position_embeddings": 256}' > shape/config.json
$ doppler synth shape/config.json:q8_0 --agree 1 -o target.gguf > log
$ doppler synth shape/config.json:q8_0 --agree 0.5 -o draft.gguf > log
$ doppler run -m target.gguf $FLAGS --tokens 300 -n 64 --temp 0 --ignore-eos -q --draft-model draft.gguf --draft-rows 4 --json > out.json
$ grep -A3 '"tokens"' out.json
  "tokens": [
    301,
    302,
    303,
$ grep -c '"accepted_tokens": [1-9]' out.json
1
$ doppler synth shape/config.json --agree 2 -o x.gguf
doppler: Flag --agree was given "2"; allowed is 0 to 1.
exit 2
$ doppler synth llama-tiny --agree 1 --adapter 4 -o x.gguf
doppler: Flag --agree is for a model; --adapter writes an adapter, whose text is not known.
exit 2

== what cannot be made
$ doppler synth llama-tinny -o x.gguf
~doppler: There is no shape "llama-tinny" \(did you mean llama-tiny\?\); there are llama-tiny, .*
exit 2
$ doppler synth llama-tiny:q9 -o x.gguf
~doppler: There is no quantisation "q9"; there are f32, .*
exit 2
$ doppler synth llama-tiny
doppler: One SHAPE[:QUANT] and -o FILE are needed; --list shows the shapes.
exit 2
$ doppler synth llama-tiny -o folder/x.gguf
doppler: Cannot write folder/x.gguf.part: No such file or directory.
exit 1
$ ls
