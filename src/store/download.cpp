#include "store/download.h"

#include <algorithm>
#include <chrono>

#include "base/folders.h"
#include "base/text.h"
#include "store/following_hash.h"
#include "store/journal.h"
#include "store/piece_transfer.h"
#include "store/url.h"

namespace doppler::store {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t kSpareDiskBytes = 64ull << 20;  // left free for the rest of the system
constexpr uint32_t kPollMs = 100;                  // how soon a stop or a pause's end is noticed

class Download {
 public:
  Download(Web& web, const DownloadJob& job, const DownloadOptions& options, bool is_retry)
      : web_(web),
        job_(job),
        options_(options),
        is_retry_(is_retry),
        part_path_(job.path + ".part"),
        journal_path_(job.path + ".journal") {}

  // Probes, downloads, hashes.
  Result<Downloaded> run();
  // Removes everything after a wrong hash, since no byte can be trusted.
  Result<void> discard() {
    DP_CHECK(remove_tree(journal_path_));
    return remove_tree(part_path_);
  }
  bool has_wrong_hash() const { return has_wrong_hash_; }

 private:
  std::string shown() const { return job_.url.empty() ? file_name(job_.path) : shown_url(job_.url); }
  Result<void> find_source();
  Result<void> probe_source();
  Result<void> check_size() const;
  Result<Downloaded> run_pieces(File& file);
  Result<Downloaded> run_whole(File& file);
  Result<void> transfer_pieces(File& file, Journal& journal, FollowingHash& hash);
  Result<void> start_pieces(File& file, Journal& journal);
  // Counts a failure and sets when to go on. Error: given up.
  Result<void> handle(const PieceTransfer& transfer, const Failure& failure);
  void notice(const std::string& line) const {
    if (options_.on_notice) options_.on_notice(line);
  }
  void show(uint64_t done) const {
    if (options_.on_progress) options_.on_progress(done, remote_.bytes.value_or(0));
  }

