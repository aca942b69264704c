# Files that are no models, or only half of one: a sentence and exit status 1, never a crash. The parsers' own corpus
# (src/formats) has many more; here the program's behaviour counts. No GPU is needed to refuse them.

== a file that is not there
$ doppler inspect nothing.gguf
doppler: There is no file or folder "nothing.gguf".
exit 1
$ doppler run --model nothing.gguf hello
doppler: There is no file or folder "nothing.gguf".
exit 1

== an empty file
$ : > empty.gguf
$ doppler inspect empty.gguf
~doppler: .*empty\.gguf is empty\.
exit 1

== a text file
$ echo "Once upon a time" > tale.gguf
$ doppler run --model tale.gguf hello
~doppler: .*tale\.gguf is not a model: it begins neither as GGUF nor as safetensors do\. .*
exit 1

== a page that a download saved instead of the model
$ echo "<!DOCTYPE html><html>not found</html>" > model.gguf
$ doppler inspect model.gguf
~doppler: .*model\.gguf is not a model file: it is a web page \(HTML or XML\), .*
exit 1

== a GGUF cut off after its first bytes
$ printf 'GGUF\003\000\000\000' > half.gguf
$ doppler inspect half.gguf
~doppler: .*half\.gguf.*
...
exit 1

== a folder without a model
$ mkdir folder
$ doppler inspect folder
~doppler: .*folder holds no model: neither config\.json nor a \.gguf file nor manifest\.json\.
exit 1

== control characters in a name are not printed as they are
$ doppler inspect "$(printf 'a\033[31mb')"
doppler: There is no file or folder "a\x1b[31mb".
exit 1
