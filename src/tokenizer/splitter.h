// The second part of the pipeline: a normalised text becomes pieces, which are merged one by one
// ("pre-tokenizer"). Each step cuts every piece of the step before at the matches of a pattern. Read next:
// pre_tokenizers.h (the patterns by model family), piece_encoder.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/regex/regex.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

class Splitter {
 public:
  static Result<Splitter> create(const std::vector<SplitStep>& steps);
  bool empty() const { return steps_.empty(); }

  // Calls piece(view) for every piece, in order. Pieces are never empty, and views that last as long as the call.
  template <class Piece>
  void split(std::string_view text, const Piece& piece) const {
    split_from(0, text, piece);
  }

 private:
  struct Step {
    std::optional<Regex> regex;  // none: the text stays whole
    SplitBehaviour behaviour;
    bool invert, adds_space;
  };

  template <class Piece>
  void split_from(size_t index, std::string_view text, const Piece& piece) const {
    if (text.empty()) return;
    if (index == steps_.size()) {
      piece(text);
      return;
    }
    if (steps_[index].adds_space && text.front() != ' ') {
      const std::string spaced = " " + std::string(text);
      cut(index, spaced, piece);
    } else {
      cut(index, text, piece);
    }
  }

  template <class Piece>
  void cut(size_t index, std::string_view text, const Piece& piece) const {
    const Step& step = steps_[index];
    if (!step.regex) return split_from(index + 1, text, piece);
    Cutter cutter{step.behaviour, text};
    const auto emit = [&](std::string_view part) { split_from(index + 1, part, piece); };
    RegexScan scan(*step.regex, text);
    size_t at = 0, begin = 0, end = 0;
    while (scan.next(begin, end)) {
      if (begin > at) cutter.take(at, begin, step.invert, emit);
      cutter.take(begin, end, !step.invert, emit);
      at = end;
    }
    if (at < text.size()) cutter.take(at, text.size(), step.invert, emit);
    cutter.finish(emit);
  }

  // Turns the sequence of matches and gaps into pieces, as the behaviour says.
  struct Cutter {
    SplitBehaviour behaviour;
    std::string_view text;
    size_t begin = 0, end = 0;  // held back, because the next part may join it
    bool held_match = false;

    template <class Emit>
    void take(size_t from, size_t to, bool is_match, const Emit& emit) {
      bool joins = false;
      switch (behaviour) {
        case SplitBehaviour::kIsolated:
          break;
        case SplitBehaviour::kRemoved:
          if (is_match) return;
          break;
        case SplitBehaviour::kMergedWithPrevious:
          joins = is_match && !held_match;
          break;
        case SplitBehaviour::kMergedWithNext:
          joins = !is_match && held_match;
          break;
        case SplitBehaviour::kContiguous:
          joins = is_match == held_match;
          break;
      }
      if (!joins || begin == end) {
        finish(emit);
        begin = from;
      }
      end = to;
      held_match = is_match;
    }
    template <class Emit>
    void finish(const Emit& emit) {
      if (end > begin) emit(text.substr(begin, end - begin));
      begin = end = 0;
    }
  };

  std::vector<Step> steps_;
};

}  // namespace doppler::tokenizer
