# Pictures by --image and /image, of folders and of GGUF files with the tower in a file of its own. The models are tiny
# and random: what they write is no text.

== a GGUF pair writes what the folder writes, and another picture changes it
needs webgpu vision
$ cp $VISION/qwen3_vl/gguf/* .
$ doppler run $FLAGS -m $VISION/qwen3_vl --image $IMAGES/b.png --temp 0 --max-tokens 8 -q "what" > folder 2> log; cat log | grep -v "No GPU"; test -s folder
exit 0
$ doppler run $FLAGS -m text.gguf --image $IMAGES/b.png --temp 0 --max-tokens 8 -q "what" > pair 2> log; cmp folder pair
$ doppler run $FLAGS -m text.gguf --image $IMAGES/d.png --temp 0 --max-tokens 8 -q "what" > other 2> log; cmp -s folder other
exit 1

== a folder, and a GGUF pair, become RDRR folders that see, and the pair comes back as it was
needs webgpu vision
$ cp $VISION/qwen3_vl/gguf/* .
$ doppler run $FLAGS -m $VISION/qwen3_vl --image $IMAGES/b.png --temp 0 --max-tokens 8 -q "what" > folder 2> log; test -s folder
$ doppler convert $VISION/qwen3_vl of-folder --quiet > log && doppler run $FLAGS -m of-folder --image $IMAGES/b.png --temp 0 --max-tokens 8 -q "what" > seen 2> log; cmp folder seen
$ doppler convert text.gguf of-pair --quiet > log && doppler run $FLAGS -m of-pair --image $IMAGES/b.png --temp 0 --max-tokens 8 -q "what" > seen 2> log; cmp folder seen
$ doppler convert text.gguf of-pair --replace 2>&1 | grep tower
~doppler: The vision tower of .*mmproj\.gguf goes along\.
$ doppler convert of-pair back.gguf > log 2>&1; cmp back.gguf text.gguf && cmp mmproj-back.gguf mmproj.gguf; grep "tower" log
doppler: The vision tower goes to mmproj-back.gguf.
$ doppler convert text.gguf back.gguf --replace --mmproj mmproj.gguf
doppler: --mmproj is for RDRR folders only: GGUF has vision towers in files of their own.
exit 2

== a folder that sees becomes a GGUF pair that writes the same
needs webgpu vision
$ doppler run $FLAGS -m $VISION/qwen3_vl --image $IMAGES/b.png --temp 0 --max-tokens 8 -q "what" > folder 2> log; test -s folder
$ doppler convert $VISION/qwen3_vl model.gguf > log 2>&1; grep "tower" log; ls
doppler: The vision tower goes to mmproj-model.gguf.
folder
log
mmproj-model.gguf
model.gguf
$ doppler run $FLAGS -m model.gguf --image $IMAGES/b.png --temp 0 --max-tokens 8 -q "what" > pair 2> log; cmp folder pair
$ doppler convert $VISION/llava llava.gguf --quiet; ls llava.gguf
doppler: GGUF has no place for the vision tower of the model type "llava"; --no-mmproj leaves it out.
ls: cannot access 'llava.gguf': No such file or directory
exit 2
$ doppler convert $VISION/llava llava.gguf --no-mmproj --quiet > log && ls *llava.gguf
llava.gguf
$ doppler convert $VISION/qwen3_vl out --no-mmproj
doppler: --no-mmproj is for GGUF files only: an RDRR folder has both.
exit 2

== a conversation shows a picture by /image
needs webgpu vision
$ printf '/image %s\nwhat\n/image none.png\n/bye\n' $IMAGES/a.png > lines
$ doppler run $FLAGS -i -m $VISION/qwen3_vl --temp 0 --max-tokens 4 < lines > said 2>&1; grep -c "Cannot open none.png" said
1

== files that are no tower, no picture or not alone are named
needs webgpu vision
$ cp $VISION/qwen3_vl/gguf/* .
$ doppler run $FLAGS -m text.gguf --mmproj text.gguf --image $IMAGES/b.png hi 2>&1 | grep -v "No GPU"
doppler: text.gguf is no file of a vision tower: its "general.architecture" is not "clip".
$ doppler run $FLAGS -m $VISION/qwen3_vl --mmproj mmproj.gguf --image $IMAGES/b.png hi 2>&1 | grep -v "No GPU"
~doppler: --mmproj belongs to GGUF models; .*/qwen3_vl has its vision tower in its own files\.
$ doppler run $FLAGS -m mmproj.gguf hi 2>&1 | grep -v "No GPU"
doppler: This is the vision tower of a model; name the model's own file, and this one with --mmproj.
$ echo hello > no.png; doppler run $FLAGS -m text.gguf --image no.png hi 2>&1 | grep -v "No GPU"
doppler: A picture begins with the bytes "68 65 6c 6c 6f 0a"; known formats are PNG, JPEG, WebP, GIF, BMP.
  While reading no.png.
