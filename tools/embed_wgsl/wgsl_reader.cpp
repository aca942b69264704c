// The scanner of wgsl_reader.h: comments are blanked out first (line breaks stay, so that lines can be
// counted), then declarations are found by their tokens.
#include "wgsl_reader.h"

#include <algorithm>
#include <cctype>

namespace doppler::embed_wgsl {
namespace {

using Error = std::unexpected<std::string>;

struct Token {
  std::string text;  // an identifier or number, or one character of punctuation
  int line = 1;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

Error fail(int line, const std::string& sentence) {
  return Error("line " + std::to_string(line) + ": " + sentence);
}

// WGSL block comments nest.
std::string blank_comments(std::string_view text) {
  std::string out(text);
  size_t depth = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string_view two = text.substr(i, 2);
    if (depth == 0 && two == "//") {
      while (i < out.size() && out[i] != '\n') out[i++] = ' ';
    } else if (two == "/*" || (depth > 0 && two == "*/")) {
      depth = two == "/*" ? depth + 1 : depth - 1;
      out[i] = out[i + 1] = ' ';
      ++i;
    } else if (depth > 0 && out[i] != '\n') {
      out[i] = ' ';
    }
  }
  return out;
}

std::vector<Token> tokenize(const std::string& text) {
  std::vector<Token> tokens;
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    if (is_word(text[i])) {
      while (end < text.size() && is_word(text[end])) ++end;
    }
    tokens.push_back({text.substr(i, end - i), line});
    i = end;
  }
  return tokens;
}

// Walks the tokens; past the end every token reads as empty.
class Scanner {
 public:
  explicit Scanner(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  bool done() const { return at_ >= tokens_.size(); }
  int line() const { return tokens_.empty() ? 1 : tokens_[std::min(at_, tokens_.size() - 1)].line; }
  const std::string& peek(size_t ahead = 0) const {
    static const std::string kEnd;
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : kEnd;
  }
  std::string next() {
    std::string text = peek();
    ++at_;
    return text;
  }
  bool accept(std::string_view text) {
    if (peek() != text) return false;
    ++at_;
    return true;
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

constexpr std::string_view kImport = "//!import";

std::expected<std::vector<std::string>, std::string> read_imports(std::string_view text) {
  std::vector<std::string> imports;
  bool opening = true;  // nothing but comments and empty lines so far
  int line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!row.empty() && std::isspace(static_cast<unsigned char>(row.back())) != 0) row.remove_suffix(1);
    if (!row.starts_with(kImport)) {
      if (!row.empty() && !row.starts_with("//")) opening = false;
      continue;
    }
    if (!opening) return fail(line, "an //!import must stand before the first declaration.");
    std::string_view name = row.substr(std::min(kImport.size() + 1, row.size()));
    // `folder/file as prefix_`, perhaps `with the same weights`: once more, under other names.
    constexpr std::string_view kAs = " as ", kSameWeights = " with the same weights";
    const size_t as = name.find(kAs);
    std::string_view prefix = as == name.npos ? "" : name.substr(as + kAs.size());
    if (prefix.ends_with(kSameWeights)) prefix.remove_suffix(kSameWeights.size());
    const bool is_named = std::ranges::all_of(prefix, is_word) && (as == name.npos || !prefix.empty());
    name = name.substr(0, as);
    const bool plain = is_named && std::ranges::all_of(name, [](char c) { return is_word(c) || c == '/'; });
    if (name.empty() || !plain) {
      return fail(line, "\"" + std::string(row) +
                            "\" does not name one fragment; write //!import folder/file, without extension.");
    }
    imports.emplace_back(name);
  }
  return imports;
}

std::expected<std::vector<Member>, std::string> read_params(Scanner& scan) {
  std::vector<Member> members;
  if (!scan.accept("{")) return fail(scan.line(), "struct Params has no body.");
  while (!scan.accept("}")) {
    const int line = scan.line();
    Member member{.name = scan.next(), .type = ""};
    if (member.name == "@")
      return fail(line, "struct Params may not use attributes: every member is 4 bytes.");
    if (!scan.accept(":"))
      return fail(line, "struct Params is cut off or malformed near \"" + member.name + "\".");
    member.type = scan.next();
    const bool scalar = member.type == "u32" || member.type == "i32" || member.type == "f32";
    if (!scalar || (scan.peek() != "," && scan.peek() != "}")) {
      return fail(line, "member \"" + member.name + "\" of struct Params has type " + member.type +
                            (scan.peek() == "<" ? "<...>" : "") + "; u32, i32 and f32 are allowed.");
    }
    if (std::ranges::any_of(members, [&](const Member& m) { return m.name == member.name; })) {
      return fail(line, "struct Params has two members named \"" + member.name + "\".");
    }
    scan.accept(",");
    members.push_back(std::move(member));
  }
  if (members.empty()) return fail(scan.line(), "struct Params has no members; leave it out.");
  return members;
}

// An attribute's argument as a plain decimal number: `(3)` or `(3u)`.
std::expected<uint32_t, std::string> read_number(Scanner& scan, const std::string& attribute) {
  const int line = scan.line();
  const bool open = scan.accept("(");
  std::string digits = scan.next();
  if (digits.ends_with('u')) digits.pop_back();
  const bool decimal = !digits.empty() && digits.size() < 4 &&
                       std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!open || !decimal || !scan.accept(")")) {
    return fail(line, "@" + attribute + " needs a plain number, such as @" + attribute + "(0).");
  }
  return static_cast<uint32_t>(std::stoul(digits));
}

// Reads the part after the attributes: `var<uniform> name` or `var<storage[, mode]> name`.
std::expected<Binding, std::string> read_buffer(Scanner& scan, uint32_t number) {
  const int line = scan.line();
  Binding binding{.number = number, .name = "", .kind = ""};
  if (!scan.accept("var") || !scan.accept("<")) {
    return fail(line, "binding " + std::to_string(number) +
                          " is not a buffer; write var<uniform> or var<storage, ...>.");
  }
  const std::string space = scan.next();
  const std::string mode = scan.accept(",") ? scan.next() : "";
  if (!scan.accept(">"))
    return fail(line, "binding " + std::to_string(number) + " has a malformed var<...>.");
  binding.name = scan.next();
  if (space == "uniform" && mode.empty()) {
    binding.kind = "kUniform";
  } else if (space == "storage" && (mode.empty() || mode == "read")) {
    binding.kind = "kRead";
  } else if (space == "storage" && mode == "read_write") {
    binding.kind = "kReadWrite";
  } else {
    return fail(line, "binding \"" + binding.name + "\" is var<" + space + (mode.empty() ? "" : ", " + mode) +
                          ">; allowed are uniform, storage with read, storage with read_write.");
  }
  return binding;
}

std::expected<Binding, std::string> read_binding(Scanner& scan) {
  const int line = scan.line();
  int group = -1;
  int number = -1;
  while (scan.peek() == "@" && (scan.peek(1) == "group" || scan.peek(1) == "binding")) {
    scan.next();
    const std::string attribute = scan.next();
    const auto value = read_number(scan, attribute);
    if (!value) return Error(value.error());
    (attribute == "group" ? group : number) = static_cast<int>(*value);
  }
  if (group < 0 || number < 0)
    return fail(line, "@group and @binding must stand together, one after the other.");
  if (group != 0)
    return fail(line, "@group(" + std::to_string(group) + ") is used; every binding belongs to group 0.");
  return read_buffer(scan, static_cast<uint32_t>(number));
}

std::expected<void, std::string> check_bindings(std::vector<Binding>& bindings) {
  std::ranges::sort(bindings, {}, &Binding::number);
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (i > 0 && bindings[i].number == bindings[i - 1].number) {
      return Error("\"" + bindings[i - 1].name + "\" and \"" + bindings[i].name + "\" both have @binding(" +
                   std::to_string(bindings[i].number) + ").");
    }
    if (bindings[i].number != i) {
      return Error("@binding(" + std::to_string(i) + ") is missing; \"" + bindings[i].name +
                   "\" has @binding(" + std::to_string(bindings[i].number) +
                   "), and numbers must run from 0 without gaps.");
    }
  }
  return {};
}

}  // namespace

