// str, repr and tojson. All three spend steps per value, since shared lists can make the text exponentially
// longer than the memory that holds it.
#include "tokenizer/template/print.h"

#include <cmath>

#include "base/stable_order.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

class Printer {
 public:
  Printer(Machine& machine, std::string& out) : machine_(machine), out_(out) {}

  Result<void> repr(const Value& value, int depth) {
    if (value.is(Kind::kText)) return put(text_repr(value.as_text()));
    return str(value, depth);
  }

  Result<void> str(const Value& value, int depth) {
    DP_CHECK(machine_.spend(1));
    if (depth > kMaxValueDepth) return machine_.error("a value to print refers to itself.");
    switch (value.kind()) {
      case Kind::kUndefined:
        return depth == 0 ? Result<void>() : put("Undefined");
      case Kind::kNone:
        return put("None");
      case Kind::kBool:
        return put(value.as_bool() ? "True" : "False");
      case Kind::kInt:
        return put(std::to_string(value.as_int()));
      case Kind::kFloat:
        return put(float_repr(value.as_double()));
      case Kind::kText:
        return put(value.as_text());
      case Kind::kList:
        return sequence(value, "[", "]", depth);
      case Kind::kTuple:
        return sequence(value, "(", value.items().size() == 1 ? ",)" : ")", depth);
      case Kind::kDict:
        DP_CHECK(put("{"));
        for (size_t i = 0; i < value.pairs().size(); ++i) {
          if (i > 0) DP_CHECK(put(", "));
          DP_CHECK(repr(value.pairs()[i].first, depth + 1));
          DP_CHECK(put(": "));
          DP_CHECK(repr(value.pairs()[i].second, depth + 1));
        }
        return put("}");
      default:
        return machine_.error("a %s cannot be printed%s.", value.type_name(),
                              value.is_list_like() ? " (add |list or |join)" : "");
    }
  }

 private:
  Result<void> put(std::string_view text) {
    DP_CHECK(machine_.spend_bytes(text.size()));
    out_ += text;
    return {};
  }

  Result<void> sequence(const Value& value, std::string_view open, std::string_view close, int depth) {
    DP_CHECK(put(open));
    for (size_t i = 0; i < value.items().size(); ++i) {
      if (i > 0) DP_CHECK(put(", "));
      DP_CHECK(repr(value.items()[i], depth + 1));
    }
    return put(close);
  }

  Machine& machine_;
  std::string& out_;
};

class JsonWriter {
 public:
  JsonWriter(Machine& machine, const JsonStyle& style) : machine_(machine), style_(style) {}

  Result<void> value(const Value& value, int depth) {
    DP_CHECK(machine_.spend(1));
    switch (value.kind()) {
      case Kind::kNone:
        return put("null");
      case Kind::kBool:
        return put(value.as_bool() ? "true" : "false");
      case Kind::kInt:
        return put(std::to_string(value.as_int()));
      case Kind::kFloat:
        return put(number(value.as_double()));
      case Kind::kText:
        return quoted(value.as_text());
      case Kind::kList:
      case Kind::kTuple:
        return array(value, depth);
      case Kind::kDict:
        return object(value, depth);
      default:
        return machine_.error("tojson cannot write a value of type %s.", value.type_name());
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_repr(value);
  }

  Result<void> put(std::string_view text) {
    DP_CHECK(machine_.spend_bytes(text.size()));
    out_ += text;
    return {};
  }

  Result<void> new_line(int depth) {
    if (!style_.pretty) return {};
    DP_CHECK(put("\n"));
    for (int i = 0; i < depth; ++i) DP_CHECK(put(style_.indent));
    return {};
  }

  Result<void> quoted(std::string_view text) {
    std::string escaped = "\"";
    for (size_t i = 0; i < text.size();) {
      const CodePoint point = code_point_at(text, i);
      const uint32_t c = point.value;
      if (c == '"' || c == '\\')
        (escaped += '\\') += static_cast<char>(c);
      else if (c == '\n')
        escaped += "\\n";
      else if (c == '\r')
        escaped += "\\r";
      else if (c == '\t')
        escaped += "\\t";
      else if (c == '\b')
        escaped += "\\b";
      else if (c == '\f')
        escaped += "\\f";
      else if (c < 0x20)
        escaped += format_text("\\u%04x", c);
      else if (!style_.ensure_ascii || c < 0x7F)
        escaped += text.substr(i, point.bytes);
      else if (c < 0x10000)
        escaped += format_text("\\u%04x", c);
      else
        escaped += format_text("\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
      i += point.bytes;
    }
    return put(escaped + "\"");
  }

  Result<void> array(const Value& value, int depth) {
    if (value.items().empty()) return put("[]");
    DP_CHECK(put("["));
    for (size_t i = 0; i < value.items().size(); ++i) {
      if (i > 0) DP_CHECK(put(style_.item_separator));
      DP_CHECK(new_line(depth + 1));
      DP_CHECK(this->value(value.items()[i], depth + 1));
    }
    DP_CHECK(new_line(depth));
    return put("]");
  }

  Result<std::string> key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::kText:
        return key.as_text();
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return key.as_bool() ? "true" : "false";
      case Kind::kInt:
        return std::to_string(key.as_int());
      case Kind::kFloat:
        return number(key.as_double());
      default:
        return machine_.error("tojson cannot write a dict key of type %s.", key.type_name());
    }
  }

  Result<void> object(const Value& value, int depth) {
    if (value.pairs().empty()) return put("{}");
    std::vector<std::pair<std::string, const Value*>> members;
    DP_CHECK(machine_.spend(value.pairs().size()));
    for (const auto& [key, item] : value.pairs()) {
      DP_TRY(std::string name, key_text(key));
      members.emplace_back(std::move(name), &item);
    }
    const auto order = stable_order(members.size(), [&](uint32_t a, uint32_t b) {
      return style_.sort_keys && members[a].first < members[b].first;
    });
    DP_CHECK(put("{"));
    for (size_t i = 0; i < members.size(); ++i) {
      const auto& [name, item] = members[order[i]];
      if (i > 0) DP_CHECK(put(style_.item_separator));
      DP_CHECK(new_line(depth + 1));
      DP_CHECK(quoted(name));
      DP_CHECK(put(style_.key_separator));
      DP_CHECK(this->value(*item, depth + 1));
    }
    DP_CHECK(new_line(depth));
    return put("}");
  }

  Machine& machine_;
  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

Result<void> append_text(Machine& machine, std::string& out, const Value& value) {
  return Printer(machine, out).str(value, 0);
}

Result<std::string> to_string(Machine& machine, const Value& value) {
  std::string out;
  DP_CHECK(append_text(machine, out, value));
  return out;
}

Result<std::string> to_json(Machine& machine, const Value& value, const JsonStyle& style) {
  JsonWriter writer(machine, style);
  DP_CHECK(writer.value(value, 0));
  return writer.take();
}

}  // namespace doppler::tmpl
