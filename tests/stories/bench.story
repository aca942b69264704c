# Speed: the tests of one sequence and of many, and where their rows go. No figure is checked, only that there is one.

== a row stands on standard output and in the report
needs webgpu
$ doppler bench $FLAGS --synthetic llama-tiny:q8_0 -p 8 -n 4 -r 1 --ctx 64 -o json --output report.json 2>/dev/null | grep -o '| pp8 | .*\|| tg4 | .*'
~\| pp8 \| [\d.]+ ± 0\.00 \| .*
~\| tg4 \| [\d.]+ ± 0\.00 \| .*
~\| pp8 \| [\d.]+ \| .*
~\| tg4 \| - \| .*
$ grep '"test":\|"sequences"' report.json
~ +"sequences": 1,
~ +"test": "pp8",
~ +"test": "tg4",

== many streams together
needs webgpu
$ doppler bench $FLAGS --synthetic llama-tiny:q8_0 --streams 1,3 -d 40 -n 100 -r 1 --ctx 256 -o json --output report.json 2>/dev/null | grep -o '| tg100 .*'
~\| tg100 x1 @ d40 \| [\d.]+ ± 0\.00 \| .*
~\| tg100 x3 @ d40 \| [\d.]+ ± 0\.00 \| .*
~\| tg100 x1 @ d40 \| [\d.]+ \| [\d.]+ \| [\d.]+ \|
~\| tg100 x3 @ d40 \| [\d.]+ \| [\d.]+ \| [\d.]+ \|
$ grep '"sequences"\|"streams"' report.json
~ +"sequences": 3,
~ +"streams": 1,
~ +"streams": 3,

== rows that were measured stay when a later test cannot be
needs webgpu
$ doppler bench $FLAGS --synthetic llama-tiny:q8_0 --streams 2 -n 100,2 -r 1 --ctx 256 -o json --output report.json 2>err >table
exit 1
$ cat err
doppler: Test tg2 x2 is too short: tokens must come to each stream twice while all streams decode; raise -n.
$ grep -c '| tg100 x2 |' table
2
$ grep '"test":' report.json
~ +"test": "tg100 x2",

== numbers of streams that cannot be
$ doppler bench --streams 0
doppler: Flag --streams was given "0"; allowed are whole numbers from 1 to 64, such as 8 or 1,8,32.
exit 2

== what would be known at the end only is told before a model is looked for
$ doppler bench --model nothing.gguf --output folder/report.json
doppler: Cannot write folder/report.json: No such file or directory.
exit 1
$ mkdir folder; doppler bench --model nothing.gguf --output folder
doppler: Cannot write folder: it is a folder.
exit 1
$ doppler bench --model nothing.gguf -p 512 -c 16
doppler: Test pp512 needs 512 positions; the context holds 16 (--ctx).
exit 2

== what the npm package cannot be asked is refused by name
$ doppler bench --surface phone
doppler: Surface "phone" is not known; allowed are native, browser and node.
exit 2
$ doppler bench --surface node --streams 4
~doppler: Flag --streams means nothing to the npm package; with --surface node there are --surface, --model, .*
exit 2
$ doppler bench --chromium-flags x
doppler: Flag --chromium-flags is only for --surface browser.
exit 2

== a text that is edited in a few places
needs webgpu
$ doppler bench $FLAGS --synthetic llama-tiny:q8_0 -p 0 -n 16 -r 1 --ctx 64 --draft lookup --draft-edits 8 -o json --output edited.json > log 2>&1; grep -c '"draft_edits": 8' edited.json
1
$ doppler bench --synthetic llama-tiny:q8_0 --draft-edits 8
doppler: Flag --draft-edits needs --draft lookup, which searches the prediction.
exit 2
