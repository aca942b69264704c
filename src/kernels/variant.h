// The choice of a variant: one table per operation, rows best first, the last always portable. select() returns
// the row and every refusal above it with its reason; nothing falls back silently.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/caps.h"
#include "kernels/context.h"

namespace doppler::kernels {

enum Need : uint32_t { kNeedF16 = 1, kNeedSubgroups = 2, kNeedDp4a = 4, kNeedMatrixF16 = 8, kNeedTint = 16 };

// A row of a table is a Variant, or derives from one and from a struct of its constants, so that it names all it sets:
// {{.name = ..., .lane = ..., .refuse = ...}, {.workgroup = ...}}.
template <class Shape>
struct Variant {
  std::string_view name;  // "matvec.q4_k.subgroup": without constants
  Lane lane = Lane::kPortable;
  uint32_t needs = 0;  // Need bits; a device without one refuses by name
  // Further refusals by shape and device, "" when accepted. May be null: any shape.
  std::string (*refuse)(const Shape& shape, const gpu::Caps& caps) = nullptr;
};

// Why this device or policy cannot use a row with these needs in this lane; "" if it can.
std::string refuse_by_device(Lane lane, uint32_t needs, const gpu::Caps& caps, const Policy& policy);

// resolve()'s result: the row, and the reasons for it and against better ones.
template <class Row>
struct Resolved {
  const Row* row = nullptr;
  Choice choice;
};

// The one place where a variant is chosen. Row: Variant<Shape> or a struct that derives from it with constants of its
// own. `shape_text` goes into the Choice. A variant measured best (Policy::tuning) goes before the table's order,
// unless it is refused, which the Choice says. Errors: a forced variant that does not exist (suggests the nearest) or
// is refused (with the reason); no row takes the shape.
template <class Row, class Shape>
Result<Resolved<Row>> resolve(std::string_view operation, std::span<const Row> rows, const Shape& shape,
                              std::string_view shape_text, const gpu::Caps& caps, const Policy& policy);

// resolve(), and the choice is noted: for a row that is recorded without changes.
template <class Row, class Shape>
Result<const Row*> select(std::string_view operation, std::span<const Row> rows, const Shape& shape,
                          std::string_view shape_text, Context& ctx);

// Keeps the choice of what is recorded in ctx.choices, equal ones once.
void note_choice(Context& ctx, const Choice& choice);

}  // namespace doppler::kernels

#include "kernels/variant_inl.h"
