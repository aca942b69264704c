# Models by name, and what loading one would take. Downloads are tested in tests/store.

== a store that is not there is empty
$ DOPPLER_HOME=$PWD doppler list
~There are no models in .*/models; doppler pull fetches one\.

== a stored model is meant by its name, unless something here has that name
$ doppler synth llama-tiny:q8_0 -o tiny.gguf > out
$ export DOPPLER_HOME=$PWD; doppler pull -q tiny.gguf --name mine | head -n 1
~mine: .* in [\d.]+ s, not checked: the source names no hash
$ export DOPPLER_HOME=$PWD; doppler inspect mine | head -n 1
~.*/models/mine/tiny\.gguf: GGUF version 3, .*
$ export DOPPLER_HOME=$PWD; mkdir mine; doppler inspect mine | head -n 1
~doppler: .*mine.*
$ export DOPPLER_HOME=$PWD; doppler rm mine; doppler list --json | grep '"models"'
~mine: .* freed
  "models": [],

== what loading would take, without loading
needs webgpu
$ doppler run $FLAGS --dry-run --synthetic llama-tiny --ctx 256 2>/dev/null | grep -e '^total' -e '^It fits' | cut -c1-7
total  
It fits
$ doppler bench $FLAGS --dry-run --synthetic llama-tiny -o json 2>/dev/null | grep '"fits"'
  "fits": true,
$ doppler run $FLAGS --dry-run --synthetic llama-tiny:q8_0 --lora-slots 2 --lora-rank 8 2>/dev/null | grep '^of them'
~of them adapters +768\.0 KiB

== embeddings of each layer stay in the file
needs webgpu
$ doppler run $FLAGS --dry-run --synthetic gemma-4-e2b --ctx 256 2>/dev/null | grep '^of them'
~of them embeddings of each layer +1\.\d+ GiB
$ doppler run $FLAGS --dry-run --synthetic gemma-4-e2b --ctx 256 --layer-table-on-host 2>/dev/null | grep '^of them'
~of them embeddings of each layer +\d\.\d+ MiB \(a step's rows; the table stays in the file\)
$ doppler run $FLAGS --dry-run --synthetic llama-tiny --layer-table-on-host
doppler: Embeddings of each layer cannot stay on the host (--layer-table-on-host): the model has none.
exit 1

== what cannot fit is refused with what would
needs webgpu
$ doppler run $FLAGS --dry-run --synthetic llama-3.1-70b:f32 --ctx 131072 >out 2>err
exit 1
$ tail -n 1 err
~doppler: (The model needs .* \(weights .*, cache for 131072 tokens .*, scratch .*\), but .* has|A context of 131072 tokens) .*
