// What a family's file gives to the table in families.cpp.
#pragma once

#include "layers/decoder.h"
#include "layers/gated_mlp.h"

namespace doppler::families {

using graph::Graph;
using graph::Value;
using layers::Builder;

void build_gemma3(Builder& b);
void build_llama(Builder& b);
void build_qwen3(Builder& b);

}  // namespace doppler::families
