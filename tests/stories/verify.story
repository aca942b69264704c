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

== a damaged folder is repaired from a stored model, by its name, and the other way round
$ doppler synth llama-tiny:q8_0 -o a.gguf > log; doppler convert a.gguf folder > log
$ export DOPPLER_HOME=$PWD; doppler pull -q folder --name mine > log; printf x | dd of=folder/shard_00000.bin seek=5000 bs=1 conv=notrunc 2> log
$ export DOPPLER_HOME=$PWD; doppler verify --no-self-test folder | grep -c 'shard_00000.bin'
1
$ export DOPPLER_HOME=$PWD; doppler verify --no-self-test --repair mine folder > log && grep -c repaired log
1
$ export DOPPLER_HOME=$PWD; printf x | dd of=models/mine/shard_00000.bin seek=7000 bs=1 conv=notrunc 2> log; doppler verify --no-self-test mine > log
exit 1
$ export DOPPLER_HOME=$PWD; doppler verify --no-self-test --repair folder mine > log && doppler verify --no-self-test mine | grep -c 'structure  ok'
1
