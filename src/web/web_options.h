// The JSON options of JavaScript as the public option structs. Members that are absent keep their defaults; the names
// are those of web/requests.mjs.
#pragma once

#include "base/json_fwd.h"
#include "doppler/doppler.h"
#include "web/web_file_set.h"

namespace doppler::web {

// {"root", "mainFile", "names", "set"}
Result<WebFiles> read_files(const Json& json);
// {"lane", "kv", "ctxLen", "chunk", "chatTemplate", "sequences", "poolTokens", "kernels": {operation: variant}}
Result<LoadOptions> read_load_options(const Json& json);
// GenerateOptions and SamplingOptions, their members in camelCase: {"maxTokens", "temperature", "logitBias": {id:
// number}, "whenFull": "stop" or "slide", "adapters": web_adapters.h, ...}
Result<GenerateOptions> read_generate_options(const Json& json);
// {"dimensions", "truncate"}
Result<EmbedOptions> read_embed_options(const Json& json);
// The list of token ids under `key`, or an error.
Result<std::vector<int32_t>> read_tokens(const Json& json, std::string_view key);

}  // namespace doppler::web
