// Pattern -> table. The syntax tree becomes a small program (Thompson's construction); the program's threads,
// kept in order of preference, become the states of a table (subset construction). A state is read together
// with the next character's class, so that a look-ahead at one class costs nothing: it is decided while the
// threads are followed. Read next: regex_scan.cpp, which walks the table.
#include <algorithm>
#include <map>

#include "tokenizer/regex/regex.h"
#include "tokenizer/regex/regex_parser.h"

namespace doppler::tokenizer {
namespace {

// Bounds for hostile patterns. The largest real one (spaces in runs of 512, 256, ...) needs about 1,100
// states.
constexpr size_t kMaxProgram = 20000;
constexpr size_t kMaxStates = 4096;
constexpr size_t kMaxClasses = 200;
constexpr size_t kMaxSets = 512;
constexpr uint64_t kMaxWork = 20'000'000;  // threads followed: well under a second

struct Instruction {
  enum class Op : uint8_t { kSet, kLook, kSplit, kJump, kMatch };
  Op op;
  bool at_end = false;  // kLook
  uint32_t set = 0;     // kSet, kLook
  uint32_t first = 0;   // where to go on; of a split: the preferred way
  uint32_t second = 0;
};
using Op = Instruction::Op;

}  // namespace

class RegexCompiler {
 public:
  Result<Regex> compile(const RegexNode& tree) {
    DP_CHECK(emit(tree));
    DP_CHECK(push({Op::kMatch}));
    DP_CHECK(make_classes());
    DP_CHECK(make_states());
    return std::move(regex_);
  }

 private:
  Result<> push(Instruction instruction) {
    if (program_.size() >= kMaxProgram) {
      return fail(ErrorKind::kUnsupported, "The pattern needs more than %zu steps.", kMaxProgram);
    }
    program_.push_back(instruction);
    return {};
  }
  uint32_t here() const { return static_cast<uint32_t>(program_.size()); }

  Result<uint32_t> set_index(const CodePointSet& set) {
    const auto known = std::ranges::find(sets_, set);
    if (known != sets_.end()) return static_cast<uint32_t>(known - sets_.begin());
    if (sets_.size() == kMaxSets) {
      return fail(ErrorKind::kUnsupported, "The pattern has more than %zu character classes.", kMaxSets);
    }
    sets_.push_back(set);
    return static_cast<uint32_t>(sets_.size() - 1);
  }

  Result<> emit(const RegexNode& node) {
    switch (node.kind) {
      case RegexNode::Kind::kSet:
      case RegexNode::Kind::kLook: {
        DP_TRY(const uint32_t set, set_index(node.set));
        const Op op = node.kind == RegexNode::Kind::kSet ? Op::kSet : Op::kLook;
        return push({op, node.at_end, set, here() + 1});
      }
      case RegexNode::Kind::kConcat:
        for (const RegexNode& child : node.children) DP_CHECK(emit(child));
        return {};
      case RegexNode::Kind::kAlternate:
        return emit_alternate(node);
      case RegexNode::Kind::kRepeat:
        return emit_repeat(node);
    }
    return {};
  }

  Result<> emit_alternate(const RegexNode& node) {
    std::vector<uint32_t> exits;
    for (size_t i = 0; i + 1 < node.children.size(); ++i) {
      const uint32_t split = here();
      DP_CHECK(push({Op::kSplit, false, 0, split + 1}));
      DP_CHECK(emit(node.children[i]));
      exits.push_back(here());
      DP_CHECK(push({Op::kJump}));
      program_[split].second = here();
    }
    DP_CHECK(emit(node.children.back()));
    for (const uint32_t exit : exits) program_[exit].first = here();
    return {};
  }

  Result<> emit_repeat(const RegexNode& node) {
    const RegexNode& child = node.children[0];
    for (int i = 0; i < node.min; ++i) DP_CHECK(emit(child));
    std::vector<uint32_t> splits;
    if (node.max < 0) {
      const uint32_t split = here();
      DP_CHECK(push({Op::kSplit, false, 0, split + 1}));
      DP_CHECK(emit(child));
      DP_CHECK(push({Op::kJump, false, 0, split}));
      splits.push_back(split);
    }
    for (int i = node.min; i < node.max; ++i) {
      splits.push_back(here());
      DP_CHECK(push({Op::kSplit, false, 0, here() + 1}));
      DP_CHECK(emit(child));
    }
    for (const uint32_t split : splits) {
      program_[split].second = here();
      if (!node.greedy) std::swap(program_[split].first, program_[split].second);
    }
    return {};
  }

