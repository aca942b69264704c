// Many short texts in one buffer: 256k tokens cost one allocation instead of 256k. Views stay valid until
// add().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace doppler::tokenizer {

class TextTable {
 public:
  void reserve(size_t count, size_t bytes) {
    ends_.reserve(count);
    text_.reserve(bytes);
  }
  void add(std::string_view text) {
    text_.append(text);
    ends_.push_back(text_.size());
  }
  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
};

}  // namespace doppler::tokenizer
