// An environment variable that lasts as long as this object: for tests of code that reads one.
#pragma once

#include <cstdlib>
#include <string>

namespace doppler {

class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
#ifdef _WIN32
    ::_putenv_s(name_.c_str(), value.c_str());
#else
    ::setenv(name_.c_str(), value.c_str(), 1);
#endif
  }
  ~EnvironmentVariable() {
#ifdef _WIN32
    ::_putenv_s(name_.c_str(), "");  // empty: it is not set
#else
    ::unsetenv(name_.c_str());
#endif
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const std::string name_;
};

}  // namespace doppler
