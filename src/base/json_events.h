// Parsing of JSON as a stream of events, for documents that need no tree: headers with 50,000 names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace doppler {

// Each function returns false to end the parse.
class JsonEvents {
 public:
  virtual bool null() = 0;
  virtual bool boolean(bool value) = 0;
  virtual bool integer(int64_t value) = 0;  // with a sign
  virtual bool natural(uint64_t value) = 0;
  virtual bool real(double value) = 0;
  virtual bool string(std::string& text) = 0;  // may be moved from
  virtual bool start_object() = 0;
  virtual bool key(std::string& text) = 0;  // may be moved from
  virtual bool end_object() = 0;
  virtual bool start_array() = 0;
  virtual bool end_array() = 0;
  virtual bool parse_error(size_t byte) = 0;  // the text is not JSON near this byte

 protected:
  ~JsonEvents() = default;
};

// True if the whole text was read and no event ended the parse. Nesting costs heap, not stack.
bool parse_json_events(std::string_view text, JsonEvents& events);

}  // namespace doppler
