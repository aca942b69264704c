// Recursive descent over the pattern: alternation > concatenation > repetition > atom.
#include "tokenizer/regex/regex_parser.h"

#include "tokenizer/regex/regex_class.h"

namespace doppler::tokenizer {
namespace {

using NodeKind = RegexNode::Kind;

RegexNode set_node(CodePointSet set) {
  RegexNode node;
  node.kind = NodeKind::kSet;
  node.set = std::move(set);
  return node;
}

RegexNode look_node(CodePointSet set, bool at_end) {
  RegexNode node = set_node(std::move(set));
  node.kind = NodeKind::kLook;
  node.at_end = at_end;
  return node;
}

RegexNode repeat_node(RegexNode child, int min, int max, bool greedy) {
  RegexNode node;
  node.kind = NodeKind::kRepeat;
  node.min = min;
  node.max = max;
  node.greedy = greedy;
  node.children.push_back(std::move(child));
  return node;
}

// The one character class a node stands for, or null: groups of one are looked through.
const CodePointSet* single_set(const RegexNode& node) {
  if (node.kind == NodeKind::kSet) return &node.set;
  if ((node.kind == NodeKind::kConcat || node.kind == NodeKind::kAlternate) && node.children.size() == 1) {
    return single_set(node.children[0]);
  }
  return nullptr;
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : cursor_{pattern} {}

  Result<RegexNode> parse() {
    DP_TRY(RegexNode node, parse_alternation(0));
    if (!cursor_.done()) return fail(ErrorKind::kInvalidInput, "The pattern has a ')' without its '('.");
    return node;
  }

 private:
  Result<RegexNode> parse_alternation(int depth) {
    if (depth > kRegexMaxDepth) {
      return fail(ErrorKind::kUnsupported, "The pattern nests groups deeper than %d.", kRegexMaxDepth);
    }
    RegexNode node;
    node.kind = NodeKind::kAlternate;
    do {
      DP_TRY(RegexNode branch, parse_concatenation(depth));
      node.children.push_back(std::move(branch));
    } while (cursor_.take("|"));
    return node;
  }

  Result<RegexNode> parse_concatenation(int depth) {
    RegexNode node;
    while (!cursor_.done() && cursor_.peek() != '|' && cursor_.peek() != ')') {
      DP_TRY(RegexNode atom, parse_atom(depth));
      DP_TRY(atom, parse_repetitions(std::move(atom)));
      node.children.push_back(std::move(atom));
    }
    return node;
  }

  Result<RegexNode> parse_atom(int depth) {
    if (cursor_.take("(")) return parse_group(depth);
    if (cursor_.take("[")) {
      DP_TRY(CodePointSet set, parse_bracket_class(cursor_, 0));
      return set_node(folded(std::move(set)));
    }
    if (cursor_.take("$")) {  // Oniguruma: at the end of a line
      CodePointSet line_end;
      line_end.add('\n', '\n');
      return look_node(std::move(line_end), true);
    }
    if (cursor_.take("\\z")) return look_node({}, true);
    if (cursor_.take("\\")) {
      DP_TRY(CodePointSet set, parse_class_escape(cursor_));
      return set_node(folded(std::move(set)));
    }
    CodePointSet set;
    if (cursor_.take(".")) {
      set.add('\n', '\n');
      return set_node(set.complement());
    }
    if (std::string_view("*+?^").find(cursor_.peek()) != std::string_view::npos) {
      return fail(ErrorKind::kUnsupported,
                  "The pattern has a '%c' at byte %zu that this tokenizer does not read.", cursor_.peek(),
                  cursor_.at);
    }
    const char32_t c = cursor_.take_char();
    set.add(c, c);
    return set_node(folded(std::move(set)));
  }

  Result<RegexNode> parse_group(int depth) {
    bool look = false, negated = false;
    const bool outer_ignore_case = ignore_case_;
    if (cursor_.take("?=")) {
      look = true;
    } else if (cursor_.take("?!")) {
      look = negated = true;
    } else if (cursor_.take("?i:")) {
      ignore_case_ = true;
    } else if (cursor_.take("?-i:")) {
      ignore_case_ = false;
    } else if (!cursor_.take("?:") && cursor_.take("?")) {
      return fail(ErrorKind::kUnsupported,
                  "The pattern has a group (?%s...; known are (...), (?:...), (?i:...), (?=X) and (?!X).",
                  printable(cursor_.text.substr(cursor_.at, 2)).c_str());
    }
    DP_TRY(RegexNode node, parse_alternation(depth + 1));
    ignore_case_ = outer_ignore_case;
    if (!cursor_.take(")")) return fail(ErrorKind::kInvalidInput, "A group of the pattern is not closed.");
    if (!look) return node;
    const CodePointSet* set = single_set(node);
    if (!set) {
      return fail(ErrorKind::kUnsupported, "The pattern looks ahead at more than one character class.");
    }
    return negated ? look_node(set->complement(), true) : look_node(*set, false);
  }

  Result<RegexNode> parse_repetitions(RegexNode atom) {
    for (int count = 0;; ++count) {
      int min = 0, max = 0;
      bool braces = false;
      if (cursor_.take("?")) {
        max = 1;
      } else if (cursor_.take("*")) {
        max = -1;
      } else if (cursor_.take("+")) {
        min = 1;
        max = -1;
      } else if (parse_braces(min, max)) {
        braces = true;
      } else {
        return atom;
      }
      if (min > kRegexMaxRepeat || max > kRegexMaxRepeat || (max >= 0 && min > max)) {
        return fail(ErrorKind::kUnsupported, "The pattern has a repetition {%d,%d}; at most %d is allowed.",
                    min, max, kRegexMaxRepeat);
      }
      if (count == kRegexMaxDepth) {  // each is a level of the tree
        return fail(ErrorKind::kUnsupported, "The pattern repeats a repetition more than %d times.",
                    kRegexMaxDepth);
      }
      // After {m,n} a '+' repeats once more (Oniguruma); after ? * + it is possessive.
      if (!braces && cursor_.take("+")) {
        DP_TRY(atom, possessive(std::move(atom), min, max));
        continue;
      }
      const bool greedy = !cursor_.take("?");
      atom = repeat_node(std::move(atom), min, max, greedy);
    }
  }

  // X++ takes all X there are and never gives one back: X+ (?!X).
  static Result<RegexNode> possessive(RegexNode atom, int min, int max) {
    const CodePointSet* set = single_set(atom);
    if (!set) {
      return fail(ErrorKind::kUnsupported, "The pattern has a possessive repetition of more than one class.");
    }
    RegexNode look = look_node(set->complement(), true);
    RegexNode node;
    if (max == 1) {  // X?+: X, or nothing where no X follows
      node.kind = NodeKind::kAlternate;
      node.children.push_back(std::move(atom));
      node.children.push_back(std::move(look));
    } else {
      node.children.push_back(repeat_node(std::move(atom), min, max, true));
      node.children.push_back(std::move(look));
    }
    return node;
  }

  // {m}, {m,}, {m,n}, {,n}; anything else leaves the '{' a literal.
  bool parse_braces(int& min, int& max) {
    const size_t start = cursor_.at;
    if (!cursor_.take("{")) return false;
    const auto number = [&]() {
      int value = -1;
      while (!cursor_.done() && cursor_.peek() >= '0' && cursor_.peek() <= '9' && value < 100000) {
        value = (value < 0 ? 0 : value) * 10 + (cursor_.peek() - '0');
        ++cursor_.at;
      }
      return value;
    };
    min = number();
    max = min;
    if (cursor_.take(",")) max = number();
    if (cursor_.take("}") && (min >= 0 || max >= 0)) {
      if (min < 0) min = 0;
      return true;
    }
    cursor_.at = start;
    return false;
  }

  CodePointSet folded(CodePointSet set) const { return ignore_case_ ? fold_case(set) : set; }

  PatternCursor cursor_;
  bool ignore_case_ = false;
};

}  // namespace

Result<RegexNode> parse_regex(std::string_view pattern) {
  if (pattern.size() > kRegexMaxBytes) {
    return fail(ErrorKind::kUnsupported, "The pattern has %zu bytes; at most %zu are read.", pattern.size(),
                kRegexMaxBytes);
  }
  if (!is_utf8(pattern)) return fail(ErrorKind::kInvalidInput, "The pattern is not UTF-8.");
  return Parser(pattern).parse();
}

}  // namespace doppler::tokenizer
