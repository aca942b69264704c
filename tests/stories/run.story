# The main verb: text, ids, JSON, traces, sessions; and what it refuses.

== a text is continued
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 16 --ctx 256 --raw -q "Once upon a time"
~.*[a-z]{2,} [a-z]{2,}.*

== the closing line goes to standard error
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 4 --ctx 256 "The fox and the crow" 2>&1 >text
~TTFT [\d.]+ s, prefill [\d.]+ tok/s \(\d+ tokens\), decode [\d.]+ tok/s \(4 tokens\), memory .+ \(\w+\)

== greedy text is the same whether asked by words, by standard input or by ids
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 8 --ctx 256 --raw -q "The fox" > words
$ printf 'The fox' | doppler run $FLAGS --temp 0 -n 8 --ctx 256 --raw -q > input
$ doppler run $FLAGS --temp 0 -n 8 --ctx 256 -q --tokens 1,359,3213 > ids
$ cmp words input && cmp words ids

== the same seed gives the same text
needs webgpu model
$ doppler run $FLAGS --temp 1 --seed 7 -n 12 --ctx 256 -q "The fox" > first
$ doppler run $FLAGS --temp 1 --seed 7 -n 12 --ctx 256 -q "The fox" > second
$ cmp first second

== one JSON object, nothing created after load
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --tokens 1,2,3 -n 4 --temp 0 --ignore-eos --ctx 64 --json > out.json
$ grep '"synthetic"\|"objects_created_after_load"\|"generated_tokens"\|"stop"' out.json
  "stop": "token-limit",
~ +"synthetic": true,?
~ +"generated_tokens": 4,
~ +"objects_created_after_load": 0

== a trace
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --tokens 1,2,3 -n 4 --ctx 64 --ignore-eos -q --trace trace.json > text
$ grep -o '"name":"load"' trace.json
"name":"load"
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --tokens 1,2,3 -n 1 --ctx 64 -q --trace folder/trace.json > text
~doppler: .*folder/trace\.json.*
exit 1

== a model that drafts for itself is right, and writes the same text
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 24 --ctx 256 --raw -q "The fox" > alone
$ doppler run $FLAGS --temp 0 -n 24 --ctx 256 --raw --draft-model "$ROOT/models/storyteller.gguf" --draft-rows 4 "The fox" 2> line > drafted
$ cmp alone drafted
$ grep -c 'tokens drafted, .* of them right (100 %)' line
1
$ doppler synth llama-tiny:q8_0 -o other.gguf > log
$ doppler run $FLAGS --ctx 256 -q --draft-model other.gguf hello
~doppler: .*The draft model has another vocabulary: token \d+ is .+ in the model and .+ in the draft model\.
  While loading the draft model.
exit 1
$ doppler run $FLAGS --ctx 256 -q --draft model hello
~doppler: .*no draft model is given \(--draft-model\).*
exit 1
$ doppler run $FLAGS --ctx 256 -q --draft words hello 2>&1 | head -1
~doppler: .*Drafter "words" is not known; allowed are auto, off, lookup, next and model\.

== a text that the answer repeats is its prediction
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 24 --ctx 256 --raw -q "The fox" > alone
$ doppler run $FLAGS --temp 0 -n 24 --ctx 256 --raw --draft lookup --draft-rows 4 --prediction alone "The fox" 2> line > predicted
$ cmp alone predicted
$ grep -c 'tokens drafted, .* of them right' line
1
$ doppler run $FLAGS -i --prediction alone
doppler: Flag --prediction is for one answer; -i has many.
exit 2

== a stop string ends the text and is not part of it
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 64 --ctx 256 --raw -q --stop e "Once upon a"
~ [^e]+

== a session that is saved goes on later
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 8 --ctx 256 --raw -q --save s.session "The fox" > first
$ doppler run $FLAGS --temp 0 -n 8 --ctx 256 --raw -q --restore s.session " and" > second
$ test -s second
$ echo junk > bad.session
$ doppler run $FLAGS --ctx 256 -q --restore bad.session hello
~doppler: .+
...
exit 1

== a prompt longer than the context
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --ctx 16 -n 4 -q --tokens 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18
~doppler: .*18 tokens.*16.*
...
exit 1

== ids outside of the vocabulary
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --ctx 64 -n 4 -q --tokens 1,5000
~doppler: .*5000.*
...
exit 1

== a cache format or lane that does not exist
$ doppler run --synthetic llama-tiny --kv q4 --tokens 1
doppler: Flag --kv was given "q4"; allowed are f16, f32 and q8_0.
exit 2
$ doppler run --synthetic llama-tiny --lane exakt --tokens 1
~doppler: There is no lane "exakt" \(did you mean exact\?\); the lanes are .*
exit 2

== a synthetic model that does not exist, or one too many
$ doppler run --synthetic llama-9b --tokens 1
~doppler: There is no shape "llama-9b".*
exit 1
$ doppler run --synthetic llama-tiny --model x.gguf --tokens 1
doppler: Both --model and --synthetic were given; one is needed.
exit 1

