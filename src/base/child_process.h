// Other programs that this one starts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace doppler {

// A program whose standard output is read by lines. Its standard error is ours.
class ChildProcess {
 public:
  // The words are the program, looked for as a shell does, and its arguments. Empty, with the reason in errno: it
  // cannot be started.
  static std::optional<ChildProcess> start(const std::vector<std::string>& words);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // ends the program if its output has not ended

  // Without its line feed. Empty: the program has ended its output.
  std::optional<std::string> line();

 private:
  ChildProcess(intptr_t process, intptr_t output) : process_(process), output_(output) {}
  static constexpr intptr_t kNone = -1;
  size_t read(std::span<char> out);  // 0: the output has ended
  void close_output();

  intptr_t process_ = kNone, output_ = kNone;
  std::string rest_;  // what was read beyond the last line
};

// Shows an address in the user's browser. Does nothing without a desktop.
void show_in_browser(const std::string& url);

}  // namespace doppler
