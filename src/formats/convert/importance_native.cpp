// Reading an importance matrix from a file (importance.h).
#include "base/mapped_file.h"
#include "formats/convert/importance.h"

namespace doppler::formats {

Result<Importance> read_importance(const std::string& path) {
  DP_TRY(const MappedFile file, MappedFile::open(path));
  return parse_importance(file.bytes(), path);
}

}  // namespace doppler::formats
