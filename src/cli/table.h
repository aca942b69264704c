// A text table for a person: columns as wide as their widest cell, two spaces between, no lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace doppler::cli {

class Table {
 public:
  // A heading that begins with '>' makes a column of numbers: set to the right, without the sign.
  explicit Table(std::vector<std::string> headings);
  // Missing cells at the end are empty.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }
  // Every line begins with `indent` and ends without spaces.
  std::string text(std::string_view indent = "") const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the headings first
  std::vector<bool> right_;
};

}  // namespace doppler::cli
