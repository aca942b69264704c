# The adapters of the machine, and those that cannot be used.

== at least one can be used
needs webgpu
$ doppler devices
...
~   features +.+
~   limits +buffers .+
~   memory +.+
~   units +(not told|[0-9]+)
~   driver +vulkan, .+
...

== as JSON
needs webgpu
$ doppler devices --json | grep '"usable"'
...
    "usable": true,
...

== a library that cannot be opened is listed with its reason
$ DOPPLER_WEBGPU=./nothing.so doppler devices
...
~   not usable: No WebGPU library was found for "\./nothing\.so" \(allowed: dawn, wgpu or the path of a library\)\. Tried:
...
exit 1

== several devices are numbers with commas, or all
$ doppler run --devices cat hello
doppler: Flag --devices was given "cat"; allowed are all, and numbers from doppler devices with commas between them, such as 0,1.
exit 2
$ doppler logits --tokens 1 --device 0,1 --out logits.safetensors
doppler: Flag --device was given "0,1"; only doppler run, serve, batch and bench --streams use several devices.
exit 1
$ doppler bench --devices all -p 16
doppler: Flag --device was given "all"; one prompt or stream runs on one device, and only --streams uses several.
exit 2

== a model on one device opened twice answers
needs webgpu model
$ doppler run --devices 0,0 --webgpu wgpu --temp 0 -n 4 "The fox" 2>&1 | tail -n 1
~TTFT .+, 2 x .+ \(wgpu\)
$ echo '{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "n": 4, "max_tokens": 4}}' > in.jsonl
$ doppler batch --devices 0,0 --webgpu wgpu --ctx 128 --sequences 2 in.jsonl out.jsonl 2>&1 | tail -n 1
~\d+ prompt tokens .+ 16 generated in .+ 2 x .+ \(wgpu\)

== the layers of a model lie on one device opened twice
needs webgpu model
$ doppler run --devices 0,0 --split-mode layer --webgpu wgpu --lane exact --temp 0 -n 4 "The fox" >out 2>err; tail -n 2 err
~Layers 0 to \d+ on .+ \(.+\), \d+ to \d+ on .+ \(.+\)
~TTFT .+, 2 x .+ \(wgpu\)
$ doppler run --devices 0 --webgpu wgpu --lane exact --temp 0 -n 4 "The fox" 2>/dev/null | cmp - out
$ echo '{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once", "n": 4, "max_tokens": 4}}' > in.jsonl
$ doppler batch --devices 0,0 --split-mode layer --webgpu wgpu --ctx 128 --sequences 4 in.jsonl out.jsonl 2>&1 | tail -n 1
~\d+ prompt tokens .+ 16 generated in .+ 2 x .+ \(wgpu\)
$ doppler run --devices 0,0 --split-mode layer --webgpu wgpu --dry-run 2>/dev/null | grep -v '^$' | tail -n 4
~Layers +device +weights +cache +scratch +total +of
~0 to \d+ .+
~\d+ to \d+ .+
It fits in 2 parts.

== how devices share a model is auto, layer or none
$ doppler run --split-mode row hello
doppler: Split mode "row" is not known; allowed are auto, layer and none.
exit 2

== the layers of a model need several devices
needs webgpu model
$ doppler run --split-mode layer --webgpu wgpu hello
doppler: The layers were to lie on several devices (--split-mode layer), but one is given.
exit 1

== running on a device that is not there lists what is
needs webgpu
$ doppler run --synthetic llama-tiny --device 99 --tokens 1
~doppler: No adapter matches "99"\. There are:
...
exit 1
