// The file that a batch's answers go to, and what it knows of earlier runs: which lines have an answer or an error
// there already. Lines are appended whole, each by one write; a line that a kill has torn is cut off when the file is
// opened.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/file.h"
#include "base/result.h"
#include "openai/batch_line.h"

namespace doppler::openai {

class BatchOutput {
 public:
  // Makes the file, or reads an existing one. One program writes to it at a time. Errors: a file that another program
  // writes to, or that holds anything but a batch's answers; such a file does not change.
  static Result<BatchOutput> open(const std::string& path);

  // The state of a line of the input; claim() is called once for each line and in their order.
  enum class Claim : uint8_t {
    kNew,
    kDone,       // an earlier run wrote its line
    kDuplicate,  // a line before has its custom_id
  };
  Claim claim(uint64_t number, const std::optional<std::string>& custom_id);
  // Writes a whole line. Error: it could not be written; the next open() cuts off a torn one.
  Result<void> write(std::string_view line);
  // Everything is on the disk.
  Result<void> sync();

 private:
  // 16 bytes of SHA-256 stand for an id, so that a file's ids take some 60 bytes of memory each.
  using Fingerprint = std::array<uint64_t, 2>;
  struct FirstWord {
    size_t operator()(const Fingerprint& print) const { return print[0]; }
  };
  static Fingerprint fingerprint(std::string_view custom_id);

  BatchOutput(OpenFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Result<void> read_earlier();

  OpenFile file_;
  std::string path_;
  std::unordered_map<Fingerprint, bool, FirstWord> ids_;  // whether the input was seen to have it
  std::unordered_set<uint64_t> numbers_;  // of lines that an earlier run refused for their custom_id
};

}  // namespace doppler::openai
