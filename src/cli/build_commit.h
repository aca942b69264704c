// The commit that the program was built from, for its reports.
#pragma once

namespace doppler::cli {

// "3b9fa7b70d9a", with "+changes" where files differed from it; "unknown" outside a checkout.
const char* build_commit();

}  // namespace doppler::cli
