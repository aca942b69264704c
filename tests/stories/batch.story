# A file of requests in, a file of answers out; what an interruption leaves; what is refused.

== each line is answered, or told why not
needs webgpu model
$ echo '{"custom_id": "chat", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "The fox"}], "max_tokens": 4}}' > in.jsonl
$ echo '{"custom_id": "text", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Once upon a time", "n": 3, "temperature": 1, "max_tokens": 4, "user": "x", "logprobs": 1}}' >> in.jsonl
$ echo '{"custom_id": "ids", "method": "POST", "url": "/v1/completions", "body": {"prompt": [1, 359, 3213], "ignore_eos": true}}' >> in.jsonl
$ echo '{"custom_id": "tools", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "x"}], "tools": [{}]}}' >> in.jsonl
$ echo '{"custom_id": "hot", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x", "temperature": -1}}' >> in.jsonl
$ echo '{"custom_id": "chat"}' >> in.jsonl
$ echo 'no JSON' >> in.jsonl
$ doppler batch $FLAGS --ctx 128 --sequences 4 -n 5 --temp 0 in.jsonl out.jsonl 2>&1 | tail -n 2
7 lines: 3 answered, 4 failed
~\d+ prompt tokens \(\d+ cached\), 21 generated in [\d.]+ s: [\d.]+ tok/s, .+ \(\w+\)
$ wc -l < out.jsonl
7
$ grep -o '"custom_id":"ids".*"object":"text_completion"\|"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8' out.jsonl | tail -n 1
"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8
$ grep '"custom_id":"text"' out.jsonl | grep -o '"index":.,"text"\|"completion_tokens":12\|"finish_reason":"length"'
"index":0,"text"
"finish_reason":"length"
"index":1,"text"
"finish_reason":"length"
"index":2,"text"
"finish_reason":"length"
"completion_tokens":12
$ grep -o '"text_offset":.0,' out.jsonl | wc -l
3
$ grep '"custom_id":"chat","response":{' out.jsonl | grep -o '"object":"chat.completion"\|"role":"assistant"'
"object":"chat.completion"
"role":"assistant"
$ grep -o '"code":.*' out.jsonl | sort
~"code":"duplicate_custom_id","message":"Line 6: An earlier line has the custom_id ..chat.. too\."\}\}
~"code":"invalid_request","message":"Line 4: Field ..tools.. must be a list of functions.*"\}\}
~"code":"invalid_request","message":"Line 5: .*temperature.*"\}\}
"code":"invalid_request","message":"Line 7: The line is not valid JSON."}}

== a body's samplers are loaded
needs webgpu model
$ echo '{"custom_id": "a", "body": {"prompt": "The fox", "max_tokens": 4, "typical_p": 0.5, "min_tokens": 4}}' > in.jsonl
$ doppler batch $FLAGS --ctx 128 --sequences 2 in.jsonl out.jsonl 2>&1 | grep -o '. answered, . failed'
1 answered, 0 failed

== tokens without a text are answered as ids
needs webgpu
$ doppler synth llama-tiny:q8_0 -o a.gguf > log; sed s/tokenizer.ggml.model/tokenizer.ggml.none_/ a.gguf > b.gguf
$ echo '{"custom_id": "a", "body": {"prompt": [1, 2], "ignore_eos": true}}' > in.jsonl
$ doppler batch $FLAGS --model b.gguf --ctx 64 --sequences 2 -n 2 in.jsonl out.jsonl 2> err
$ grep -oE '"token_ids":\[[0-9]+,[0-9]+\]' out.jsonl | wc -l
1
$ doppler run $FLAGS --model b.gguf --ctx 64 --tokens 1,2 -n 2 2>&1 | grep tokenizer
The model has no tokenizer, so that its tokens have no text; --json prints their ids.

== what was cut off is done again, and nothing else
needs webgpu model
$ for i in 1 2 3 4 5 6; do echo '{"custom_id": "'$i'", "method": "POST", "url": "/v1/completions", "body": {"prompt": "The fox '$i'"}}'; done > in.jsonl
$ doppler batch $FLAGS --ctx 128 --sequences 2 -n 3 in.jsonl out.jsonl 2> err
$ cp out.jsonl whole && head -n 3 whole > out.jsonl && sed -n 4p whole | head -c 60 >> out.jsonl
$ doppler batch $FLAGS --ctx 128 --sequences 2 -n 3 --json in.jsonl out.jsonl | grep 'lines\|done_before\|answered\|failed\|left'
  "lines": 6,
  "done_before": 3,
  "answered": 3,
  "failed": 0,
  "left": 0,
$ grep -o '"custom_id":"."' out.jsonl | sort | tr -d '\n'
"custom_id":"1""custom_id":"2""custom_id":"3""custom_id":"4""custom_id":"5""custom_id":"6"
$ head -n 3 out.jsonl > again; head -n 3 whole | cmp - again

== Ctrl-C keeps what is written and says what is left
needs webgpu model
$ for i in $(seq 500); do echo '{"custom_id": "'$i'", "method": "POST", "url": "/v1/completions", "body": {"prompt": "The fox", "ignore_eos": true}}'; done > in.jsonl
$ doppler batch $FLAGS --ctx 128 --sequences 2 -n 100 in.jsonl out.jsonl 2> err & until [ -s out.jsonl ]; do sleep 0.1; done; kill -INT $!; wait $!
exit 1
$ tail -n 2 err | head -n 1
~500 lines: \d+ answered, 0 failed, \d+ left; the same command goes on with them
$ test $(tail -n 2 err | head -n 1 | sed 's/.*: \([0-9]*\) answered.*/\1/') = $(wc -l < out.jsonl)

== files that are none
$ doppler batch in.jsonl
doppler: IN.jsonl and OUT.jsonl are needed: requests, a line each, and the file for their answers; 1 word was given.
exit 2
$ doppler batch in.jsonl out.jsonl
~doppler: Cannot open in\.jsonl: .*
exit 1
$ doppler batch in.jsonl -
doppler: OUT.jsonl was given as "-"; a file is needed, since its finished lines are not done again.
exit 2
$ echo '{"custom_id": "a"}' > in.jsonl; doppler batch in.jsonl in.jsonl
doppler: in.jsonl is IN and OUT; two files are needed.
exit 2
$ echo notes > out.jsonl; doppler batch in.jsonl out.jsonl
doppler: Line 1 of out.jsonl is no answer of a batch, so that file is left unchanged; name a new one.
exit 1
$ cat out.jsonl
notes
$ doppler batch --sequences 0 in.jsonl out.jsonl
doppler: Flag --sequences was given 0; allowed is 1 to 64.
exit 2
