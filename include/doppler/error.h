// Errors are values. A function that can fail returns Result<T> (result.h); the Error holds one sentence for a person
// and a chain of "While ..." lines added by the callers it passed through. Nothing in Doppler throws.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace doppler {

// The kind of failure, so that a program (exit code, HTTP status) can react without reading the sentence.
enum class ErrorKind : uint8_t {
  kInvalidInput,  // a file, flag or request is wrong
  kUnsupported,   // valid, but this build or device cannot do it
  kOutOfMemory,   // host or device memory
  kDevice,        // the GPU, its driver or the WebGPU provider failed
  kIo,            // reading or writing failed
  kCancelled,     // the caller asked to stop
  kInternal,      // a fault of ours
};

class [[nodiscard]] Error {
 public:
  Error(ErrorKind kind, std::string sentence) : kind_(kind), sentence_(std::move(sentence)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& sentence() const { return sentence_; }
  const std::vector<std::string>& whiles() const { return whiles_; }
  // "<sentence>\n  While loading blk.3.attn_q.\n  While opening x.gguf."
  std::string message() const;
  Error&& add_while(std::string what) && {
    whiles_.push_back(std::move(what));
    return std::move(*this);
  }

 private:
  ErrorKind kind_;
  std::string sentence_;
  std::vector<std::string> whiles_;  // innermost first, each without the word "While" and the full stop
};

}  // namespace doppler
