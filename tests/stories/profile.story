# doppler profile: each command of a step beside its floor. Figures are not compared.
== one sequence: a decode step, then a chunk
needs webgpu
$ doppler profile $FLAGS --synthetic llama-tiny:q8_0 -d 20 -p 16 -r 1 --ctx 512 --json --output report.json 2>/dev/null | grep '^=='
~== decode\.[a-z.]*greedy: 1 rows at depth 20, \d+ commands, median of 1
~== [a-z.]*greedy: 16 rows at depth 0, \d+ commands, median of 1
$ grep '"kind"\|"intent"' report.json
  "kind": "profile",
  "intent": "investigate",

== many streams
needs webgpu
$ doppler profile $FLAGS --synthetic llama-tiny:q8_0 --streams 1,3 -d 40 -r 1 --ctx 512 2>/dev/null | grep '^=='
~== many\.1\.greedy: 1 rows at depth 40, \d+ commands, median of 1
~== many\.3\.greedy: 3 rows at depth 40, \d+ commands, median of 1

== a picture through the vision tower
needs webgpu vision
$ doppler profile $FLAGS -m $VISION/qwen3_vl --image 64x64 -r 1 2>/dev/null | grep '^=='
~== patches: \d+ rows at depth 0, \d+ commands, median of 1
~== tokens: \d+ rows at depth 0, \d+ commands, median of 1

== what cannot be profiled
$ doppler profile --streams 0
doppler: Flag --streams was given "0"; allowed are whole numbers from 1 to 64, such as 8 or 1,8,32.
exit 2
$ doppler profile --image 1024
doppler: Flag --image was given "1024"; allowed are a width and a height in pixels, up to 16384, such as 1024x768.
exit 2
$ doppler profile --streams 2 -d 0
doppler: Nothing is left to profile: -r, and one of -d and -p, must be above 0.
exit 2

== a report that cannot be written is told before a model is looked for
$ doppler profile --model nothing.gguf --output folder/report
doppler: Cannot write folder/report: No such file or directory.
exit 1
$ doppler squeeze --model nothing.gguf --output folder/report
doppler: Cannot write folder/report: No such file or directory.
exit 1

== time for tuning is needed
$ doppler tune --model nothing.gguf --budget 0
doppler: Flag --budget was given 0; at least 1 is needed.
exit 2
$ doppler squeeze --model nothing.gguf --budget 0
doppler: Flag --budget was given 0; at least 1 is needed.
exit 2
