// The global functions of a template: range, dict, namespace, raise_exception, strftime_now. See filters.h.
#include <ctime>

#include "tokenizer/template/filters.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"

namespace doppler::tmpl {
namespace {

Result<Value> range_function(Machine& m, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "range()", arguments, {"start", "stop", "step"}, 1));
  DP_TRY(int64_t start, integer_or(m, "range()", a[0], 0));
  DP_TRY(int64_t stop, integer_or(m, "range()", a[1], start));
  if (!a[1]) start = 0;
  DP_TRY(const int64_t step, integer_or(m, "range()", a[2], 1));
  if (step == 0) return m.error("range() needs a step that is not 0.");
  const double count = (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step);
  if (count > static_cast<double>(kMaxRange)) {
    return m.error("range() is longer than the allowed %lld.", static_cast<long long>(kMaxRange));
  }
  Values items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    items.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return m.list(std::move(items), Kind::kRange);
}

// The pairs of a call like dict({"a": 1}, b=2) or namespace([("a", 1)], b=2).
Result<Pairs> collect_pairs(Machine& m, const char* what, const Arguments& arguments) {
  if (arguments.positional.size() > 1) return m.error("%s takes at most one value without a name.", what);
  Pairs pairs;
  if (!arguments.positional.empty() && arguments.positional[0].is(Kind::kDict)) {
    pairs = arguments.positional[0].pairs();
  } else if (!arguments.positional.empty()) {
    DP_TRY(const Value list, iterate(m, arguments.positional[0]));
    for (const Value& item : list.items()) {
      DP_TRY(const Value pair, iterate(m, item));
      if (pair.items().size() != 2) return m.error("%s needs pairs of a key and a value.", what);
      DP_CHECK(put_pair(m, pairs, pair.items()[0], pair.items()[1]));
    }
  }
  for (const auto& [name, value] : arguments.named) DP_CHECK(put_pair(m, pairs, Value::text(name), value));
  return pairs;
}

Result<Value> dict_function(Machine& m, const Arguments& arguments) {
  DP_TRY(Pairs pairs, collect_pairs(m, "dict()", arguments));
  return m.dict(std::move(pairs));
}

Result<Value> namespace_function(Machine& m, const Arguments& arguments) {
  DP_TRY(Pairs pairs, collect_pairs(m, "namespace()", arguments));
  DP_TRY(Namespace * space, m.new_namespace());
  for (auto& [key, value] : pairs) {
    if (key.is(Kind::kText)) space->items.emplace_back(key.as_text(), std::move(value));
  }
  return Value::of(space);
}

Result<Value> joiner_function(Machine& m, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "joiner()", arguments, {"sep"}));
  DP_TRY(CounterState * joiner, m.new_counter(true, {a[0] ? *a[0] : Value::text(", ")}));
  return Value::of(joiner);
}

Result<Value> cycler_function(Machine& m, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    return m.error("cycler() needs at least one value, without a name.");
  DP_TRY(CounterState * cycler, m.new_counter(false, arguments.positional));
  return Value::of(cycler);
}

Result<Value> raise_function(Machine& m, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "raise_exception()", arguments, {"message"}, 1));
  DP_TRY(const std::string message, to_string(m, *a[0]));
  constexpr size_t kMaxMessage = 500;
  return m.error("it refuses this conversation: %s", printable(message, kMaxMessage).c_str());
}

constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                   "July",    "August",   "September", "October", "November", "December"};
constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};

// Days since 1970-01-01 in the Gregorian calendar.
int64_t day_number(int year, int month, int day) {
  const int64_t y = year - (month <= 2 ? 1 : 0);
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

std::string padded(int value, int width, char flag) {
  if (flag == '-') return std::to_string(value);
  return format_text(flag == '_' ? "%*d" : "%0*d", width, value);
}

// One conversion of strftime in the C locale; empty for one we do not have.
std::optional<std::string> date_part(const DateTime& t, char conversion, char flag) {
  const int64_t days = day_number(t.year, t.month, t.day);
  const auto weekday = static_cast<int>(((days + 4) % 7 + 7) % 7);  // 1970-01-01 was a Thursday
  const int hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  switch (conversion) {
    case 'Y':
      return std::to_string(t.year);
    case 'y':
      return padded(t.year % 100, 2, flag);
    case 'm':
      return padded(t.month, 2, flag);
    case 'd':
      return padded(t.day, 2, flag);
    case 'e':
      return padded(t.day, 2, flag == '-' ? '-' : '_');
    case 'H':
      return padded(t.hour, 2, flag);
    case 'I':
      return padded(hour12, 2, flag);
    case 'M':
      return padded(t.minute, 2, flag);
    case 'S':
      return padded(t.second, 2, flag);
    case 'j':
      return padded(static_cast<int>(days - day_number(t.year, 1, 1)) + 1, 3, flag);
    case 'p':
      return t.hour < 12 ? "AM" : "PM";
    case 'B':
      return kMonths[t.month - 1];
    case 'b':
    case 'h':
      return std::string(kMonths[t.month - 1], 3);
    case 'A':
      return kDays[weekday];
    case 'a':
      return std::string(kDays[weekday], 3);
    case 'w':
      return std::to_string(weekday);
    case 'u':
      return std::to_string(weekday == 0 ? 7 : weekday);
    case 'F':
      return format_text("%d-%02d-%02d", t.year, t.month, t.day);
    case 'T':
      return format_text("%02d:%02d:%02d", t.hour, t.minute, t.second);
    case 'R':
      return format_text("%02d:%02d", t.hour, t.minute);
    case 'D':
      return format_text("%02d/%02d/%02d", t.month, t.day, t.year % 100);
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

Result<Value> strftime_function(Machine& m, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "strftime_now()", arguments, {"format"}, 1));
  DP_TRY(const std::string_view format, text_or(m, "strftime_now()", a[0], ""));
  const DateTime& now = m.now();
  if (now.month < 1 || now.month > 12) return m.error("the date has no month %d.", now.month);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    char flag = 0;
    if (i + 1 < format.size() && (format[i + 1] == '-' || format[i + 1] == '_')) flag = format[++i];
    const std::optional<std::string> part =
        i + 1 < format.size() ? date_part(now, format[++i], flag) : std::optional<std::string>("%");
    if (!part) {
      return m.error("strftime_now() does not know '%%%s'.", printable(format.substr(i, 1)).c_str());
    }
    DP_CHECK(m.spend_bytes(part->size()));
    out += *part;
  }
  return m.text(std::move(out));
}

struct GlobalsRow {
  std::string_view name;
  Function function;
};

constexpr GlobalsRow kGlobals[] = {
    {"range", range_function},           {"dict", dict_function},
    {"namespace", namespace_function},   {"raise_exception", raise_function},
    {"strftime_now", strftime_function}, {"joiner", joiner_function},
    {"cycler", cycler_function},
};

}  // namespace

int find_global(std::string_view name) {
  for (size_t i = 0; i < std::size(kGlobals); ++i) {
    if (kGlobals[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Result<Value> call_global(Machine& machine, int index, const Arguments& arguments) {
  DP_CHECK(machine.spend(1));
  return kGlobals[static_cast<size_t>(index)].function(machine, arguments);
}

DateTime local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return {local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec};
}

}  // namespace doppler::tmpl
