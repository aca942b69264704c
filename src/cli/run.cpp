// doppler run: one answer to a prompt, or a chat. Flags here, the chat loop in chat.cpp, the closing line and
// the JSON object in run_report.cpp.

#include <cstdio>
#include <optional>

#include "base/process.h"
#include "cli/chat.h"
#include "cli/common.h"
#include "cli/dry_run.h"
#include "cli/generate_flags.h"
#include "cli/interrupt.h"
#include "cli/link.h"
#include "cli/measure.h"
#include "cli/run_report.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

struct RunFlags {
  ModelFlags model;
  GenerateFlags generate;
  std::vector<std::string> words;
  std::optional<std::vector<int32_t>> tokens;
  std::string save, restore, system;
  PullPeers peers;
  std::vector<std::string> images;
  bool interactive = false, json = false, raw = false, quiet = false, dry_run = false;
};

bool is_chat(const Model& model, const RunFlags& flags) {
  return model.info().has_chat_template && !flags.raw && !flags.tokens;
}

Result<void> restore(Session& session, const Model& model, const RunFlags& flags) {
  if (flags.restore.empty()) return {};
  DP_CHECK(session.restore(flags.restore));
  if (is_chat(model, flags) && session.messages().empty() && !session.tokens().empty()) {
    return fail(ErrorKind::kInvalidInput,
                "The session in %s is plain text, not a conversation; continue it with --raw.",
                flags.restore.c_str());
  }
  return {};
}

Result<std::string> prompt_text(const RunFlags& flags) {
  std::string prompt;
  for (const std::string& word : flags.words) prompt += (prompt.empty() ? "" : " ") + word;
  if (flags.words.empty() || prompt == "-") {
    if (is_terminal(StandardStream::kInput))
      std::fputs("The prompt is read from here; end it with Ctrl-D on a line of its own.\n", stderr);
    return read_text_file("-");
  }
  return prompt;
}

// Plain text continues; a model with a chat template answers, unless --raw.
Result<Generation> answer(Session& session, const Model& model, const RunFlags& flags,
                          const TextCallback& on_text) {
  if (flags.tokens) {
    const InterruptGuard interrupt(session);
    return session.generate(*flags.tokens, flags.generate.options, on_text);
  }
  DP_TRY(const std::string prompt, prompt_text(flags));
  const InterruptGuard interrupt(session);
  if (is_chat(model, flags)) {
    std::vector<Message> messages(session.messages().begin(), session.messages().end());
    if (messages.empty() && !flags.system.empty()) messages.push_back({"system", flags.system});
    DP_TRY(Message asked, user_message(prompt, flags.images));
    messages.push_back(std::move(asked));
    return session.chat(messages, flags.generate.options, on_text);
  }
  return session.generate(prompt, flags.generate.options, on_text);
}

// A flag that gives the grammar: a file, or for a regular expression the text itself.
void add_grammar_flag(Args& args, RunFlags& flags, const char* name, const char* value, const char* help,
                      GrammarKind kind) {
  args.custom(name, 0, value, help, [&flags, name, kind](std::string_view given) -> Result<void> {
    Grammar& grammar = flags.generate.options.grammar;
    const std::string source = "Flag --" + std::string(name);
    if (grammar.kind != GrammarKind::kNone) {
      return fail(ErrorKind::kInvalidInput, "%s is given beside another grammar; an answer has one.",
                  source.c_str());
    }
    grammar.kind = kind;
    grammar.text = std::string(given);
    grammar.source = source;
    if (kind == GrammarKind::kRegex) return {};
    DP_TRY(grammar.text, read_text_file(std::string(given)));
    return {};
  });
}

Result<void> check(const RunFlags& flags) {
  if (!flags.images.empty() && (flags.interactive || flags.raw || flags.tokens)) {
    return fail(
        ErrorKind::kInvalidInput,
        "Flag --image goes with a prompt for the chat template: not with -i (which has /image), --raw or "
        "--tokens.");
  }
  if (flags.model.load.pan_and_scan && flags.images.empty() && !flags.interactive) {
    return fail(ErrorKind::kInvalidInput,
                "Flag --pan-and-scan is about pictures: it goes with --image or -i.");
  }
  if (flags.tokens && !flags.words.empty()) {
    return fail(ErrorKind::kInvalidInput, "Both --tokens and a prompt were given; one is needed.");
  }
  if (flags.generate.options.logprobs && !flags.json) {
    return fail(ErrorKind::kInvalidInput, "Flag --logprobs needs --json, which prints them.");
  }
  if (flags.interactive && !flags.generate.options.prediction.empty())
    return fail(ErrorKind::kInvalidInput, "Flag --prediction is for one answer; -i has many.");
  if (flags.interactive && (flags.json || flags.tokens || !flags.words.empty())) {
    return fail(ErrorKind::kInvalidInput,
                "Flag -i takes no prompt, --tokens or --json: it asks at the terminal.");
  }
  DP_CHECK(check_cadence({.batch = flags.generate.options.batch,
                          .readback_interval = flags.generate.options.readback_interval}));
  return check_options(flags.generate.options);
}

}  // namespace

