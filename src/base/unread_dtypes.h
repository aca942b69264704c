// Number types that safetensors files have and no model of ours reads: a file may hold such tensors if no model asks
// for one. Their rows stand in the table of dtype.cpp, as those of dtype.h do.
#pragma once

#include "base/dtype.h"

namespace doppler::unread {

// The numbers begin after the last of dtype.h.
inline constexpr uint32_t kFirst = static_cast<uint32_t>(DType::kF8E4M3) + 1;
inline constexpr DType kU16{kFirst}, kU32{kFirst + 1}, kU64{kFirst + 2}, kC64{kFirst + 3},
    kF8E5M2{kFirst + 4}, kF8E8M0{kFirst + 5}, kF6E2M3{kFirst + 6}, kF6E3M2{kFirst + 7}, kF4{kFirst + 8};

}  // namespace doppler::unread
