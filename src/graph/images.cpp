// graph.h: the operations of models that see.
#include "base/text.h"
#include "graph/graph.h"

namespace doppler::graph {

Value Graph::input(uint32_t index, uint32_t columns) {
  return add_one({.operation = Input{.index = index},
                  .inputs = {},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = format_text("input.%u", index)},
                 columns);
}

Value Graph::add_table_rows(Value x, Vector table) {
  const WeightInfo& w = info(table);
  check(w.shape.size() == 2 && w.shape[1] == columns(x),
        format_text("%s has no rows of %u columns.", w.label().c_str(), columns(x)));
  return add_one({.operation = TableRows{},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {table},
                  .op_label = w.label()},
                 columns(x));
}

Value Graph::image_rows(Value x, const ImageRows& images) {
  return add_one({.operation = images,
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = format_text("images.%u", images.index)},
                 columns(x));
}

Value Graph::mean_parts(Value x, uint32_t columns) {
  check(columns != 0 && this->columns(x) % columns == 0,
        format_text("%u columns are no whole runs of %u.", this->columns(x), columns));
  return add_one({.operation = MeanParts{},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x) + ".mean"},
                 columns);
}

Value Graph::clamp(Value x, Vector limits, uint32_t first) {
  const WeightInfo& w = info(limits);
  check(first + 2 <= w.shape[0], format_text("%s has no two numbers from %u on.", w.label().c_str(), first));
  return add_one({.operation = Clamp{.first = first},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {limits},
                  .op_label = w.label()},
                 columns(x));
}

Value Graph::standardise(Value x, Vector mean, Vector scale) {
  for (const Vector& each : {mean, scale}) {
    check(info(each).shape[0] == columns(x),
          format_text("%s has %u values for %u columns.", info(each).label().c_str(), info(each).shape[0],
                      columns(x)));
  }
  return add_one({.operation = Standardise{},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {mean, scale},
                  .op_label = info(scale).label()},
                 columns(x));
}

}  // namespace doppler::graph