std::expected<WgslFile, std::string> read_wgsl(std::string_view text) {
  WgslFile file;
  auto imports = read_imports(text);
  if (!imports) return Error(imports.error());
  file.imports = std::move(*imports);

  Scanner scan(tokenize(blank_comments(text)));
  while (!scan.done()) {
    if (scan.peek() == "struct" && scan.peek(1) == "Params") {
      if (file.has_params) return fail(scan.line(), "struct Params is declared twice.");
      scan.next();
      scan.next();
      auto params = read_params(scan);
      if (!params) return Error(params.error());
      file.has_params = true;
      file.params = std::move(*params);
    } else if (scan.peek() == "@" && (scan.peek(1) == "group" || scan.peek(1) == "binding")) {
      auto binding = read_binding(scan);
      if (!binding) return Error(binding.error());
      file.bindings.push_back(std::move(*binding));
    } else {
      scan.next();
    }
  }
  if (auto checked = check_bindings(file.bindings); !checked) return Error(checked.error());
  return file;
}

namespace {

// True if a blank between the two characters keeps tokens apart: two words, or punctuation that together would be
// another token ("a / *p", "array<u32> = x").
bool parts_tokens(char before, char after) {
  if (is_word(before) || before == '.') return is_word(after) || after == '.';
  constexpr std::string_view kBegins = "-+*/%&|^!<>=", kFollows = "-+*/&|<>=";
  return kBegins.contains(before) && kFollows.contains(after);
}

// A line without the blanks that part no tokens; of its indentation one is left, by which the composer knows
// declarations.
std::string compact_line(std::string_view line) {
  std::string out;
  bool blank = false;
  for (const char c : line) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      blank = true;
      continue;
    }
    if (blank && (out.empty() || parts_tokens(out.back(), c))) out += ' ';
    blank = false;
    out += c;
  }
  return out;
}

}  // namespace

std::string compact_wgsl(std::string_view text) {
  const std::string blanked = blank_comments(text);
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string row = line.starts_with(kImport)
                                ? std::string(line)
                                : compact_line(std::string_view(blanked).substr(begin, end - begin));
    if (!row.empty()) out += row + "\n";
    begin = end + 1;
  }
  return out;
}

}  // namespace doppler::embed_wgsl
