// For headers that pass documents by reference or pointer. A source that looks inside one includes base/json.h.
#pragma once

namespace doppler {

class Json;

}  // namespace doppler
