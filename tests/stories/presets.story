# Presets: named files of flags, built in and a person's own; what they set is in every report.

== the built-in ones are listed with what they set and serve
$ XDG_CONFIG_HOME=config doppler run --preset list
exact: f32 throughout, the tables' kernels, the likeliest tokens: the same on every run of a device
  --lane=exact --kv=f32 --no-tuning --temp=0
  serves calibrate investigate
~low-memory: .*
...
~throughput: .*
...
~trace: .*
...
  serves investigate
Your own: NAME.json in config/doppler/presets.

== a report says which preset was used, and flags on the line count more
needs webgpu
$ doppler bench $FLAGS --synthetic llama-tiny:q8_0 -p 8 -n 4 -r 1 -o json --output report.json --ctx 64 --preset throughput --batch 2 >table 2>/dev/null
$ grep -o '^preset throughput: --batch=32 --readback-interval=2 (without --parallel=64).*' table
preset throughput: --batch=32 --readback-interval=2 (without --parallel=64) (without --sequences=64)
$ grep -A9 '"preset"' report.json | grep '"name"\|batch'
~ +"name": "throughput",
~ +"--batch=32",
$ grep '"batch"\|"readback_interval"' report.json
~ +"batch": 2,
~ +"readback_interval": 2,
$ grep -c '"commit": "[0-9a-f]\{12\}\|"commit": "unknown"' report.json
1

== a person's own
needs webgpu
$ mkdir -p config/doppler/presets && echo '{"summary": "short", "intents": ["investigate"], "flags": {"ctx": 32, "temp": 0}}' > config/doppler/presets/short.json
$ XDG_CONFIG_HOME=config doppler run --preset list | tail -4
short: short
  --ctx=32 --temp=0
  serves investigate
Your own: NAME.json in config/doppler/presets.
$ XDG_CONFIG_HOME=config doppler run $FLAGS --synthetic llama-tiny:q8_0 --tokens 1,2,3 -n 2 --ignore-eos --json --preset short | grep -A6 '"preset"' | grep '"--\|"name"'
~ +"name": "short",
~ +"--ctx=32",
~ +"--temp=0"
$ XDG_CONFIG_HOME=config doppler bench --preset short
doppler: Preset short does not serve intent calibrate; its file says which it serves (--preset list).
exit 2

== presets that cannot be used
$ doppler run --preset throughputs hello
doppler: There is no preset "throughputs" (did you mean throughput?).
exit 2
$ doppler run --preset exact --preset trace hello
doppler: Presets exact and trace were given; one is allowed.
exit 2
$ doppler bench --preset trace
doppler: Preset trace does not serve intent calibrate; its file says which it serves (--preset list).
exit 2
$ doppler profile --preset nothing-like-it
doppler: There is no preset "nothing-like-it"; --preset list names those there are.
exit 2
$ mkdir -p c/doppler/presets && cd c/doppler/presets && echo '{"summary": "", "intents": ["calibrate"], "flags": {"chunkk": 1}}' > a.json && echo '{"summary": "", "intents": ["calibrate"], "flags": {"chunk": [1]}}' > b.json && echo '{"summary": "", "intents": ["quote"], "flags": {}}' > c.json && echo '[]' > d.json && echo '{' > e.json && cp c.json exact.json
$ XDG_CONFIG_HOME=c doppler run --preset a hello
doppler: Preset a has flag "chunkk", which no verb with presets has.
exit 2
$ XDG_CONFIG_HOME=c doppler run --preset b hello
doppler: Preset b gives flag "chunk" the value [1]; allowed are a text, a number, and true for a flag that takes none.
exit 2
$ XDG_CONFIG_HOME=c doppler run --preset c hello
doppler: Preset c serves ["quote"]; allowed are "calibrate" and "investigate".
exit 2
$ XDG_CONFIG_HOME=c doppler run --preset d hello
doppler: Preset d is not {"summary": text, "intents": [...], "flags": {...}}.
exit 2
$ XDG_CONFIG_HOME=c doppler run --preset e hello
~doppler: .*preset e.*
exit 2
$ XDG_CONFIG_HOME=c doppler run --preset exact hello
doppler: Preset exact is built in; c/doppler/presets/exact.json needs another name.
exit 2