  // Characters that no set tells apart share a class. The last class is the end of the text.
  Result<> make_classes() {
    std::vector<char32_t> borders = {0};
    for (const CodePointSet& set : sets_) {
      for (const auto& range : set.ranges()) {
        borders.push_back(range.first);
        if (range.last < kInvalidCodePoint) borders.push_back(range.last + 1);
      }
    }
    std::ranges::sort(borders);
    borders.erase(std::ranges::unique(borders).begin(), borders.end());

    std::map<std::vector<bool>, uint8_t> class_of_signature;
    std::vector<uint8_t> flat((Regex::kPages) << Regex::kPageBits, 0);
    for (size_t i = 0; i < borders.size(); ++i) {
      std::vector<bool> signature(sets_.size());
      for (size_t s = 0; s < sets_.size(); ++s) signature[s] = sets_[s].contains(borders[i]);
      const auto next = static_cast<uint8_t>(class_of_signature.size());
      const auto [row, added] = class_of_signature.emplace(std::move(signature), next);
      if (added && class_of_signature.size() > kMaxClasses) {
        return fail(ErrorKind::kUnsupported, "The pattern tells more than %zu kinds of characters apart.",
                    kMaxClasses);
      }
      const size_t end = i + 1 < borders.size() ? borders[i + 1] : kInvalidCodePoint + 1;
      std::fill(flat.begin() + borders[i], flat.begin() + static_cast<ptrdiff_t>(end), row->second);
    }
    class_sets_.resize(class_of_signature.size());
    for (const auto& [signature, index] : class_of_signature) class_sets_[index] = signature;
    regex_.class_count_ = static_cast<uint32_t>(class_of_signature.size()) + 1;

    // Equal pages of the flat table are kept once.
    std::map<std::vector<uint8_t>, uint16_t> known;
    for (uint32_t page = 0; page < Regex::kPages; ++page) {
      const auto begin = flat.begin() + (page << Regex::kPageBits);
      std::vector<uint8_t> content(begin, begin + Regex::kPageSize);
      const auto [row, added] = known.emplace(content, static_cast<uint16_t>(known.size()));
      if (added) regex_.page_classes_.insert(regex_.page_classes_.end(), content.begin(), content.end());
      regex_.page_index_.push_back(row->second);
    }
    for (char32_t c = 0; c < 128; ++c) regex_.ascii_classes_[c] = static_cast<uint8_t>(regex_.class_of(c));
    return {};
  }

  using Threads = std::vector<uint32_t>;  // places in the program, preferred first

  Result<> make_states() {
    std::map<Threads, uint32_t> index;
    std::vector<Threads> states = {{}, {0}};  // 0: no thread is left
    index[{}] = 0;
    index[{0}] = Regex::kStart;
    uint64_t work = 0;
    for (size_t state = 0; state < states.size(); ++state) {
      for (uint32_t c = 0; c < regex_.class_count_; ++c) {
        bool matched = false;
        Threads next;
        work += follow(states[state], c, next, matched);
        if (work > kMaxWork)
          return fail(ErrorKind::kUnsupported, "The pattern is too complex for this tokenizer.");
        const auto [row, added] = index.emplace(next, static_cast<uint32_t>(states.size()));
        if (added) {
          if (states.size() == kMaxStates) {
            return fail(ErrorKind::kUnsupported, "The pattern needs more than %zu states.", kMaxStates);
          }
          states.push_back(std::move(next));
        }
        regex_.transitions_.push_back(row->second * 2 + (matched ? 1 : 0));
      }
    }
    return {};
  }

  // Runs the threads up to the next character, of class c, and over it. Stops at a match: what follows is
  // less preferred. Answers the number of steps.
  uint64_t follow(const Threads& threads, uint32_t c, Threads& next, bool& matched) {
    const bool at_end = c + 1 == regex_.class_count_;
    seen_.assign(program_.size(), false);
    kept_.assign(program_.size() + 1, false);
    uint64_t steps = program_.size() / 64 + 1;  // of the two lines above
    std::vector<uint32_t> stack(threads.rbegin(), threads.rend());
    while (!stack.empty()) {
      const uint32_t at = stack.back();
      stack.pop_back();
      ++steps;
      if (seen_[at]) continue;
      seen_[at] = true;
      const Instruction& i = program_[at];
      switch (i.op) {
        case Op::kMatch:
          matched = true;
          return steps;
        case Op::kJump:
          stack.push_back(i.first);
          break;
        case Op::kSplit:
          stack.push_back(i.second);
          stack.push_back(i.first);
          break;
        case Op::kLook:
          if (at_end ? i.at_end : class_sets_[c][i.set]) stack.push_back(i.first);
          break;
        case Op::kSet:
          if (!at_end && class_sets_[c][i.set] && !kept_[i.first]) {
            kept_[i.first] = true;
            next.push_back(i.first);
          }
          break;
      }
    }
    return steps;
  }

  std::vector<Instruction> program_;
  std::vector<CodePointSet> sets_;
  std::vector<std::vector<bool>> class_sets_;  // [class][set]: the class lies in the set
  std::vector<bool> seen_, kept_;
  Regex regex_;
};

Result<Regex> Regex::compile(std::string_view pattern) {
  auto tree = parse_regex(pattern);
  if (tree) {
    auto regex = RegexCompiler().compile(*tree);
    if (regex) return regex;
    return forward(std::move(regex).error().add_while(
        format_text("reading the pattern '%s'", printable(pattern, 400).c_str())));
  }
  return forward(std::move(tree).error().add_while(
      format_text("reading the pattern '%s'", printable(pattern, 400).c_str())));
}

}  // namespace doppler::tokenizer
