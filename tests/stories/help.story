# What a person sees who does not know the verbs and flags yet.

== without a verb the help comes and the exit status says so
$ doppler
Doppler runs large language models on WebGPU.

Usage: doppler VERB [flags]
...
exit 2

== help lists every verb with a line
$ doppler --help
Doppler runs large language models on WebGPU.

Usage: doppler VERB [flags]

~  run +answer a prompt.*
...
~  inspect +.+
...
~  bench +.+
...

== each verb explains its flags
$ for verb in run serve batch embed rerank convert graph pull list show rm cp serve-models web devices inspect tokenize detokenize logits perplexity kernels synth bench profile tune squeeze compare; do doppler $verb --help | grep -q "^Usage: doppler $verb" || echo "no help: $verb"; done

== the version
$ doppler --version
~doppler \d+\.\d+\.\d+

== a mistyped verb suggests the nearest
$ doppler rnu
doppler: Verb "rnu" is not known; did you mean run.
exit 2

== a word like no verb points to the help
$ doppler zzzzzz
doppler: Verb "zzzzzz" is not known; see doppler --help.
exit 2
$ doppler ''
doppler: Verb "" is not known; see doppler --help.
exit 2

== a mistyped flag suggests the nearest
$ doppler run --seeed 1 hello
doppler: Flag --seeed is not known; did you mean --seed.
exit 2
$ doppler run --top_k 3 hello
doppler: Flag --top_k is not known; did you mean --top-k.
exit 2

== values that a flag cannot take
$ doppler run --ctx many hello
~doppler: Flag --ctx was given "many"; allowed is a whole number from 0 to \d+\.
exit 2
$ doppler run --temp warm hello
doppler: Flag --temp was given "warm"; it takes a number.
exit 2
$ doppler run --json=yes hello
doppler: Flag --json takes no value.
exit 2
$ doppler run hello --seed
doppler: Flag --seed needs a value: SEED.
exit 2
$ doppler run --log-level loud hello
doppler: Flag --log-level was given "loud"; allowed are error, warning, info, debug.
exit 2

== flags that exclude each other
$ doppler run --tokens 1,2 hello
doppler: Both --tokens and a prompt were given; one is needed.
exit 2
