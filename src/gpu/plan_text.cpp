// Commands as text and digests; see plan_text.h.
#include "gpu/plan_text.h"

#include <algorithm>

#include "base/sha256.h"

namespace doppler::gpu {
namespace {

constexpr size_t kDigits = 12;
constexpr std::string_view kConst = "const ";
constexpr std::string_view kFirstFile = "// ---- ";  // how the composer begins each file

std::string short_digest(std::string_view text) {
  return sha256_hex(sha256(text_bytes(text))).substr(0, kDigits);
}

// The lines of a WGSL text without comments (it has none in blocks), leading and trailing space, and empty lines.
std::vector<std::string> code_lines(std::string_view wgsl) {
  std::vector<std::string> lines;
  for (const std::string& line : split(wgsl, '\n')) {
    const std::string_view code = trim(std::string_view(line).substr(0, line.find("//")));
    if (!code.empty()) lines.emplace_back(code);
  }
  return lines;
}

// "const WORKGROUP: u32 = 64u;" -> "WORKGROUP=64u".
std::string constant_text(std::string_view line) {
  const std::string_view name = line.substr(kConst.size(), line.find(':') - kConst.size());
  const size_t value = line.find("= ") + 2;
  return std::string(name) + "=" + std::string(line.substr(value, line.rfind(';') - value));
}

std::string hex_words(std::span<const uint8_t> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    if (i != 0) text += ' ';
    for (size_t j = 4; j-- > 0;) {  // little-endian words, as numbers
      if (i + j < bytes.size()) text += format_text("%02x", bytes[i + j]);
    }
  }
  return text;
}

const char* kind_text(BindKind kind) { return kind == BindKind::kReadWrite ? "rw " : "r "; }

const uint32_t* words_of(const Plan& plan, size_t command) {
  return plan.words.data() + command * kPlanCommandWords;
}

}  // namespace

std::string one_line(const CommandText& command) {
  std::string text = command.label + " " + command.op_label + ": " + command.grid;
  for (const std::string& binding : command.bindings) text += "; " + binding;
  if (!command.pipeline.empty()) text += "; pipeline " + command.pipeline;
  return text;
}

const PlanText::PipelineText& PlanText::pipeline(PipelineId id) {
  const auto [entry, added] = pipelines_.try_emplace(id);
  PipelineText& text = entry->second;
  if (!added) return text;
  const PipelineDesc& desc = device_.pipeline(id);
  // wgsl_composer.h: directives, then the numbers that this launch was given, then the files.
  const std::string_view wgsl = desc.wgsl;
  const size_t files = std::min(wgsl.find(kFirstFile), wgsl.size());
  std::string head, body;
  for (const std::string& line : code_lines(wgsl.substr(0, files))) {
    if (line.starts_with(kConst)) text.constants.push_back(constant_text(line));
    head += line + "\n";
  }
  for (const std::string& line : code_lines(wgsl.substr(files))) body += line + "\n";
  for (const auto& [name, value] : desc.constants) {
    text.constants.push_back(format_text("%s=%.17g", name.c_str(), value));
  }
  text.wgsl = short_digest(body);
  std::string all = head + "\n" + body;
  for (const std::string& constant : text.constants) all += constant + "\n";
  for (const BindKind kind : desc.layout) all += format_text("%u ", static_cast<unsigned>(kind));
  all += desc.trusted ? "trusted" : "checked";
  text.digest = short_digest(all);
  return text;
}

namespace {

// The name of a binding's buffer: of scratch the number of its first use in the plan so far.
std::string binding_name(const RecordingDevice& device, uint32_t buffer, uint32_t tensor,
                         std::map<uint32_t, size_t>& scratch) {
  if (tensor == kNotScratch) return device.buffer_name(buffer);
  return format_text("scratch%zu", scratch.try_emplace(tensor, scratch.size()).first->second);
}

}  // namespace

CommandText PlanText::dispatch(const Plan& plan, size_t at, std::map<uint32_t, size_t>& scratch) {
  const uint32_t* const words = words_of(plan, at);
  const PlanEntry& entry = plan.entries[at];
  const PipelineText& made = pipeline(words[1]);
  const RecordingDevice::BindGroup& group = device_.bind_group(words[2]);
  const std::vector<BindKind>& layout = device_.pipeline(words[1]).layout;

  CommandText text;
  text.label = entry.name;
  text.op_label = entry.op_label;
  std::string axes[3] = {std::to_string(words[3]), std::to_string(words[4]), std::to_string(words[5])};
  const uint32_t rows_per_group = words[6] & 0x0FFFFFFFu;
  if (rows_per_group) axes[(words[6] >> 28) % 3] = format_text("rows/%u", rows_per_group);
  text.grid = axes[0] + " x " + axes[1] + " x " + axes[2];
  text.wgsl = made.wgsl;
  text.constants = made.constants;
  auto tensor = entry.tensors.begin();
  for (size_t i = 0; i < layout.size(); ++i) {
    const BufferSlice& slice = group.bindings[i];
    if (layout[i] == BindKind::kUniform) {
      text.params = hex_words(device_.uniform(slice));
      continue;
    }
    text.bindings.push_back(kind_text(layout[i]) + binding_name(device_, slice.buffer, *tensor++, scratch) +
                            format_text("+%llu:%llu", static_cast<unsigned long long>(slice.offset),
                                        static_cast<unsigned long long>(slice.bytes)));
  }
  text.pipeline = short_digest(made.digest + " " + text.params);
  return text;
}

CommandText PlanText::copy(const Plan& plan, size_t at, std::map<uint32_t, size_t>& scratch) {
  const uint32_t* const words = words_of(plan, at);
  const PlanEntry& entry = plan.entries[at];
  CommandText text;
  text.label = entry.name;
  text.op_label = entry.op_label;
  text.grid = format_text("%llu bytes%s", words[5] * 4ull, words[7] ? " a row" : "");
  for (size_t side = 0; side < 2; ++side) {
    const uint32_t* const range = words + 1 + 2 * side;
    text.bindings.push_back((side == 0 ? "r " : "rw ") +
                            binding_name(device_, range[0], entry.tensors[side], scratch) +
                            format_text("+%llu:%llu", range[1] * 4ull, words[5] * 4ull));
  }
  return text;
}

std::vector<CommandText> PlanText::commands(const Plan& plan) {
  std::map<uint32_t, size_t> scratch;
  std::vector<CommandText> all;
  for (size_t at = 0; at < plan.entries.size(); ++at) {
    const bool is_copy = words_of(plan, at)[0] == kCopy;
    all.push_back(is_copy ? copy(plan, at, scratch) : dispatch(plan, at, scratch));
  }
  return all;
}

std::string PlanText::digest(const Plan& plan) {
  std::string all = format_text("%u rows\n", plan.max_rows);
  for (CommandText& command : commands(plan)) {
    command.label.clear();
    command.op_label.clear();
    all += one_line(command) + "\n";
  }
  return short_digest(all);
}

std::string_view PlanText::wgsl(const Plan& plan, size_t command) const {
  const uint32_t* const words = words_of(plan, command);
  return words[0] == kCopy ? std::string_view() : std::string_view(device_.pipeline(words[1]).wgsl);
}

}  // namespace doppler::gpu
