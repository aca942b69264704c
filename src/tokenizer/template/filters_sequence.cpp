// Filters that order, join, cut or sum sequences.
#include <algorithm>

#include "tokenizer/template/filters.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

Result<Value> join_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter join", arguments, {"d", "attribute"}));
  std::string separator;
  if (a[0]) DP_CHECK(append_text(m, separator, *a[0]));
  DP_TRY(const Value list, iterate(m, self));
  std::string out;
  bool first = true;
  for (Value item : list.items()) {
    if (a[1] && !a[1]->is(Kind::kNone)) {
      DP_TRY(item, follow_path(m, item, *a[1]));
    }
    DP_CHECK(m.spend_bytes(separator.size()));
    if (!first) out += separator;
    first = false;
    DP_CHECK(append_text(m, out, item));
  }
  return Value::text(std::move(out));
}

template <bool kLast>
Result<Value> end_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, kLast ? "filter last" : "filter first", arguments, {}));
  if (kLast && self.is(Kind::kGenerator)) return m.error("filter last cannot take a generator (add |list).");
  DP_TRY(const Value list, iterate(m, self));
  if (list.items().empty()) return Value::undefined("the sequence has no elements");
  return kLast ? list.items().back() : list.items().front();
}

Result<Value> list_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter list", arguments, {}));
  DP_TRY(const Value list, iterate(m, self));
  return m.list(list.items());
}

Result<Value> items_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter items", arguments, {}));
  Values items;
  if (self.is(Kind::kDict)) {
    for (const auto& [key, value] : self.pairs()) {
      DP_TRY(Value pair, m.list({key, value}, Kind::kTuple));
      items.push_back(std::move(pair));
    }
  } else if (!self.is(Kind::kUndefined)) {
    return m.error("filter items needs a dict, not %s.", self.type_name());
  }
  return m.list(std::move(items), Kind::kGenerator);
}

Result<Value> reverse_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter reverse", arguments, {}));
  DP_TRY(const Value list, iterate(m, self));
  Values items(list.items().rbegin(), list.items().rend());
  if (!self.is(Kind::kText)) return m.list(std::move(items), Kind::kGenerator);
  std::string out;
  for (const Value& item : items) out += item.as_text();
  return m.text(std::move(out));
}

// The key that a value is ordered or compared by: text without case, unless case_sensitive.
Result<Value> key_of(Machine& m, const Value& item, const Value* attribute, bool case_sensitive) {
  Value key = item;
  if (attribute && !attribute->is(Kind::kNone)) {
    DP_TRY(key, follow_path(m, item, *attribute));
  }
  if (case_sensitive || !key.is(Kind::kText)) return key;
  return m.text(to_lower(key.as_text()));
}

// A stable merge sort of positions; the comparison can fail, which std::sort could not pass on.
Result<std::vector<size_t>> sorted_positions(Machine& m, const Values& keys, bool reverse) {
  std::vector<size_t> order_of(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) order_of[i] = i;
  std::vector<size_t> merged(keys.size());
  for (size_t width = 1; width < keys.size(); width *= 2) {
    for (size_t begin = 0; begin < keys.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, keys.size());
      const size_t end = std::min(begin + 2 * width, keys.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          DP_TRY(const int sign, order(m, keys[order_of[right]], keys[order_of[left]]));
          take_right = reverse ? sign > 0 : sign < 0;
        }
        merged[out] = take_right ? order_of[right++] : order_of[left++];
      }
    }
    order_of.swap(merged);
  }
  return order_of;
}

Result<Value> sort_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  DP_TRY(const Value list, iterate(m, self));
  Values keys;
  for (const Value& item : list.items()) {
    DP_TRY(Value key, key_of(m, item, a[2], truthy_or(a[1], false)));
    keys.push_back(std::move(key));
  }
  DP_TRY(const std::vector<size_t> positions, sorted_positions(m, keys, truthy_or(a[0], false)));
  Values out;
  for (const size_t position : positions) out.push_back(list.items()[position]);
  return m.list(std::move(out));
}

Result<Value> dictsort_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter dictsort", arguments, {"case_sensitive", "by", "reverse"}));
  DP_TRY(const std::string_view by, text_or(m, "filter dictsort", a[1], "key"));
  if (by != "key" && by != "value") return m.error("filter dictsort can sort by key or value only.");
  if (!self.is(Kind::kDict)) return m.error("filter dictsort needs a dict, not %s.", self.type_name());
  Values keys;
  for (const auto& [key, value] : self.pairs()) {
    DP_TRY(Value wanted, key_of(m, by == "key" ? key : value, nullptr, truthy_or(a[0], false)));
    keys.push_back(std::move(wanted));
  }
  DP_TRY(const std::vector<size_t> positions, sorted_positions(m, keys, truthy_or(a[2], false)));
  Values out;
  for (const size_t position : positions) {
    const auto& [key, value] = self.pairs()[position];
    DP_TRY(Value pair, m.list({key, value}, Kind::kTuple));
    out.push_back(std::move(pair));
  }
  return m.list(std::move(out));
}

