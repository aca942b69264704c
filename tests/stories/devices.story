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

== running on a device that is not there lists what is
needs webgpu
$ doppler run --synthetic llama-tiny --device 99 --tokens 1
~doppler: No adapter matches "99"\. There are:
...
exit 1
