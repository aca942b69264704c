#include "formats/adapters/module_pattern.h"

#include <bitset>
#include <functional>
#include <string>
#include <vector>

#include "base/text.h"

namespace doppler::formats {

using Characters = std::bitset<256>;

// An alternative of sequences of items; an item is a set of characters or a group, and says how often it may stand.
struct PatternNode {
  struct Item {
    Characters set;
    std::unique_ptr<PatternNode> group;  // null: a character of `set`
    uint32_t least = 1, most = 1;
  };
  std::vector<std::vector<Item>> alternatives;
};

namespace {

constexpr uint32_t kUnlimited = UINT32_MAX;
constexpr int kMostDepth = 16;
constexpr uint32_t kMostSteps = 100'000;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::unique_ptr<PatternNode>> run() {
    DP_TRY(std::unique_ptr<PatternNode> root, alternatives(0));
    if (at_ != text_.size()) return refuse();
    return root;
  }

 private:
  Unexpected refuse() const {
    return fail(
        ErrorKind::kUnsupported,
        "The pattern \"%s\" is not supported at its character %zu; allowed are literals, '.', classes, "
        "groups, '|', '*', '+' and '?'.",
        printable(std::string(text_)).c_str(), at_ + 1);
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<std::unique_ptr<PatternNode>> alternatives(int depth) {
    if (depth > kMostDepth) return refuse();
    auto node = std::make_unique<PatternNode>();
    do {
      DP_TRY(std::vector<PatternNode::Item> sequence, items(depth));
      node->alternatives.push_back(std::move(sequence));
    } while (take('|'));
    return node;
  }

  Result<std::vector<PatternNode::Item>> items(int depth) {
    std::vector<PatternNode::Item> out;
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      // A pattern always matches a whole text, so it needs no ^ and no $.
      if ((text_[at_] == '^' && out.empty()) || (text_[at_] == '$' && at_ + 1 == text_.size())) {
        ++at_;
        continue;
      }
      DP_TRY(PatternNode::Item item, one(depth));
      count(item);
      out.push_back(std::move(item));
    }
    return out;
  }

  Result<PatternNode::Item> one(int depth) {
    PatternNode::Item item;
    if (take('(')) {
      if (take('?') && !take(':')) return refuse();
      DP_TRY(item.group, alternatives(depth + 1));
      if (!take(')')) return refuse();
      return item;
    }
    if (take('.')) {
      item.set.set();
      return item;
    }
    if (take('[')) {
      DP_TRY(item.set, set_of_class());
      return item;
    }
    if (take('\\')) {
      DP_TRY(item.set, escaped());
      return item;
    }
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (std::string_view("*+?{}^$").find(text_[at_]) != std::string_view::npos) return refuse();
    ++at_;
    item.set.set(c);
    return item;
  }

  void count(PatternNode::Item& item) {
    if (take('*')) {
      item.least = 0;
      item.most = kUnlimited;
    } else if (take('+')) {
      item.most = kUnlimited;
    } else if (take('?')) {
      item.least = 0;
    } else {
      return;
    }
    take('?');  // as few as possible; the result is the same
  }

  Result<Characters> escaped() {
    if (at_ >= text_.size()) return refuse();
    const char c = text_[at_];
    Characters set;
    const auto range = [&](char first, char last) {
      for (int i = first; i <= last; ++i) set.set(static_cast<size_t>(i));
    };
    if (c == 'd' || c == 'w') range('0', '9');
    if (c == 'w') {
      range('a', 'z');
      range('A', 'Z');
      set.set('_');
    }
    if (set.none()) {
      const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (is_letter) return refuse();
      set.set(static_cast<unsigned char>(c));
    }
    ++at_;
    return set;
  }

  Result<Characters> set_of_class() {
    Characters set;
    const bool is_negated = take('^');
    bool is_first = true;
    while (is_first || !take(']')) {
      is_first = false;
      if (at_ >= text_.size()) return refuse();
      if (take('\\')) {
        DP_TRY(const Characters more, escaped());
        set |= more;
        continue;
      }
      const auto first = static_cast<unsigned char>(text_[at_++]);
      auto last = first;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        last = static_cast<unsigned char>(text_[at_ + 1]);
        at_ += 2;
      }
      for (unsigned c = first; c <= last; ++c) set.set(c);
    }
    return is_negated ? ~set : set;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Matches by backtracking: `next` must hold at the place after the match.
class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text) {}
  using Next = std::function<bool(size_t at)>;

  bool node(const PatternNode& node, size_t at, const Next& next) {
    for (const auto& sequence : node.alternatives) {
      if (items(sequence, 0, at, next)) return true;
    }
    return false;
  }

 private:
  bool items(const std::vector<PatternNode::Item>& sequence, size_t index, size_t at, const Next& next) {
    if (index == sequence.size()) return next(at);
    return repeated(sequence, index, 0, at, next);
  }
  bool repeated(const std::vector<PatternNode::Item>& sequence, size_t index, uint32_t done, size_t at,
                const Next& next) {
    if (++steps_ > kMostSteps) return false;
    const PatternNode::Item& item = sequence[index];
    if (done < item.most) {
      const auto again = [&](size_t end) {
        return (end != at || done < item.least) && repeated(sequence, index, done + 1, end, next);
      };
      if (item.group) {
        if (node(*item.group, at, again)) return true;
      } else if (at < text_.size() && item.set.test(static_cast<unsigned char>(text_[at])) && again(at + 1)) {
        return true;
      }
    }
    return done >= item.least && items(sequence, index + 1, at, next);
  }

  std::string_view text_;
  uint32_t steps_ = 0;
};

}  // namespace

ModulePattern::ModulePattern(std::unique_ptr<PatternNode> root) : root_(std::move(root)) {}
ModulePattern::ModulePattern(ModulePattern&&) noexcept = default;
ModulePattern& ModulePattern::operator=(ModulePattern&&) noexcept = default;
ModulePattern::~ModulePattern() = default;

Result<ModulePattern> ModulePattern::parse(std::string_view text) {
  DP_TRY(std::unique_ptr<PatternNode> root, Parser(text).run());
  return ModulePattern(std::move(root));
}

bool ModulePattern::matches_end_of(std::string_view module) const {
  constexpr size_t kMostName = 512;  // the matcher recurses for each character
  if (module.size() > kMostName) return false;
  for (size_t begin = 0; begin <= module.size(); ++begin) {
    if (begin != 0 && module[begin - 1] != '.') continue;
    const std::string_view end = module.substr(begin);
    if (Matcher(end).node(*root_, 0, [&](size_t at) { return at == end.size(); })) return true;
  }
  return false;
}

}  // namespace doppler::formats
