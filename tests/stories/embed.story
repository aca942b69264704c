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

== a model that knows no reranker's question scores no texts
needs model
$ printf 'A crow.\nA fox sleeps.\n' > texts
$ doppler rerank "" "Who sleeps?" --input texts 2>&1 | grep -v '^doppler: No GPU'
doppler: The model cannot score texts: "<|im_start|>", of the question that Qwen3-Reranker was trained with, is no token of it.
$ doppler rerank "" "Who sleeps?"
doppler: A model, a query and a text are needed.
exit 2