  Web& web_;
  const DownloadJob& job_;
  const DownloadOptions& options_;
  bool is_retry_;  // after a wrong hash: peers are not asked again
  std::string part_path_, journal_path_;
  Remote remote_;
  bool has_source_ = false;  // the address answers
  uint64_t received_ = 0;
  std::vector<std::unique_ptr<PieceTransfer>> active_;
  Retries retries_{web_.options().retries};
  uint32_t connections_ = std::max(1u, options_.connections);
  Clock::time_point not_before_ = Clock::now();
  bool must_probe_ = false;  // the address after redirects has run out
  bool has_wrong_hash_ = false;
};

Result<void> Download::check_size() const {
  const auto text = [](uint64_t bytes) {
    return format_text("%llu", static_cast<unsigned long long>(bytes));
  };
  if (remote_.bytes && *remote_.bytes > kMostFileBytes) {
    return fail(ErrorKind::kIo, "%s says it has %s bytes, more than any model.", shown().c_str(),
                text(*remote_.bytes).c_str());
  }
  if (job_.bytes && remote_.bytes && *job_.bytes != *remote_.bytes) {
    return fail(ErrorKind::kIo, "%s has %s bytes, but it should have %s.", shown().c_str(),
                text(*remote_.bytes).c_str(), text(*job_.bytes).c_str());
  }
  if (job_.sha256 && remote_.sha256 && *job_.sha256 != *remote_.sha256) {
    return fail(ErrorKind::kIo, "%s has the SHA-256 %s by its server, but it should have %s.",
                shown().c_str(), sha256_hex(*remote_.sha256).c_str(), sha256_hex(*job_.sha256).c_str());
  }
  return {};
}

Result<void> Download::probe_source() {
  DP_TRY(remote_, web_.probe(job_.url));
  DP_CHECK(check_size());
  has_source_ = true;
  return {};
}

Result<void> Download::find_source() {
  const bool can_do_without = options_.peers && !is_retry_ && job_.bytes && job_.sha256;
  if (!job_.url.empty()) {
    auto probed = probe_source();
    if (probed || !can_do_without || probed.error().kind() == ErrorKind::kCancelled) return probed;
    notice(probed.error().sentence() + " Only peers are asked.");
  }
  remote_ = {.url = {}, .bytes = job_.bytes, .takes_ranges = true, .validator = {}, .sha256 = job_.sha256};
  return check_size();
}

Result<Downloaded> Download::run() {
  DP_CHECK(find_source());
  DP_TRY(File file, File::open(part_path_, {.writes = true, .makes = true, .follows_links = false}));
  const std::optional<Sha256> expected = job_.sha256 ? job_.sha256 : remote_.sha256;
  auto done = remote_.takes_ranges ? run_pieces(file) : run_whole(file);
  if (!done) return done;
  DP_CHECK(file.flush());
  if (expected && done->sha256 != *expected) {
    has_wrong_hash_ = true;
    return fail(ErrorKind::kInvalidInput, "The SHA-256 of %s is %s, but it should be %s.", shown().c_str(),
                sha256_hex(done->sha256).c_str(), sha256_hex(*expected).c_str());
  }
  done->is_verified = expected.has_value();
  done->received_bytes = received_;
  return done;
}

Result<Downloaded> Download::run_pieces(File& file) {
  const std::optional<Sha256> expected = job_.sha256 ? job_.sha256 : remote_.sha256;
  PieceSource* const peers = expected && !is_retry_ ? options_.peers : nullptr;
  const JournalKey key{.bytes = *remote_.bytes,
                       .validator = remote_.validator,
                       .sha256 = expected,
                       .piece_bytes = peers ? kLeastPieceBytes : kPieceBytes};
  DP_TRY(Journal journal, Journal::open(journal_path_, key));
  DP_TRY(const uint64_t there, file.size());
  if (journal.changed()) {
    notice(format_text(
        "%s cannot be continued from what an earlier run left (it changed, or nothing proves that "
        "it did not); begun anew.",
        shown().c_str()));
  } else if (journal.total_done() > 0 && there != key.bytes) {
    DP_CHECK(journal.reset());  // the notes of a file that somebody removed or changed
  }
  const uint64_t resumed = journal.total_done();
  const std::string folder = parent_path(part_path_);
  DP_CHECK(check_space(folder, key.bytes - resumed, shown()));
  DP_CHECK(file.resize(key.bytes));
  FollowingHash hash(file);
  PieceSource::Filled filled;
  if (peers && resumed < key.bytes) {
    const auto advance = [&] {
      // An earlier run may have left wrong pieces, which are found one by one. So a resumed file is hashed when it is
      // whole.
      if (resumed == 0) hash.advance(journal.contiguous());
      show(journal.total_done());
    };
    std::optional<Request> source;
    if (has_source_) {
      source = Request{.url = remote_.url,
                       .range = {},
                       .if_range = remote_.validator,
                       .bearer = web_.bearer_for(remote_.url)};
    }
    DP_TRY(filled, peers->fill({.file = file,
                                .journal = journal,
                                .bytes = key.bytes,
                                .sha256 = *expected,
                                .source = std::move(source),
                                .on_progress = advance}));
    received_ += filled.source_bytes;
  }
  if (const uint64_t there_now = journal.total_done(); !has_source_ && there_now < key.bytes) {
    return fail(ErrorKind::kIo, "The peers gave %s, and %s are missing; the same command goes on.",
                format_bytes(filled.peer_bytes).c_str(), format_bytes(key.bytes - there_now).c_str());
  }
  auto transferred = transfer_pieces(file, journal, hash);
  if (has_source_) web_.client().stop_all();
  active_.clear();
  DP_CHECK(transferred);
  DP_TRY(const Sha256 sha256, hash.finish(key.bytes));
  return Downloaded{
      .bytes = key.bytes, .sha256 = sha256, .resumed_bytes = resumed, .peer_bytes = filled.peer_bytes};
}

Result<void> Download::transfer_pieces(File& file, Journal& journal, FollowingHash& hash) {
  for (;;) {
    hash.advance(journal.contiguous());
    show(journal.total_done());
    DP_CHECK(check_not_stopped(web_.options().stop));
    if (Clock::now() >= not_before_) DP_CHECK(start_pieces(file, journal));
    if (active_.empty() && journal.total_done() == *remote_.bytes) return {};
    DP_TRY(std::vector<Ended> ended, web_.client().wait(kPollMs));
    for (Ended& end : ended) {
      const auto it = std::ranges::find_if(active_, [&](const auto& t) { return t.get() == end.receiver; });
      const std::unique_ptr<PieceTransfer> transfer = std::move(*it);
      active_.erase(it);
      if (const auto failure = transfer->outcome(std::move(end.failure)))
        DP_CHECK(handle(*transfer, *failure));
    }
  }
}

Result<void> Download::start_pieces(File& file, Journal& journal) {
  if (must_probe_) {
    if (!active_.empty()) return {};  // other transfers still use the client
    DP_TRY(Remote again, web_.probe(job_.url));
    if (again.bytes != remote_.bytes || again.validator != remote_.validator) {
      return fail(ErrorKind::kIo, "%s changed while it was downloaded; the same command begins anew.",
                  shown().c_str());
    }
    remote_.url = again.url;
    must_probe_ = false;
  }
  for (size_t piece = 0; piece < journal.pieces() && active_.size() < connections_; ++piece) {
    if (journal.done(piece) == journal.size(piece)) continue;
    if (std::ranges::any_of(active_, [&](const auto& transfer) { return transfer->piece() == piece; }))
      continue;
    auto transfer = std::make_unique<PieceTransfer>(PieceTransfer::Target{.file = file,
                                                                          .journal = &journal,
                                                                          .piece = piece,
                                                                          .remote = remote_,
                                                                          .received = received_,
                                                                          .retries = retries_});
    const Request request = transfer->request(web_.bearer_for(remote_.url));
    active_.push_back(std::move(transfer));
    DP_CHECK(web_.client().start(request, *active_.back()));
  }
  return {};
}

Result<void> Download::handle(const PieceTransfer& transfer, const Failure& failure) {
  Failure counted = failure;
  const int status = transfer.status();
  // An address that a redirect gave is often signed for an hour; the original address gives a new one.
  if ((status == 401 || status == 403 || status == 404 || status == 410) && remote_.url != job_.url) {
    counted.may_pass = true;
    must_probe_ = true;
  }
  if (status == 429 || status == 503) connections_ = std::max(1u, connections_ / 2);
  if (counted.may_pass && Clock::now() < not_before_) return {};  // several connections, one failure
  DP_TRY(const uint64_t wait, retries_.next(counted));
  not_before_ = Clock::now() + milliseconds(wait);
  return {};
}

// A server without ranges: from the beginning each time.
Result<Downloaded> Download::run_whole(File& file) {
  const std::string folder = parent_path(part_path_);
  DP_CHECK(remove_tree(journal_path_));
  DP_CHECK(check_space(folder, remote_.bytes.value_or(0), shown()));
  for (;;) {
    DP_CHECK(file.resize(0));
    FollowingHash hash(file);
    PieceTransfer transfer({.file = file,
                            .journal = nullptr,
                            .piece = 0,
                            .remote = remote_,
                            .received = received_,
                            .retries = retries_});
    DP_CHECK(web_.client().start(transfer.request(web_.bearer_for(remote_.url)), transfer));
    std::vector<Ended> ended;
    while (ended.empty()) {
      auto stopped = check_not_stopped(web_.options().stop);
      auto some = stopped ? web_.client().wait(kPollMs) : forward(std::move(stopped).error());
      if (!some) {
        web_.client().stop_all();
        return forward(std::move(some).error());
      }
      ended = std::move(*some);
      hash.advance(transfer.position());
      show(transfer.position());
    }
    const auto failure = transfer.outcome(std::move(ended[0].failure));
    if (!failure) {
      DP_TRY(const Sha256 sha256, hash.finish(transfer.position()));
      return Downloaded{.bytes = transfer.position(), .sha256 = sha256};
    }
    DP_TRY(const uint64_t wait, retries_.next(*failure));
    DP_CHECK(pause(wait, web_.options().stop));
  }
}

}  // namespace

Result<void> check_space(const std::string& folder, uint64_t bytes, const std::string& what) {
  DP_TRY(const uint64_t free, free_bytes(folder));
  if (bytes <= free && free - bytes >= kSpareDiskBytes) return {};
  return fail(ErrorKind::kIo, "%s needs %s more on the disk of %s, which has %s free (%s of it stay free).",
              what.c_str(), format_bytes(bytes).c_str(), folder.c_str(), format_bytes(free).c_str(),
              format_bytes(kSpareDiskBytes).c_str());
}

Result<Downloaded> download(Web& web, const DownloadJob& job, const DownloadOptions& options) {
  for (const bool is_last : {false, true}) {
    Download download(web, job, options, is_last);
    auto done = download.run();
    if (done || !download.has_wrong_hash()) return done;
    DP_CHECK(download.discard());
    if (is_last || job.url.empty()) return done;
    if (options.on_notice) options.on_notice(done.error().sentence() + " Fetching it once more.");
  }
  return fail(ErrorKind::kInternal, "A download ended without a result.");
}

}  // namespace doppler::store
