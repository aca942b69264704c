// Filters ({{ value | name(arguments) }}), tests ({{ value is name }}) and global functions, each a table by
// name. They follow jinja2 3.1 with the overrides of Hugging Face transformers. A filter that jinja2 makes
// lazy returns a list of kind kGenerator here: already computed, but as true and as length-less as jinja2's.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/template/arguments.h"

namespace doppler::tmpl {

using Filter = Result<Value> (*)(Machine&, const Value& self, const Arguments&);
using Test = Result<bool> (*)(Machine&, const Value& self, const Arguments&);
using Function = Result<Value> (*)(Machine&, const Arguments&);

struct FilterRow {
  std::string_view name;
  Filter filter;
};

// Null when there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

// The index of a global function such as range, or -1; call_global() takes it.
int find_global(std::string_view name);
Result<Value> call_global(Machine& machine, int index, const Arguments& arguments);

// The parts of the filter table, one a file.
std::span<const FilterRow> text_filters();
std::span<const FilterRow> sequence_filters();
std::span<const FilterRow> selection_filters();

// x.a.0.b for the attribute= of map, sort and others; `otherwise` (unless null) stands for each missing step.
Result<Value> follow_path(Machine& machine, const Value& object, const Value& path,
                          const Value* otherwise = nullptr);

}  // namespace doppler::tmpl
