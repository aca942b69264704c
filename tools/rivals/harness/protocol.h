// The protocol of a harness in C++ with comparison/process.py: a line comes in, with tabs between words; a line with
// one JSON object goes out. Each harness adds an Engine; serve() does the rest. harness/README.md has the lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rivals {

using Values = std::map<std::string, std::string>;
using Tokens = std::vector<int32_t>;
using Clock = std::chrono::steady_clock;

// A deleter of std::unique_ptr: the engine's own function frees its handles.
template <auto Free>
struct Freeing {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline std::string value_or(const Values& values, const std::string& key, const std::string& otherwise) {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : found->second;
}

inline uint32_t number_or(const Values& values, const std::string& key, uint32_t otherwise) {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : static_cast<uint32_t>(std::stoul(found->second));
}

struct Loaded {
  std::string version, device;
  uint32_t vocabulary = 0;
  Values settings;  // what the engine chose or was told, for the record
};

struct Stream {
  double ttft = 0;         // seconds from the request to the first token
  double decode = 0;       // seconds that `intervals` took
  uint32_t intervals = 0;  // between tokens
  Tokens tokens;
  std::string text;
};

struct Generated {
  double seconds = 0;  // of the whole request, by the harness's own clock
  double prefill = 0;  // until all prompts have a token
  std::vector<Stream> streams;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Throws std::runtime_error with a sentence, as generate() does.
  virtual Loaded load(const Values& values) = 0;
  // Greedy, exactly `count` tokens of each prompt, end tokens are passed over. Nothing is reused from earlier prompts.
  virtual Generated generate(const std::vector<Tokens>& prompts, uint32_t count) = 0;
};

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

inline std::string to_json(const Loaded& loaded, double seconds) {
  std::ostringstream out;
  out.precision(9);
  out << "{\"ok\":true,\"seconds\":" << seconds << ",\"version\":" << quoted(loaded.version)
      << ",\"device\":" << quoted(loaded.device) << ",\"vocabulary\":" << loaded.vocabulary
      << ",\"settings\":{";
  const char* comma = "";
  for (const auto& [key, value] : loaded.settings) {
    out << comma << quoted(key) << ':' << quoted(value);
    comma = ",";
  }
  out << "}}";
  return out.str();
}

inline std::string to_json(const Generated& generated) {
  std::ostringstream out;
  out.precision(9);
  out << "{\"ok\":true,\"seconds\":" << generated.seconds << ",\"prefill\":" << generated.prefill
      << ",\"streams\":[";
  const char* comma = "";
  for (const Stream& stream : generated.streams) {
    out << comma << "{\"ttft\":" << stream.ttft << ",\"decode\":" << stream.decode
        << ",\"intervals\":" << stream.intervals << ",\"text\":" << quoted(stream.text) << ",\"tokens\":[";
    for (size_t i = 0; i < stream.tokens.size(); ++i) out << (i ? "," : "") << stream.tokens[i];
    out << "]}";
    comma = ",";
  }
  out << "]}";
  return out.str();
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

inline std::string answer(Engine& engine, const std::vector<std::string>& words) {
  if (words[0] == "load") {
    Values values;
    for (size_t i = 1; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      if (equals == std::string::npos) throw std::runtime_error("\"" + words[i] + "\" has no \"=\".");
      values[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    const auto start = Clock::now();
    const Loaded loaded = engine.load(values);
    return to_json(loaded, seconds_since(start));
  }
  if (words[0] == "generate" && words.size() > 2) {
    std::vector<Tokens> prompts;
    for (size_t i = 2; i < words.size(); ++i) {
      Tokens& prompt = prompts.emplace_back();
      for (const std::string& id : split(words[i], ',')) prompt.push_back(std::stoi(id));
    }
    return to_json(engine.generate(prompts, static_cast<uint32_t>(std::stoul(words[1]))));
  }
  throw std::runtime_error("\"" + words[0] + "\" is not known; allowed are load, generate and quit.");
}

// Until `quit` or the end of the input.
inline int serve(Engine& engine) {
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    if (line.empty()) continue;
    std::string out;
    try {
      out = answer(engine, split(line, '\t'));
    } catch (const std::exception& error) {
      out = "{\"ok\":false,\"error\":" + quoted(error.what()) + "}";
    }
    std::cout << out << std::endl;
  }
  return 0;
}

}  // namespace rivals
