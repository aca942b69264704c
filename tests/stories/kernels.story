# The variants of the kernels, and why a device or a lane does not get the better ones.

== all variants, best first
needs webgpu
$ doppler kernels
...
~variant +lane +needs +on this device
~matvec\.f32\..+
...
~attention_decode\.portable +portable +.*
...
--kernel OPERATION=VARIANT forces one; --explain MODEL shows what a model's own shapes get.

== a lane refuses the others by name
needs webgpu
$ doppler kernels --lane portable | grep '^rms_norm'
~rms_norm\.vec4 +subgroups +subgroups +no: the lane subgroups is not among those of "portable"
~rms_norm\.subgroup +subgroups +subgroups +no: the lane subgroups is not among those of "portable"
~rms_norm\.portable +portable +CHOSEN

== what a model's shapes get
needs webgpu
$ doppler kernels --explain --synthetic llama-tiny:q4_0 --ctx 256 --lane portable
~synthetic-llama-tiny-q4_0 \(SYNTHETIC\) on .+, lane portable

~operation +shape +uses +variant +refused before it
...
~rms_norm +256 +\d+ +rms_norm\.portable +rms_norm\.vec4: the lane subgroups is not among those of "portable"
~ +rms_norm\.subgroup: the lane subgroups is not among those of "portable"
...
Rules of the plan decode.greedy (doppler graph --plan NAME: of another one)

~rule +applied +refused at +because
...
~linear +\d+
...

== a forced variant
needs webgpu
$ doppler kernels --synthetic llama-tiny:q4_0 --ctx 256 --kernel rms_norm=rms_norm.portable | grep '^rms_norm .*forced'
~rms_norm +256 +\d+ +rms_norm\.portable \(forced\)
$ doppler kernels --synthetic llama-tiny:q4_0 --ctx 256 --kernel rms_norm=rms_norm.portible
~doppler: rms_norm has no variant "rms_norm\.portible" \(did you mean rms_norm\.portable\?\); its variants are .*
...
exit 2
$ doppler kernels --kernel rms_norm
doppler: Flag --kernel was given "rms_norm"; it takes OPERATION=VARIANT (see doppler kernels).
exit 2

== a lane that does not exist
needs webgpu
$ doppler kernels --lane fasst
~doppler: There is no lane "fasst" \(did you mean fast\?\); the lanes are exact, fast, .*
exit 2
