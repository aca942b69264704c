// A JSON schema as a whole: the meaning of its references, and the consequences of several schemas that hold at once.
// No function here changes a schema. Read next: overlap.h, opposite.h, rewrite.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace doppler::guidance {

// The types of JSON, numbers by whether they have a fraction.
enum TypeBit : uint8_t {
  kNullBit = 1,
  kBooleanBit = 2,
  kIntegerBit = 4,
  kFractionBit = 8,
  kStringBit = 16,
  kArrayBit = 32,
  kObjectBit = 64,
  kNumberBits = kIntegerBit | kFractionBit,
  kAllBits = 127,
};
// Zero: no type has the name.
uint8_t type_bits(std::string_view name);
uint8_t type_bits_of(const Json& value);
// {"type": ...} with these types, the shortest way. They hold kFractionBit only beside kIntegerBit.
Json schema_of_types(uint8_t bits);

// Schemas that an instance fulfils all at once; each outlives the list.
using Schemas = std::vector<const Json*>;

class Document {
 public:
  explicit Document(const Json& root);

  // The schema that a reference within the document means. Null: there is no such place, or it is in another document.
  const Json* resolve(std::string_view reference) const;

  // The objects among these schemas, those that "$ref" names and those of "allOf", as far as they can be followed.
  // False: one schema is `false`.
  bool flatten(const Schemas& schemas, Schemas& out) const;

  // The types that an instance of all the schemas may have.
  uint8_t types(const Schemas& schemas, int depth = 0) const;

 private:
  bool flatten_one(const Json& schema, Schemas& out, int depth) const;

  const Json& root_;
  bool has_inner_ids_ = false;  // then references may be meant from there
};

// The number of a key, if there is one.
bool read_number(const Json& schema, const char* key, double& out);
// True if the array holds the text.
bool holds_text(const Json* list, std::string_view text);

}  // namespace doppler::guidance
