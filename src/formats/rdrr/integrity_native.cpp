// Making the hashes of an RDRR folder (integrity.h).
#include "formats/rdrr/integrity.h"

namespace doppler::formats {

Sha256 rdrr_model_sha256(const RdrrManifest& manifest) { return sha256(rdrr_model_hash_input(manifest)); }

std::string rdrr_manifest_text(RdrrManifest& manifest) {
  manifest.model_sha256 = rdrr_model_sha256(manifest);
  std::string text = rdrr_manifest_body(manifest);
  return text + sha256_hex(sha256(text_bytes(text))) + "\"\n}\n";
}

}  // namespace doppler::formats