int run_verb(std::span<const std::string> arguments) {
  RunFlags flags;
  Args args("doppler run [flags] [PROMPT]",
            "Answers a prompt (the words, or standard input), or chats with -i.");
  args.words("PROMPT", &flags.words);
  args.flag("interactive", 'i', "chat at the terminal; /help lists its commands", &flags.interactive);
  args.custom("tokens", 0, "IDS", "token ids instead of text: 1,2,3",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(flags.tokens, parse_tokens(value));
                return {};
              });
  args.texts("image", 0, "FILE", "a picture before the prompt: PNG, JPEG, WebP, GIF, BMP; may be repeated",
             &flags.images);
  add_pan_and_scan_flag(args, flags.model.load);
  args.text("system", 0, "TEXT", "system message", &flags.system);
  args.flag("raw", 0, "continue the text itself, without the chat template", &flags.raw);
  args.text("template", 0, "FILE", "Jinja chat template instead of the model's own",
            &flags.model.template_file);
  args.text("save", 0, "FILE", "save the session at the end", &flags.save);
  args.text("restore", 0, "FILE", "continue a saved session", &flags.restore);
  args.flag("json", 0, "print one JSON object: text, tokens, timings, memory, counters", &flags.json);
  args.custom(
      "logprobs", 0, "N", "with --json: the log-probability of each token, and those of the N best (0 to 20)",
      [&flags](std::string_view value) -> Result<void> {
        const auto count = parse_int(value);
        if (!count || *count < 0 || *count > kMaxTopLogprobs) {
          return fail(ErrorKind::kInvalidInput, "Flag --logprobs was given \"%s\"; allowed is 0 to %u.",
                      printable(value).c_str(), kMaxTopLogprobs);
        }
        flags.generate.options.logprobs = true;
        flags.generate.options.top_logprobs = static_cast<uint32_t>(*count);
        return {};
      });
  add_grammar_flag(args, flags, "json-schema", "FILE", "the answer is JSON after this schema",
                   GrammarKind::kJsonSchema);
  add_grammar_flag(args, flags, "grammar", "FILE", "the answer is after this grammar, Lark or GBNF",
                   GrammarKind::kGrammar);
  add_grammar_flag(args, flags, "regex", "REGEX", "the answer is after this regular expression",
                   GrammarKind::kRegex);
  args.custom("prediction", 0, "FILE",
              "a text that the answer may repeat, such as the one to be edited; it is only faster",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(flags.generate.options.prediction, read_text_file(std::string(value)));
                return {};
              });
  args.flag("quiet", 'q', "no closing line of figures", &flags.quiet);
  args.flag("dry-run", 0, "say what memory this would take and whether it fits; load nothing",
            &flags.dry_run);
  add_generate_flags(args, flags.generate);
  flags.model.takes_devices = true;
  add_model_flags(args, flags.model, /*allow_synthetic=*/true);
  args.group("A model swarm:... that is not in the store (default: the machines of this network that share)");
  flags.peers.add_peer_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (auto checked = check(flags); !checked) return exit_usage(checked.error());

  // Without pictures there is no need for the tower.
  flags.model.load.images = flags.interactive || !flags.images.empty();
  if (is_link(flags.model.model)) {
    if (auto pulled = pull_link(flags.model.model, flags.peers, flags.quiet); !pulled)
      return exit_failed(pulled.error());
  }
  if (flags.dry_run) return dry_run(flags.model, flags.json);
  auto model = load_named_model(flags.model);
  if (!model) return exit_failed(model.error());
  Session session = model->new_session();
  if (auto restored = restore(session, *model, flags); !restored) return exit_failed(restored.error());
  if (flags.interactive) {
    const ChatOptions chat{
        .generate = flags.generate.options, .system = flags.system, .use_template = is_chat(*model, flags)};
    if (auto chatted = chat_at_terminal(*model, session, chat); !chatted) {
      return exit_failed(chatted.error());
    }
  } else {
    TextCallback on_text;
    if (!flags.json) {
      on_text = [](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        return std::fflush(stdout) == 0;
      };
    }
    auto generation = answer(session, *model, flags, on_text);
    if (!generation) return exit_failed(generation.error());
    if (flags.json) {
      std::printf("%s\n", run_json(*model, *generation, flags.model.preset.used).c_str());
    } else {
      std::printf("\n");
      std::fflush(stdout);
      if (!flags.quiet && !model->info().has_tokenizer)
        std::fputs("The model has no tokenizer, so that its tokens have no text; --json prints their ids.\n",
                   stderr);
      if (!flags.quiet) std::fprintf(stderr, "%s\n", run_line(*model, *generation).c_str());
    }
  }
  if (!flags.save.empty()) {
    if (auto saved = session.save(flags.save); !saved) return exit_failed(saved.error());
  }
  return 0;
}

}  // namespace doppler::cli
