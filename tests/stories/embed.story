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

== texts by how well they answer a query
needs model
$ printf 'A crow.\nA fox sleeps.\n' > texts
$ doppler rerank "" "Who sleeps?" --input texts 2> /dev/null | sort -k 2
~0\.\d{6} 0 A crow\.
~0\.\d{6} 1 A fox sleeps\.
$ doppler rerank "" "Who sleeps?"
doppler: A model, a query and a text are needed.
exit 2