$ cp mmproj.gguf mmproj-2.gguf; doppler run $FLAGS -m text.gguf --image $IMAGES/b.png hi 2>&1 | grep -v "No GPU"
doppler: text.gguf has 2 files of vision towers beside it, such as mmproj-2.gguf; --mmproj FILE names one.
doppler: This model reads no pictures.
$ doppler run $FLAGS -m text.gguf --mmproj mmproj-2.gguf --image $IMAGES/b.png --temp 0 --max-tokens 2 -q hi > said 2>&1; test -s said

== pan and scan reads a long picture in crops too, and only where a model has it
needs webgpu vision
$ doppler run $FLAGS -m $VISION/gemma3 --image $IMAGES/d.png --temp 0 --max-tokens 8 --json "what" 2> log > whole; grep -c prompt_tokens whole
1
$ doppler run $FLAGS -m $VISION/gemma3 --image $IMAGES/d.png --temp 0 --max-tokens 8 --json --pan-and-scan "what" 2> log > cut; diff whole cut | grep -c prompt_tokens
2
$ doppler run $FLAGS -m $VISION/gemma3 --image $IMAGES/a.png --temp 0 --max-tokens 8 -q --pan-and-scan "what" > cut 2> log; doppler run $FLAGS -m $VISION/gemma3 --image $IMAGES/a.png --temp 0 --max-tokens 8 -q "what" > whole 2> log; test -s cut && cmp whole cut
$ doppler run $FLAGS -m $VISION/qwen3_vl --image $IMAGES/d.png --pan-and-scan hi 2>&1 | grep -v "No GPU"
doppler: Pictures of the model type "qwen3_vl" have no pan and scan (--pan-and-scan); those of gemma3 have.
~  While loading the vision tower of .*qwen3_vl\.
$ doppler run $FLAGS -m $VISION/gemma3 --pan-and-scan hi
doppler: Flag --pan-and-scan is about pictures: it goes with --image or -i.
exit 2
$ doppler logits $FLAGS -m $VISION/gemma3 --tokens 1 --out x --pan-and-scan
doppler: Flag --pan-and-scan is about pictures: it goes with --image.
exit 2

== a model without a tower says so
needs webgpu model vision
$ doppler run $FLAGS --image $IMAGES/b.png hi 2>&1 | grep -v "No GPU"
doppler: This model reads no pictures.
$ doppler run $FLAGS --image $IMAGES/b.png --pan-and-scan hi 2>&1 | grep -v "No GPU"
~doppler: Pan and scan \(--pan-and-scan\) is for pictures, and .* reads none\.

== the mathematics and the kernels of models that see
needs webgpu vision
$ doppler graph $FLAGS -m $VISION/gemma3 --plan images.greedy | grep -c "^%"
~[1-9][0-9]*
$ export XDG_CACHE_HOME=$PWD/cache && doppler tune $FLAGS -m $VISION/gemma3 --budget 1 | grep -c "^Stored in"
1
