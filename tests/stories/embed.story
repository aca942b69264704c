# Embeddings as far as they need no embedding model: embedding_test has some.

== a model that writes text gives no embeddings, which is said before it is loaded
needs model
$ doppler embed --tokens 1,2,3
~doppler: The model .* writes text, no embeddings: its files name no pooling\.
exit 1

== what is asked for must be there
$ doppler embed
doppler: A text, --tokens or --input is needed.
exit 2
$ doppler embed --format f64 --tokens 1
doppler: Flag --format was given "f64"; allowed are f32, base64 and npy.
exit 2
$ doppler embed --format npy --json --tokens 1
doppler: Flag --json goes with --format f32 and base64, not with npy.
exit 2

== a line of --input that cannot be read is named, with what is wrong, before the model is loaded
needs model
$ echo '"The fox"' > texts; echo '[1, 4294967297]' >> texts
$ doppler embed "" --pooling mean --input texts
doppler: Token 4294967297 is outside the vocabulary; allowed is 0 to 8191.
  While reading line 2 of texts.
exit 1
$ echo '[-1]' > texts; doppler embed "" --pooling mean --input texts 2>&1 | head -n 1
doppler: Token -1 is outside the vocabulary; allowed is 0 to 8191.
$ echo '{"text": "a", "id": 7}' > texts; doppler embed "" --pooling mean --input texts
doppler: Field "id" is not known; allowed are input, text and tokens.
  While reading line 1 of texts.
exit 1
$ echo '{"input": "a", "tokens": [1]}' > texts; doppler embed "" --pooling mean --input texts
doppler: Fields "input" and "tokens" are both given; one is needed.
  While reading line 1 of texts.
exit 1
$ echo > texts; doppler embed "" --pooling mean --input texts
doppler: texts has no text; a line with one is needed.
exit 1
$ doppler embed "" --pooling mean -o folder/vectors --tokens 1
doppler: Cannot write folder/vectors: No such file or directory.
exit 1

== vectors that were made before an error stay
needs webgpu model
$ echo '"The fox"' > texts; echo '[1, 2]' >> texts; echo '[1, 2, 3, 4, 5, 6, 7, 8, 9]' >> texts
$ doppler embed $FLAGS "" --pooling mean --ctx 8 --json --input texts -o vectors
doppler: 9 tokens were given, but the context holds 8 (--ctx).
  While embedding line 3 of texts.
exit 1
$ grep -c '"embedding"' vectors
2
$ doppler embed $FLAGS "" --pooling mean --ctx 8 --json -o vectors --tokens 1,2 && grep -c '"embedding"' vectors
1

== a model that knows no reranker's question scores no texts
needs model
$ printf 'A crow.\nA fox sleeps.\n' > texts
$ doppler rerank "" "Who sleeps?" --input texts 2>&1 | grep -v '^doppler: No GPU'
doppler: The model cannot score texts: "<|im_start|>", of the question that Qwen3-Reranker was trained with, is no token of it.
$ doppler rerank "" "Who sleeps?"
doppler: A model, a query and a text are needed.
exit 2
