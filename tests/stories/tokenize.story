# The tokenizer alone: no GPU is opened, so these stories also run where there is none.

== a text's token ids, one a line
needs model
$ doppler tokenize "The fox"
1
359
3213

== without the tokens that the model wants around a text
needs model
$ doppler tokenize --no-special "The fox"
359
3213

== ids and pieces as JSON
needs model
$ printf 'The fox' | doppler tokenize --json
{"tokens":[1,359,3213],"pieces":["<|begin|>","The","Ġfox"]}

== special tokens written out in a text are text, unless asked
needs model
$ doppler tokenize --no-special --parse-special "<|story|>" | wc -l
1
$ [ "$(doppler tokenize --no-special '<|story|>' | wc -l)" -gt 1 ]

== what was tokenized comes back byte by byte
needs model
$ printf 'Füchse & <|begin|>\n\ttabs, 龍 and 🦊\n' > text
$ doppler tokenize --no-special --file text > ids
$ doppler detokenize --file ids > back
$ cmp text back
$ doppler detokenize 359,3213; echo
The fox
$ doppler detokenize 359 3213; echo
The fox

== bytes that are no UTF-8 are encoded, and shown as the replacement character
needs model
$ printf 'a\377b' | doppler tokenize --no-special | doppler detokenize; echo
a�b

== ids that cannot be
needs model
$ doppler detokenize 1,two
doppler: "two" is no token id; expected are numbers such as 1,2,3.
exit 2
$ doppler detokenize 999999
doppler: The token id 999999 is outside of the vocabulary (8192 tokens).
exit 1
$ doppler detokenize -1
doppler: Flag -1 is not known; see --help.
exit 2

== a text and a file exclude each other
$ doppler tokenize --file nothing hello
doppler: Both --file and a text were given; one is needed.
exit 2

== a text file that is not there
needs model
$ doppler tokenize --file nothing
doppler: Cannot open nothing: No such file or directory.
exit 1
