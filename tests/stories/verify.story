# doppler verify: what it can say of a model that has hashes and of one that has none. Damage of every kind is tested
# beside the code (src/formats/rdrr).

== a GGUF file has no hashes; its structure is looked at
needs model
$ doppler verify
~.*storyteller\.gguf: GGUF, tensors: \d+
  bytes      none: only RDRR models have hashes
  structure  ok: llama, 8 layers, vocabulary of 8192
  self test  none: only RDRR models have one

== a manifest that was cut is named, in text and as JSON
$ mkdir cut && printf '{\n  "format": "rdrr"' > cut/manifest.json && echo weights > cut/shard_00000.bin
$ doppler verify cut
cut: RDRR
  bytes      FAILED
    cut/manifest.json is damaged or was edited: it does not end with its "manifest_sha256".
  structure  FAILED
    cut/manifest.json is not valid JSON.
  self test  skipped
exit 1
$ doppler verify cut --json | grep -c '"manifest.json"'
1
$ doppler inspect cut
doppler: cut/manifest.json is damaged or was edited: it does not end with its "manifest_sha256".
exit 1

== only what has hashes can be repaired
$ echo text > tale.gguf
$ doppler verify --repair elsewhere tale.gguf
doppler: tale.gguf is no RDRR folder; only those have hashes to repair by.
exit 1

== a folder that is not there
$ doppler verify nowhere
doppler: There is no file or folder "nowhere".
exit 1
