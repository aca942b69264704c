// graph.h: operations that need only values, and those of AltUp's streams.
#include <algorithm>

#include "base/text.h"
#include "graph/graph.h"

namespace doppler::graph {

Value Graph::multiply(Value x, Value u, ActivationFn activation) {
  check(columns(x) == columns(u), format_text("A product of %u and %u columns.", columns(x), columns(u)));
  return add_one({.operation = Multiply{.activation = activation},
                  .inputs = {x, u},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x)},
                 columns(x));
}

Value Graph::multiply(Value x, Vector weight) {
  const WeightInfo& w = info(weight);
  check(w.shape[0] == 1 || w.shape[0] == columns(x),
        format_text("%s has %u values for %u columns.", w.label().c_str(), w.shape[0], columns(x)));
  return add_one({.operation = Multiply{},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {weight},
                  .op_label = w.label()},
                 columns(x));
}

Value Graph::slice(Value x, uint32_t first, uint32_t count) {
  check(count != 0 && first + count <= columns(x),
        format_text("Columns %u to %u of %u.", first, first + count, columns(x)));
  return add_one({.operation = Slice{.first = first},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x)},
                 count);
}

Value Graph::concat(Value x, Value y) {
  return add_one({.operation = Concat{},
                  .inputs = {x, y},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x) + " beside " + label_of(y)},
                 columns(x) + columns(y));
}

Value Graph::sparsify(Value x, float deviations) {
  return add_one({.operation = Sparsify{.deviations = deviations},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x)},
                 columns(x));
}

std::vector<Value> Graph::add_streams(Operation operation, std::vector<Value> inputs,
                                      std::vector<Vector> vectors, const char* label, bool is_one) {
  const uint32_t n = columns(inputs[0]);
  for (uint32_t i = 0; i < kAltupStreams; ++i) {
    check(columns(inputs[i]) == n, format_text("Streams of %u and %u columns.", n, columns(inputs[i])));
  }
  const std::vector<uint32_t> made(is_one ? 1 : kAltupStreams, n);
  const std::string own = vectors.empty() ? label : info(vectors[0]).label();
  return add_node({.operation = std::move(operation),
                   .inputs = std::move(inputs),
                   .outputs = {},
                   .matrices = {},
                   .vectors = std::move(vectors),
                   .op_label = own},
                  made);
}

namespace {

Graph::Streams streams_of(const std::vector<Value>& values) {
  Graph::Streams out;
  std::ranges::copy(values, out.begin());
  return out;
}

}  // namespace

Graph::Streams Graph::altup_streams(const Streams& x) {
  return streams_of(add_streams(AltupMatch{}, {x.begin(), x.end()}, {}, "altup_streams", /*is_one=*/false));
}

Value Graph::altup_mean(const Streams& x) {
  return add_streams(AltupMatch{.is_mean = true}, {x.begin(), x.end()}, {}, "altup_mean", /*is_one=*/true)[0];
}

Graph::Streams Graph::altup_predict(const Streams& x, std::optional<Value> added, Value router, Vector weight,
                                    const AltupPredict& predict) {
  std::vector<Value> inputs(x.begin(), x.end());
  check(columns(router) == kAltupStreams && (!added || columns(*added) == columns(x[0])),
        format_text("A router of %u columns, or what is added, does not fit the streams.", columns(router)));
  inputs.push_back(router);
  if (added) inputs.push_back(*added);
  return streams_of(add_streams(predict, std::move(inputs), {weight}, "", /*is_one=*/false));
}

Graph::Streams Graph::altup_correct(const Streams& predicted, Value made, Value router, Vector weight,
                                    const AltupCorrect& correct) {
  std::vector<Value> inputs(predicted.begin(), predicted.end());
  check(columns(router) == kAltupStreams && columns(made) == columns(predicted[0]),
        format_text("A router of %u columns, or what the layer made, does not fit the streams.",
                    columns(router)));
  inputs.push_back(router);
  inputs.push_back(made);
  return streams_of(add_streams(correct, std::move(inputs), {weight}, "", /*is_one=*/false));
}

}  // namespace doppler::graph
