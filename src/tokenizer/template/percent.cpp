// Python's "%s %d" % values: flags, width and precision; conversions s r d i u f F e E g G x X o c and %%.
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

struct Directive {
  std::string flags;
  int width = 0;
  int precision = -1;
  char conversion = 0;
};

class Formatter {
 public:
  Formatter(Machine& machine, std::string_view pattern, const Value& values)
      : machine_(machine), pattern_(pattern), values_(values) {}

  Result<Value> run() {
    std::string out;
    while (at_ < pattern_.size()) {
      DP_CHECK(machine_.spend(1));
      if (pattern_[at_] != '%') {
        const size_t next = std::min(pattern_.find('%', at_), pattern_.size());
        out += pattern_.substr(at_, next - at_);
        at_ = next;
        continue;
      }
      ++at_;
      DP_TRY(const Directive directive, read());
      if (directive.conversion == '%') {
        out += '%';
        continue;
      }
      DP_TRY(const Value value, next_value());
      DP_TRY(std::string piece, convert(directive, value));
      pad(directive, piece);
      DP_CHECK(machine_.spend_bytes(piece.size()));
      out += piece;
    }
    if (!values_.is(Kind::kDict) && used_ < count()) {
      return machine_.error("the %% operator got more values than its text has conversions.");
    }
    return machine_.text(std::move(out));
  }

 private:
  size_t count() const { return values_.is(Kind::kTuple) ? values_.items().size() : 1; }

  Result<Value> next_value() {
    if (used_ >= count())
      return machine_.error("the %% operator got fewer values than its text has conversions.");
    return values_.is(Kind::kTuple) ? values_.items()[used_++] : (++used_, values_);
  }

  Result<int> number() {
    int value = 0;
    while (at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
      value = value * 10 + (pattern_[at_++] - '0');
      if (value > kMaxFormatWidth) {
        return machine_.error("a format width is larger than the allowed %d.", kMaxFormatWidth);
      }
    }
    return value;
  }

  Result<Directive> read() {
    Directive directive;
    while (at_ < pattern_.size() && std::string_view("-+ #0").find(pattern_[at_]) != std::string_view::npos) {
      if (directive.flags.find(pattern_[at_]) == std::string::npos) directive.flags += pattern_[at_];
      ++at_;
    }
    DP_TRY(directive.width, number());
    if (at_ < pattern_.size() && pattern_[at_] == '.') {
      ++at_;
      DP_TRY(directive.precision, number());
    }
    if (at_ >= pattern_.size()) return machine_.error("a %% conversion ends too early.");
    directive.conversion = pattern_[at_++];
    return directive;
  }

  Result<std::string> convert(const Directive& directive, const Value& value) {
    const char c = directive.conversion;
    const int precision = directive.precision;
    if (c == 's' || c == 'r') {
      std::string text;
      if (c == 'r' && value.is(Kind::kText))
        text = text_repr(value.as_text());
      else
        DP_CHECK(append_text(machine_, text, value));
      if (precision < 0) return text;
      const std::vector<size_t> offsets = code_point_offsets(text);
      return text.substr(0, offsets[std::min(offsets.size() - 1, static_cast<size_t>(precision))]);
    }
    if (!value.is_number()) return machine_.error("%%%c needs a number, not %s.", c, value.type_name());
    const std::string flags = "%" + directive.flags;
    const std::string width = std::to_string(directive.width);
    const std::string dot = precision < 0 ? "" : "." + std::to_string(precision);
    if (c == 'd' || c == 'i' || c == 'u' || c == 'x' || c == 'X' || c == 'o') {
      const bool decimal = c == 'd' || c == 'i' || c == 'u';
      if (!value.is_integral() && !(decimal && std::abs(value.as_double()) < 9e18)) {
        return machine_.error("%%%c needs an integer, not %s.", c, value.type_name());
      }
      const int64_t integer = value.is_integral() ? value.as_int() : static_cast<int64_t>(value.as_double());
      if (!decimal && integer < 0) return machine_.error("%%%c of a negative number is not supported.", c);
      return print(flags + width + dot + "ll" + (decimal ? 'd' : c), static_cast<long long>(integer));
    }
    if (std::string_view("fFeEgG").find(c) != std::string_view::npos) {
      return print(flags + width + dot + c, value.as_double());
    }
    return machine_.error("conversion %%%s is not supported.", printable(std::string_view(&c, 1)).c_str());
  }

  // The format was put together above from checked parts, so it is safe although not a literal.
  template <class T>
  static std::string print(const std::string& format, T value) {
    std::string out(2 * kMaxFormatWidth + 400, '\0');  // 309 digits before the point, width and precision
    const int size = std::snprintf(out.data(), out.size(), format.c_str(), value);
    out.resize(static_cast<size_t>(std::max(size, 0)));
    return out;
  }

  static void pad(const Directive& directive, std::string& piece) {
    const size_t size = count_code_points(piece);
    const auto width = static_cast<size_t>(directive.width);
    if (size >= width) return;
    const bool left = directive.flags.find('-') != std::string::npos;
    piece.insert(left ? piece.size() : 0, width - size, ' ');
  }

  Machine& machine_;
  std::string_view pattern_;
  const Value& values_;
  size_t at_ = 0;
  size_t used_ = 0;
};

}  // namespace

Result<Value> format_percent(Machine& machine, std::string_view pattern, const Value& values) {
  return Formatter(machine, pattern, values).run();
}

}  // namespace doppler::tmpl