== no WebGPU library
$ doppler run --synthetic llama-tiny --webgpu ./nothing.so --tokens 1
~doppler: No WebGPU library was found for "\./nothing\.so".*
...
exit 1

== ids that are none
$ doppler run --tokens 1,x
doppler: "x" is no token id; expected are numbers such as 1,2,3.
exit 2

== numbers out of their range are told before a model is looked for
$ doppler run --model nothing.gguf --top-p 2 hello
doppler: Option top-p is 2; allowed is 0 to 1.
exit 2
$ doppler run --model nothing.gguf -n 5 --min-tokens 6 hello
doppler: Option min-tokens is 6 and an answer has at most 5 tokens; allowed is 0 to 5.
exit 2

== an empty text can end no answer
$ doppler run --model nothing.gguf --stop= hello
doppler: Option stop is an empty text; allowed are texts that are not empty.
exit 2

== a chat takes no prompt
$ doppler run -i hello
doppler: Flag -i takes no prompt, --tokens or --json: it asks at the terminal.
exit 2

== a saved conversation goes on as a conversation
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 8 --ctx 256 -q --save s.session "The fox" > first
$ doppler run $FLAGS --temp 0 -n 2 --ctx 256 --json --restore s.session "And then" > out.json
$ doppler run $FLAGS --temp 0 -n 2 --ctx 256 --json "And then" > alone.json
$ test $(grep -o '"prompt_tokens": [0-9]*' out.json | cut -d' ' -f2) -gt $(grep -o '"prompt_tokens": [0-9]*' alone.json | cut -d' ' -f2)

== a saved text is not continued as a conversation
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 2 --ctx 256 --raw -q --save s.session "The fox" > first
$ doppler run $FLAGS --ctx 256 -q --restore s.session "more"
doppler: The session in s.session is plain text, not a conversation; continue it with --raw.
exit 1

== an empty continuation of a saved text is the text that would have come
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 6 --ctx 256 --raw -q --save s.session "The fox" | tr -d '\n' > parts
$ doppler run $FLAGS --temp 0 -n 6 --ctx 256 --raw -q --restore s.session "" | tr -d '\n' >> parts
$ doppler run $FLAGS --temp 0 -n 12 --ctx 256 --raw -q "The fox" | tr -d '\n' > whole
$ cmp parts whole

== a session that slid is restored with the same context
needs webgpu model
$ doppler run $FLAGS --temp 0 -n 40 --ctx 32 --when-full slide --ignore-eos --raw -q --save s.session "The fox" > first
$ doppler run $FLAGS --temp 0 -n 4 --ctx 32 --when-full slide --ignore-eos --raw -q --restore s.session "" > second
$ test -s second

== the smallest context slides
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --ctx 1 --tokens 1 -n 4 --temp 0 --ignore-eos --when-full slide --json > out.json
$ grep '"generated_tokens"\|"stop"' out.json
  "stop": "token-limit",
~ +"generated_tokens": 4,

== an answer keeps to its grammar
needs webgpu model
$ doppler run $FLAGS --ctx 64 --raw -q -n 60 --temp 1 --regex "(the (fox|crow) ){2,3}end" "Once" | grep -cE '^(the (fox|crow) ){2,3}end$'
1
$ echo '{"type": "array", "uniqueItems": true}' > schema.json
$ doppler run $FLAGS --ctx 64 --raw --json-schema schema.json "Once"
doppler: Flag --json-schema: "uniqueItems" at # cannot be honoured.
exit 1
$ doppler run --regex a --grammar schema.json "Once"
doppler: Flag --grammar is given beside another grammar; an answer has one.
exit 2

== a logit bias of a token that does not exist
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --ctx 64 --tokens 1 --logit-bias 99999:5
doppler: The logit bias names token 99999, outside the vocabulary; allowed is 0 to 1023.
exit 1

== an empty list of ids is not a prompt from standard input
$ echo hello | doppler run --tokens ""
doppler: "" is no token id; expected are numbers such as 1,2,3.
exit 2

== forced kernels that do not exist
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --ctx 64 --tokens 1 --kernel matvec.q8=x
doppler: There is no operation "matvec.q8" whose variant could be forced (did you mean matvec.q8_0?); doppler kernels lists all.
exit 2
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --ctx 64 --tokens 1 --kernel embed=rows
~doppler: embed has no variant "rows".*
exit 2

== a library that is no WebGPU provider
$ doppler run --synthetic llama-tiny --tokens 1 --webgpu libm.so.6
~doppler: .*libm\.so\.6.*
...
exit 1

== output that cannot be written
$ doppler --version > /dev/full
doppler: The output could not be written.
exit 1

== a context whose cache the device cannot bind or hold
needs webgpu
$ doppler run $FLAGS --synthetic llama-tiny:q8_0 --ctx 200000000 --tokens 1 --log-level error
~doppler: .*tokens would fit \(--ctx\)\.
exit 1
