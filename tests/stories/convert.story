# Converting models: round trips, types by rule, and what is refused.

== GGUF to RDRR and back is the same file
$ doppler synth llama-tiny:f16 -o a.gguf > log
$ doppler convert a.gguf folder
~folder: .* of tensors in .* s; \d+ f16, \d+ f32
$ doppler convert folder b.gguf > log
$ cmp a.gguf b.gguf

== types by mix, role and rule
$ doppler synth llama-tiny:f16 -o a.gguf > log
$ doppler convert a.gguf c.gguf --quantize q4_0 --embeddings q8_0 --tensor 'blk\.0\.ffn_(up|gate)=q5_1' > log
$ doppler inspect c.gguf --tensors | grep -E '^(token_embd|blk.[01].ffn_up)'
~token_embd.weight.*q8_0.*
~blk.0.ffn_up.weight.*q5_1.*
~blk.1.ffn_up.weight.*q4_0.*

== an output is not overwritten by accident
$ doppler synth llama-tiny:f16 -o a.gguf > log
$ doppler convert a.gguf c.gguf > log
$ doppler convert a.gguf c.gguf
doppler: c.gguf exists already.
exit 1
$ doppler convert a.gguf c.gguf --replace > log

== what another command left is told
$ doppler synth llama-tiny:f16 -o a.gguf > log
$ touch d.gguf.part; echo something else > d.gguf.part.journal
$ doppler convert a.gguf d.gguf > log
doppler: d.gguf.part was left by another command; the conversion begins anew.

== what cannot be
$ doppler synth llama-tiny:f16 -o a.gguf > log
$ doppler convert a.gguf
~doppler: IN and OUT are needed: .*
exit 2
$ doppler convert a.gguf x.gguf --quantize q9
~doppler: There is no quantisation "q9"; there are keep, f32, .*
exit 2
$ doppler convert a.gguf x.gguf --tensor 'blk=q9'
~doppler: There is no type "q9" to write; there are .*
exit 2
$ doppler convert a.gguf x.gguf --tensor 'blk[=q4_0'
~doppler: "blk\[" is no regular expression: .*
exit 2
$ doppler convert a.gguf x.gguf --tensor 'nothing=q4_0'
doppler: No tensor's name matches "nothing".
exit 1
$ doppler convert a.gguf x.gguf --fuse-qkv
doppler: Fused tensors and layouts are for RDRR folders only: GGUF has no names for them.
exit 2
$ doppler convert nothing.gguf x.gguf
~doppler: .*nothing.gguf.*
exit 1
$ doppler convert a.gguf x --shard-size 3X
~doppler: Flag --shard-size was given "3X"; it takes bytes, or a number with K, M or G.
exit 2

== a draft model is told
$ doppler synth llama-tiny:q8_0 -o a.gguf > log
$ doppler convert a.gguf folder --draft small.gguf > log
$ doppler inspect folder | grep Draft
Draft model: small.gguf (this build does not use one)
$ doppler inspect folder --json | grep '"draft"'
  "draft": "small.gguf",

== what was tuned becomes hints of a folder
needs webgpu posix
$ doppler synth llama-tiny:q4_0 -o a.gguf > log
$ export XDG_CACHE_HOME=$PWD/cache && doppler tune $FLAGS --model a.gguf --budget 1 > tuned
$ doppler kernels $FLAGS --json > kernels.json 2>/dev/null; file=$(sed -n 's/^Stored in \(.*\); doppler kernels.*/\1/p' tuned); python3 -c "import json; f=json.load(open('$file')); k=json.load(open('kernels.json'))['variants'][0]; f['choices']=[{'operation':k['operation'],'shape':'9x9','variant':k['variant'],'seconds':0.001,'table_seconds':0.002,'constants':{'slices':8}}]; json.dump(f,open('t.json','w'))"
$ doppler convert a.gguf folder --hints t.json > log
$ grep -c '"shape":"9x9","lane":"fast","constants":{"slices":8},"seconds":0.001,"table_seconds":0.002' folder/manifest.json
1
$ doppler run $FLAGS --model folder --tokens 1,2 -n 1 --ctx 64 -q > text
$ doppler convert folder without --no-hints > log
$ grep -c '"kernel_hints": null' without/manifest.json
1
$ doppler convert a.gguf b.gguf --hints t.json
doppler: --hints is for RDRR folders only: GGUF has no place for them.
exit 2
$ sed 's/"wgsl": "[0-9a-f]*"/"wgsl": "1234"/' t.json > other.json; doppler convert a.gguf other --hints other.json
doppler: The tuning in other.json was measured with other kernels than this build's; doppler tune measures again.
exit 2
$ echo '{}' > none.json; doppler convert a.gguf other --hints none.json
doppler: The tuning in none.json is not used: It is no tuning of format 1.
exit 2
