// str.format(): "{} {0[key].name!r:>10}". Fields in order or by number or name, steps into values, conversions, and
// format specifications, which may have fields of their own.
#include "tokenizer/template/format_spec.h"
#include "tokenizer/template/methods.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

class FormatMethod {
 public:
  FormatMethod(Machine& machine, const Arguments& arguments) : machine_(machine), arguments_(arguments) {}

  Result<std::string> run(std::string_view pattern, int depth) {
    if (depth > 2) return machine_.error("format() has fields nested deeper than 2.");
    std::string out;
    for (size_t i = 0; i < pattern.size(); ++i) {
      DP_CHECK(machine_.spend(1));
      const char c = pattern[i];
      if (c != '{' && c != '}') {
        out += c;
        continue;
      }
      if (depth == 1 && i + 1 < pattern.size() && pattern[i + 1] == c) {
        out += pattern[i++];
        continue;
      }
      const size_t close = c == '{' ? end_of_field(pattern, i) : pattern.npos;
      if (close == pattern.npos) return machine_.error("format() found a single brace.");
      DP_TRY(const std::string text, field(pattern.substr(i + 1, close - i - 1), depth));
      DP_CHECK(machine_.spend_bytes(text.size()));
      out += text;
      i = close;
    }
    return out;
  }

 private:
  static size_t end_of_field(std::string_view pattern, size_t open) {
    int depth = 0;
    for (size_t i = open; i < pattern.size(); ++i) {
      depth += pattern[i] == '{' ? 1 : pattern[i] == '}' ? -1 : 0;
      if (depth == 0) return i;
    }
    return pattern.npos;
  }

  Result<std::string> field(std::string_view text, int depth) {
    const size_t bracket = text.find('['), end = text.find_first_of("!:");
    // A key between brackets may have any sign.
    const size_t from = bracket < end ? std::min(text.find(']', bracket), text.size()) : 0;
    const size_t name_end = std::min(text.find_first_of("!:", from), text.size());
    DP_TRY(Value value, look_up(text.substr(0, name_end)));
    std::string_view rest = text.substr(name_end);
    if (rest.starts_with('!')) {
      const char conversion = rest.size() > 1 ? rest[1] : '\0';
      if (conversion != 's' && conversion != 'r')
        return machine_.error("format() knows the conversions !s and !r only.");
      DP_TRY(std::string shown, to_string(machine_, value));
      if (conversion == 'r' && value.is(Kind::kText)) shown = text_repr(value.as_text());
      DP_TRY(value, machine_.text(std::move(shown)));
      rest.remove_prefix(2);
      if (!rest.empty() && rest[0] != ':') return machine_.error("format() expected ':' after a conversion.");
    }
    if (rest.empty()) return format_value(machine_, value, "");
    DP_TRY(const std::string spec, run(rest.substr(1), depth + 1));
    return format_value(machine_, value, spec);
  }

  Result<Value> look_up(std::string_view path) {
    const size_t first_end = std::min(path.find_first_of(".["), path.size());
    const std::string name(path.substr(0, first_end));
    path.remove_prefix(first_end);
    const auto number = name.empty() ? std::nullopt : parse_int(name);
    if ((number && counted_) || (name.empty() && numbered_))
      return machine_.error("format() has both counted and numbered fields.");
    counted_ = counted_ || name.empty();
    numbered_ = numbered_ || number.has_value();
    DP_TRY(Value value, argument(name, name.empty() ? static_cast<int64_t>(next_++) : number.value_or(-1)));
    while (!path.empty()) {
      const bool is_item = path[0] == '[';
      const size_t end = is_item ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
      if (end == path.npos || end == 1) return machine_.error("format() cannot read a field's name.");
      const std::string_view key = path.substr(1, end - 1);
      if (is_item) {
        const auto index = parse_int(key);
        DP_TRY(value,
               get_item(machine_, value, index ? Value::integer(*index) : Value::text(std::string(key))));
      } else {
        DP_TRY(value, get_attribute(machine_, value, key));
      }
      if (value.is(Kind::kUndefined)) return machine_.undefined_error(value);
      path.remove_prefix(end + (is_item ? 1 : 0));
    }
    return value;
  }

  Result<Value> argument(const std::string& name, int64_t number) {
    if (number >= 0 && static_cast<uint64_t>(number) < arguments_.positional.size())
      return arguments_.positional[static_cast<size_t>(number)];
    for (const auto& [key, given] : arguments_.named) {
      if (number < 0 && key == name) return given;
    }
    return machine_.error("format() has no value for '{%s}'.", printable(name).c_str());
  }

  Machine& machine_;
  const Arguments& arguments_;
  size_t next_ = 0;
  bool counted_ = false, numbered_ = false;
};

}  // namespace

Result<Value> format_method(Machine& machine, const Value& self, const Arguments& arguments) {
  DP_TRY(std::string text, FormatMethod(machine, arguments).run(self.as_text(), 1));
  return machine.text(std::move(text));
}

}  // namespace doppler::tmpl
