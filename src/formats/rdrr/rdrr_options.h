// The options for opening an RDRR folder; apart from rdrr_reader.h so that checkpoint.h stays light.
#pragma once

#include <cstdint>
#include <string>

namespace doppler::formats {

struct RdrrOptions {
  bool verify = true;        // false: hashes are not looked at, which is logged as a warning
  std::string stamp_folder;  // remembers shards found good (verified_stamp_native.h); empty: nothing
  uint64_t cache_bytes = 256ull << 20;  // of verified shards in memory, if files are not mapped
};

}  // namespace doppler::formats
