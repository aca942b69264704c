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

== the same spec gives the same bytes
$ doppler synth llama-tiny:q4_k_m -o a.gguf > log
$ doppler synth llama-tiny -o b.gguf > log
$ cmp a.gguf b.gguf

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
