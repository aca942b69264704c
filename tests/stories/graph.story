# A model as mathematics, the rules that lowered it, and its dispatches; rules are turned off by name.

== nodes, rules and dispatches of the shipped model
needs webgpu
$ doppler graph $FLAGS --no-tuning --ctx 256
~.*storyteller\.gguf on .+ \(\w+\), lane \w+, plan decode\.greedy

~node +shape
~%0 = embed\(\) token_embd +\[R, \d+\]
~%1 = rms_norm\(%0\) blk\.0\.attn_norm .+
...
~rule +applied +refused at +because
~persistent_layers +0.*
~step_tail +1
...
~stacked_products +\d+
...
~ +# +kernel +op +grid
~ +0 +\S+ +blk\.0\.attn_qkv +.+
...

== another plan
needs webgpu
$ doppler graph $FLAGS --no-tuning --ctx 256 --plan prefill | grep '^dead_values'
~dead_values +1
$ doppler graph $FLAGS --ctx 256 --plan nap
~doppler: There is no plan "nap"; the plans of this model are prefill, .*
exit 1

== as JSON
needs webgpu
$ doppler graph $FLAGS --no-tuning --ctx 256 --json > graph.json
$ python3 -c 'import json; g = json.load(open("graph.json")); print(*g); print(*g["rules"][0])'
~.*nodes rules dispatches
name becomes plain on applied refused

== without a rule its nodes are lowered by the rules behind it
needs webgpu
$ doppler graph $FLAGS --no-tuning --ctx 256 --rule residual_epilogue=off --rule add_rms_norm=off > off
$ grep '(off)' off
~residual_epilogue \(off\) +0
~add_rms_norm \(off\) +0
$ doppler graph $FLAGS --no-tuning --ctx 256 > on
$ grep -c ' add\.' on; test $(wc -l < off) -gt $(wc -l < on)
0
$ test $(grep -c ' add\.' off) -gt 1

== a rule that there is not
$ doppler graph --rule fused_roep=off
~doppler: There is no rule "fused_roep" \(did you mean fused_rope\?\); the rules are persistent_layers, .*
exit 2
$ doppler graph --rule fused_rope=maybe
doppler: A rule is set to on or off, as in fused_rope=off; given was "fused_rope=maybe".
exit 2
$ doppler graph --rule embed=off
~doppler: There is no rule "embed".*
exit 2

== text without a rule is the same text
needs webgpu model
$ doppler run $FLAGS --temp 1 --seed 7 -n 12 --ctx 256 -q "The fox" > on
$ doppler run $FLAGS --temp 1 --seed 7 -n 12 --ctx 256 -q --rule fused_rope=off "The fox" > off
$ cmp on off

== a measurement says which rules were off
needs webgpu
$ doppler bench $FLAGS --synthetic llama-tiny:q8_0 -p 8 -n 4 -r 1 --ctx 64 --rule step_tail=off -o json 2> /dev/null | grep -A1 rules_off
~ +"rules_off": \[
~ +"step_tail"