Result<Value> unique_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter unique", arguments, {"case_sensitive", "attribute"}));
  DP_TRY(const Value list, iterate(m, self));
  Values seen;
  Values out;
  for (const Value& item : list.items()) {
    DP_TRY(Value key, key_of(m, item, a[1], truthy_or(a[0], false)));
    bool known = false;
    for (size_t i = 0; i < seen.size() && !known; ++i) {
      DP_TRY(known, equals(m, seen[i], key));
    }
    if (known) continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return m.list(std::move(out), Kind::kGenerator);
}

template <bool kMax>
Result<Value> extreme_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a,
         bind(m, kMax ? "filter max" : "filter min", arguments, {"case_sensitive", "attribute"}));
  DP_TRY(const Value list, iterate(m, self));
  if (list.items().empty()) return Value::undefined("the sequence has no elements");
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < list.items().size(); ++i) {
    DP_TRY(Value key, key_of(m, list.items()[i], a[1], truthy_or(a[0], false)));
    if (i > 0) {
      DP_TRY(const int sign, order(m, key, best_key));
      if (kMax ? sign <= 0 : sign >= 0) continue;
    }
    best = i;
    best_key = std::move(key);
  }
  return list.items()[best];
}

Result<Value> sum_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter sum", arguments, {"attribute", "start"}));
  DP_TRY(const Value list, iterate(m, self));
  Value total = a[1] ? *a[1] : Value::integer(0);
  if (total.is(Kind::kText)) return m.error("filter sum cannot add texts (use |join).");
  for (Value item : list.items()) {
    if (a[0] && !a[0]->is(Kind::kNone)) {
      DP_TRY(item, follow_path(m, item, *a[0]));
    }
    DP_TRY(total, arithmetic(m, Operator::kAdd, total, item));
  }
  return total;
}

Result<Value> batch_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter batch", arguments, {"linecount", "fill_with"}, 1));
  DP_TRY(const int64_t size, integer_or(m, "filter batch", a[0], 1));
  if (size < 1 || size > kMaxRange)
    return m.error("filter batch takes 1 to %lld.", static_cast<long long>(kMaxRange));
  DP_TRY(const Value list, iterate(m, self));
  Values batches;
  for (size_t i = 0; i < list.items().size(); i += static_cast<size_t>(size)) {
    Values batch;
    for (size_t j = i; j < i + static_cast<size_t>(size); ++j) {
      if (j < list.items().size())
        batch.push_back(list.items()[j]);
      else if (a[1] && !a[1]->is(Kind::kNone))
        batch.push_back(*a[1]);
    }
    DP_TRY(Value row, m.list(std::move(batch)));
    batches.push_back(std::move(row));
  }
  return m.list(std::move(batches), Kind::kGenerator);
}

// So many lists, the first ones longer by one where they do not come out even.
Result<Value> slice_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter slice", arguments, {"slices", "fill_with"}, 1));
  DP_TRY(const int64_t slices, integer_or(m, "filter slice", a[0], 1));
  if (slices < 1 || slices > kMaxRange)
    return m.error("filter slice takes 1 to %lld.", static_cast<long long>(kMaxRange));
  DP_TRY(const Value list, iterate(m, self));
  const auto count = static_cast<size_t>(slices);
  const size_t each = list.items().size() / count, longer = list.items().size() % count;
  Values out;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t end = at + each + (i < longer ? 1 : 0);
    Values part;
    while (at < end) part.push_back(list.items()[at++]);
    if (a[1] && !a[1]->is(Kind::kNone) && i >= longer) part.push_back(*a[1]);
    DP_TRY(Value row, m.list(std::move(part)));
    out.push_back(std::move(row));
  }
  return m.list(std::move(out), Kind::kGenerator);
}

// Pairs of an attribute's value and the items that have it, ordered by it. The first text's spelling stands for all
// texts.
Result<Value> groupby_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter groupby", arguments, {"attribute", "default", "case_sensitive"}, 1));
  DP_TRY(const Value list, iterate(m, self));
  Values values, keys;
  for (const Value& item : list.items()) {
    DP_TRY(Value value, follow_path(m, item, *a[0], a[1]));
    DP_TRY(Value key, key_of(m, value, nullptr, truthy_or(a[2], false)));
    values.push_back(std::move(value));
    keys.push_back(std::move(key));
  }
  DP_TRY(const std::vector<size_t> positions, sorted_positions(m, keys, false));
  Values out;
  for (size_t i = 0; i < positions.size();) {
    const size_t first = positions[i];
    Values items;
    for (; i < positions.size(); ++i) {
      DP_TRY(const bool is_same, equals(m, keys[first], keys[positions[i]]));
      if (!is_same) break;
      items.push_back(list.items()[positions[i]]);
    }
    DP_TRY(Value group, m.list(std::move(items)));
    out.push_back(Value::group(values[first], std::move(group)));
  }
  return m.list(std::move(out));
}

constexpr FilterRow kSequenceFilters[] = {
    {"join", join_filter},          {"first", end_filter<false>},  {"last", end_filter<true>},
    {"list", list_filter},          {"items", items_filter},       {"reverse", reverse_filter},
    {"sort", sort_filter},          {"dictsort", dictsort_filter}, {"unique", unique_filter},
    {"min", extreme_filter<false>}, {"max", extreme_filter<true>}, {"sum", sum_filter},
    {"batch", batch_filter},        {"slice", slice_filter},       {"groupby", groupby_filter},
};

}  // namespace

std::span<const FilterRow> sequence_filters() { return kSequenceFilters; }

}  // namespace doppler::tmpl
