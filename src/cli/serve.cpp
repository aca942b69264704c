// doppler serve: models over HTTP. Flags and what they mean here; the server is src/server.
#include <algorithm>
#include <cstdio>

#include "base/folders.h"
#include "base/json.h"
#include "cli/common.h"
#include "cli/generate_flags.h"
#include "cli/model_facts.h"
#include "cli/sharing.h"
#include "cli/verbs.h"
#include "kernels/common/step_state.h"
#include "server/server.h"
#include "store/named_host_file.h"

namespace doppler::cli {
namespace {

constexpr uint32_t kServeUsualPort = 8080;
constexpr uint32_t kDefaultPlaces = 16;

struct ServeFlags {
  ModelFlags model;
  server::ServerOptions server;
  std::vector<std::string> models, keys, pinned;
  std::string key_file, log_format = "text";
  std::vector<std::string> shared, image_hosts;
  std::string share_at = "127.0.0.1";
  SharingOptions sharing;
  uint32_t port = kServeUsualPort;
  uint64_t body_bytes = server::HttpLimits{}.body_bytes;
  bool json = false, template_tools = false, no_warm_up = false;
};

void add_flags(Args& args, ServeFlags& flags) {
  server::ServerOptions& o = flags.server;
  flags.model.takes_devices = true;
  flags.model.load.sequences = kDefaultPlaces;
  args.text("host", 0, "ADDRESS", "address to listen at (default 127.0.0.1: only this machine)",
            &o.http.host);
  args.count("port", 'p', "PORT", "port (default 8080; 0: any free one)", &flags.port);
  args.flag("json", 0, "print one JSON object when it listens", &flags.json);
  args.group("Who may ask");
  args.texts("api-key", 0, "KEY", "a key that requests must have; may be repeated", &flags.keys);
  args.text("api-key-file", 0, "FILE", "a file of keys, one a line", &flags.key_file);
  args.flag("insecure", 0, "listen beyond this machine without a key", &o.gate.is_insecure);
  args.text("origin", 0, "ORIGIN",
            "web pages that may ask, such as https://example.org, or * (default: none)", &o.gate.origin);
  args.texts("allow-image-host", 0, "HOST",
             "fetch pictures that requests name at this host (default: none); may be repeated",
             &flags.image_hosts);
  args.group("Models");
  args.texts("model", 'm', "[NAME=]MODEL",
             "GGUF file, model folder or name in the store; may be repeated, the first is the default one "
             "and is loaded at "
             "once (default: the shipped model)",
             &flags.models);
  args.count("most-loaded", 0, "N",
             "models loaded at a time; the one unused for longest leaves (default: all)",
             &o.service.most_loaded);
  args.texts("pin", 0, "NAME", "a model that stays loaded; may be repeated", &flags.pinned);
  args.flag("lora-updates", 0, "clients may load adapters from this machine's files and unload them",
            &o.service.adapters_may_change);
  args.flag("any-name", 0, "answer requests for unknown models with the first one", &o.service.any_name);
  args.text("template", 0, "FILE", "Jinja chat template instead of the models' own",
            &flags.model.template_file);
  args.flag("template-tools", 0,
            "refuse tools that a model's template does not know (default: the conversation tells of them)",
            &flags.template_tools);
  args.group("Files and batches");
  args.text("files", 0, "FOLDER",
            "where clients' files and batches are kept (default: a folder that ends with the server)",
            &o.service.files_folder);
  args.bytes("files-size", 0, "SIZE", "of all files together (default 1G)", &o.service.files_bytes);
  args.group("Load");
  args.count("parallel", 0, "N", "requests of a model that are decoded together, 1 to 64 (default 16)",
             &flags.model.load.sequences);
  args.count("queue", 0, "N", "requests of a model that may wait; more get status 429 (default 256)",
             &o.service.most_waiting);
  args.count("cache-tokens", 0, "TOKENS",
             "of all requests' caches together (default: --ctx for each, or what fits the device)",
             &flags.model.load.pool_tokens);
  args.bytes("cache-host", 0, "SIZE", "host memory for prefixes that left the GPU's, such as 8G (default 0)",
             &flags.model.load.cache_host_bytes);
  args.count("chunk-tokens", 0, "N",
             "tokens of a chunk of a stream at most; 0, the default: 1 where they come slower than 50 a "
             "second, or else up to 16",
             &o.service.defaults.batch, {.least = 0, .most = openai::kMostChunkTokens});
  args.flag("no-warm-up", 0,
            "be ready before the kernels ran once: on a CPU the first requests wait for them",
            &flags.no_warm_up);
  args.count("connections", 0, "N", "connections at a time (default 1024)", &o.http.most_connections);
  args.bytes("body", 0, "SIZE", "the longest body of a request (default 32M)", &flags.body_bytes);
  args.count("head-timeout", 0, "SECONDS", "for a request's head (default 10)",
             &o.http.timeouts.head_seconds);
  args.count("body-timeout", 0, "SECONDS", "for its body (default 60)", &o.http.timeouts.body_seconds);
  args.count("write-timeout", 0, "SECONDS", "until a client that takes no data is dropped (default 30)",
             &o.http.timeouts.write_seconds);
  args.count("idle-timeout", 0, "SECONDS", "for the next request (default 75)",
             &o.http.timeouts.idle_seconds);
  args.count("drain", 0, "SECONDS", "for answers under way when the server ends (default 30)",
             &o.http.drain_seconds);
  args.text("log-format", 0, "text|json",
            "of the line that each request leaves on standard output (default text)", &flags.log_format);
  args.group("Models for other machines (doppler pull)");
  args.texts("share", 0, "NAME", "offer this stored model piece by piece; may be repeated (default: none)",
             &flags.shared);
  args.text("share-at", 0, "ADDRESS", "where, HOST:PORT (default 127.0.0.1:8019: this machine alone)",
            &flags.share_at);
  args.bytes("share-limit", 0, "BYTES", "upload at most so much a second, such as 2M (default: no limit)",
             &flags.sharing.listen.upload_bytes_per_second);
  args.flag("hidden", 0, "do not announce the shared models' machine on its network",
            &flags.sharing.is_hidden);
  args.group("If a request does not say");
  add_sampling_flags(args, o.service.defaults);
  add_pan_and_scan_flag(args, flags.model.load);
  args.group("Device");
  add_load_flags(args, flags.model);
}

Result<void> read_keys(ServeFlags& flags) {
  flags.server.gate.api_keys = flags.keys;
  if (!flags.key_file.empty()) {
    DP_TRY(const std::string text, read_text_file(flags.key_file));
    for (const std::string& line : split(text, '\n')) {
      if (const std::string_view key = trim(line); !key.empty()) flags.server.gate.api_keys.emplace_back(key);
    }
  }
  const bool is_asked = !flags.keys.empty() || !flags.key_file.empty();
  for (const std::string& key : flags.server.gate.api_keys) {
    if (trim(key).empty()) return fail(ErrorKind::kInvalidInput, "An API key is empty.");
  }
  if (is_asked && flags.server.gate.api_keys.empty()) {
    return fail(ErrorKind::kInvalidInput, "%s has no API key.", flags.key_file.c_str());
  }
  return {};
}

constexpr uint64_t kMostPictureBytes = 20 << 20;
constexpr uint32_t kMostFetchSeconds = 15;

server::FetchPicture fetcher_for(const ServeFlags& flags) {
  if (flags.image_hosts.empty()) return {};
  return [allowed = store::NamedHosts{flags.image_hosts, kMostPictureBytes, kMostFetchSeconds}](
             const std::string& url) { return store::fetch_from_named_host(url, allowed); };
}

Result<void> check(ServeFlags& flags) {
  server::ServerOptions& o = flags.server;
  const uint32_t places = flags.model.load.sequences;
  if (places < 1 || places > kernels::kMaxSequences) {
    return fail(ErrorKind::kInvalidInput, "Flag --parallel was given %u; allowed is 1 to %u.", places,
                kernels::kMaxSequences);
  }
  if (flags.port > UINT16_MAX) {
    return fail(ErrorKind::kInvalidInput, "Flag --port was given %u; allowed is 0 to 65535.", flags.port);
  }
  if (flags.log_format != "text" && flags.log_format != "json") {
    return fail(ErrorKind::kInvalidInput, "Flag --log-format was given \"%s\"; allowed are text and json.",
                printable(flags.log_format).c_str());
  }
  for (const uint32_t seconds :
       {o.http.timeouts.head_seconds, o.http.timeouts.body_seconds, o.http.timeouts.write_seconds,
        o.http.timeouts.idle_seconds, o.http.most_connections}) {
    if (seconds == 0) return fail(ErrorKind::kInvalidInput, "Timeouts and --connections take 1 or more.");
  }
  if (o.gate.origin.find_first_of("\r\n") != std::string::npos) {
    return fail(ErrorKind::kInvalidInput, "Flag --origin takes one line.");
  }
  if (o.service.adapters_may_change && flags.model.load.adapter_slots == 0) {
    constexpr uint32_t kUsualSlots = 8;
    flags.model.load.adapter_slots = kUsualSlots;
  }
  for (const std::string& host : flags.image_hosts) {
    if (!host.empty() && host.find_first_of("/@* ") == host.npos) continue;
    return fail(ErrorKind::kInvalidInput,
                "Flag --allow-image-host was given \"%s\"; allowed is a host such as images.example.org or "
                "example.org:8443.",
                printable(host).c_str());
  }
  DP_CHECK(check_options(o.service.defaults));
  DP_CHECK(read_keys(flags));
  DP_CHECK(flags.sharing.set_address(flags.share_at));
  o.http.port = static_cast<uint16_t>(flags.port);
  o.http.limits.body_bytes = flags.body_bytes;
  o.gate.is_loopback = server::is_loopback_host(o.http.host);
  o.service.places = places;
  o.logs_json = flags.log_format == "json";
  o.fetch_picture = fetcher_for(flags);
  return {};
}

std::vector<AdapterFile> named_adapters(const LoadOptions& load) {
  std::vector<AdapterFile> out;
  std::ranges::copy_if(load.adapters, std::back_inserter(out),
                       [](const AdapterFile& file) { return !file.name.empty(); });
  return out;
}

// "NAME=MODEL" or only MODEL, whose name is then that of its file or folder.
Result<std::vector<server::ModelSource>> sources_of(const ServeFlags& flags) {
  std::vector<std::string> given = flags.models;
  if (given.empty()) given.emplace_back();
  std::vector<server::ModelSource> out;
  for (const std::string& text : given) {
    if (text.empty() && !flags.models.empty())
      return fail(ErrorKind::kInvalidInput,
                  "Flag --model was given \"\"; allowed is any text that is not empty.");
    const size_t equals = is_there(text) ? std::string::npos : text.find('=');
    ModelFlags model = flags.model;
    if (!out.empty()) model.load.adapters.clear();  // they are of one model
    model.model = equals == std::string::npos ? text : text.substr(equals + 1);
    if (equals != std::string::npos && model.model.empty())
      return fail(ErrorKind::kInvalidInput,
                  "Flag --model was given \"%s\"; a model is missing after the sign =.",
                  printable(text).c_str());
    DP_TRY(const std::string path, named_model_path(model.model));
    const bool is_path = model.model.empty() || is_there(model.model);
    const std::string file = normal_path(path);
    const std::string stem = file_stem(file_name(file).empty() ? parent_path(file) : file);
    std::string name = equals != std::string::npos ? text.substr(0, equals) : is_path ? stem : model.model;
    if (name.empty())
      return fail(ErrorKind::kInvalidInput, "Flag --model was given \"%s\"; a name is missing.",
                  text.c_str());
    for (const server::ModelSource& other : out) {
      if (other.name == name) {
        return fail(ErrorKind::kInvalidInput, "Two models are named \"%s\"; say --model NAME=MODEL.",
                    name.c_str());
      }
    }
    out.push_back(
        {.name = name,
         .path = path,
         .load = [model](const ProgressCallback& progress) { return load_quietly(model, progress); },
         .facts = [model, name] { return model_facts(model, name); },
         .is_pinned = false,
         .adapters = named_adapters(model.load),
         .unknown_tools = flags.template_tools ? server::UnknownTools::kRefused : server::UnknownTools::kTold,
         .warms_up = !flags.no_warm_up,
         .places = flags.model.load.sequences});
  }
  for (const std::string& name : flags.pinned) {
    bool found = false;
    for (server::ModelSource& source : out) {
      if (source.name == name) found = source.is_pinned = true;
    }
    if (!found)
      return fail(ErrorKind::kInvalidInput, "Flag --pin names \"%s\", which no --model is.",
                  printable(name).c_str());
  }
  return out;
}

// Null: no model is shared.
Result<std::unique_ptr<Sharing>> share_models(ServeFlags& flags, std::vector<SharedModel>& shared) {
  if (flags.shared.empty()) return std::unique_ptr<Sharing>();
  DP_TRY(std::unique_ptr<Sharing> sharing, Sharing::open(flags.sharing));
  DP_TRY(shared, share_stored(sharing->share(), flags.shared));
  const swarm::Share* share = &sharing->share();
  flags.server.service.counters = {
      {"doppler:shared_bytes_total", "Bytes of shared models that other machines asked for.",
       [share] { return share->bytes_sent(); }},
      {"doppler:shared_requests_total", "Requests of other machines about shared models.",
       [share] { return share->requests(); }}};
  return sharing;
}

}  // namespace

int serve_verb(std::span<const std::string> arguments) {
  ServeFlags flags;
  Args args("doppler serve [flags]",
            "Serves models over HTTP for clients of OpenAI's API, Anthropic's and Ollama's. Ctrl-C ends it "
            "after the answers under way.");
  add_flags(args, flags);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  flags.server.service.has_seed = std::ranges::find(args.given(), "seed") != args.given().end();
  if (auto checked = check(flags); !checked) return exit_usage(checked.error());
  auto sources = sources_of(flags);
  if (!sources) return exit_usage(sources.error());
  const std::string name = sources->front().name;
  std::vector<SharedModel> shared;
  const auto sharing = share_models(flags, shared);
  if (!sharing) return exit_failed(sharing.error());
  auto server = server::Server::open(flags.server, std::move(*sources));
  if (!server)
    return server.error().kind() == ErrorKind::kInvalidInput ? exit_usage(server.error())
                                                             : exit_failed(server.error());
  if (flags.json) {
    Json out = {{"url", (*server)->url()}, {"port", (*server)->port()}};
    for (const SharedModel& model : shared) {
      out["shared"].push_back(
          {{"name", model.name}, {"link", model.link}, {"address", (*sharing)->address()}});
    }
    std::printf("%s\n", to_text(out).c_str());
  } else {
    std::printf("%s is served at %s (Ctrl-C ends it)\n", name.c_str(), (*server)->url().c_str());
    for (const SharedModel& model : shared) {
      std::printf("%s is shared: doppler pull %s --peer %s\n", model.name.c_str(), model.link.c_str(),
                  (*sharing)->address().c_str());
    }
  }
  std::fflush(stdout);
  if (auto served = (*server)->run(); !served) return exit_failed(served.error());
  return 0;
}

}  // namespace doppler::cli
