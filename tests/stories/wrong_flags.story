# Command lines that are wrong whatever the files hold end with exit status 2 and one sentence; a file that cannot be read with 1.

== numbers out of a flag's range
$ doppler run --batch 257 hello
doppler: Flag --batch was given "257"; allowed is a whole number from 1 to 256.
exit 2
$ doppler run --batch 0 hello
doppler: Flag --batch was given "0"; allowed is a whole number from 1 to 256.
exit 2
$ doppler run --readback-interval 0 hello
doppler: Flag --readback-interval was given "0"; allowed is a whole number from 1 to 256.
exit 2
$ doppler run --batch 128 --readback-interval 4 hello
doppler: Flags --batch 128 and --readback-interval 4 ask for tokens of 512 steps together; allowed is 1 to 256.
exit 2
$ doppler bench --batch 0
doppler: Flag --batch was given "0"; allowed is a whole number from 1 to 256.
exit 2
$ doppler run --ring 1 hello
doppler: Flag --ring was given "1"; allowed is a whole number from 2 to 64.
exit 2
$ doppler embed --dimensions 0 model.gguf text
~doppler: Flag --dimensions was given "0"; allowed is a whole number from 1 to \d+\.
exit 2
$ doppler run --temp 1e39 hello
doppler: Flag --temp was given "1e39"; allowed are numbers from -3.4e38 to 3.4e38.
exit 2
$ doppler run --expert-memory 1e7 hello
doppler: Flag --expert-memory was given "1e7"; allowed are gigabytes above 0 and up to 1000000, such as 8 or 0.5.
exit 2
$ doppler bench --streams 2,x
doppler: Flag --streams was given "2,x"; allowed are whole numbers from 1 to 64, such as 8 or 1,8,32.
exit 2

== names that are none
$ doppler run --kernel nothing=fast hello
~doppler: There is no operation "nothing" whose variant could be forced.*; doppler kernels lists all\.
exit 2
$ doppler run --kernel add=fast hello
~doppler: add has no variant "fast".*; its variants are .+\.
exit 2
$ doppler run --kernel add hello
doppler: Flag --kernel was given "add"; it takes OPERATION=VARIANT (see doppler kernels).
exit 2
$ doppler embed --pooling sum model.gguf text
doppler: Pooling "sum" is not known; allowed are mean, cls and last.
exit 2
$ doppler embed --tokens 1,x
doppler: "x" is no token id; expected are numbers such as 1,2,3.
exit 2

== a model without a name is not the default model
$ doppler run -m "" hello
doppler: Flag --model was given ""; allowed is any text that is not empty.
exit 2
$ doppler tokenize -m "" hello
doppler: Flag --model was given ""; allowed is any text that is not empty.
exit 2
$ doppler serve -m ""
doppler: Flag --model was given ""; allowed is any text that is not empty.
exit 2
$ doppler serve -m story=
doppler: Flag --model was given "story="; a model is missing after the sign =.
exit 2

== files that are not there
needs model
$ doppler embed "" --pooling mean --input none.jsonl
~doppler: Cannot open none\.jsonl: .+
exit 1
$ doppler rerank model.gguf query --input none.txt
~doppler: Cannot open none\.txt: .+
exit 1
$ doppler run --json-schema none.json hello
~doppler: Cannot open none\.json: .+
exit 1
$ doppler serve --api-key-file none.txt
~doppler: Cannot open none\.txt: .+
exit 1

== files that have not what is needed
needs model
$ echo > empty; echo hello > words
$ doppler embed "" --pooling mean --input empty
doppler: empty has no text; a line with one is needed.
exit 1
$ doppler rerank model.gguf query --input empty
doppler: empty has no text; a line with one is needed.
exit 1
$ doppler detokenize --file words
doppler: "hello" is no token id; expected are numbers such as 1,2,3.
exit 1
$ doppler detokenize hello
doppler: "hello" is no token id; expected are numbers such as 1,2,3.
exit 2

== words too many or too few
$ doppler batch in.jsonl out.jsonl more.jsonl
doppler: IN.jsonl and OUT.jsonl are needed: requests, a line each, and the file for their answers; 3 words were given.
exit 2
$ doppler compare --base report.json
doppler: Both --base and --candidate are needed: reports of doppler bench -o json.
exit 2
