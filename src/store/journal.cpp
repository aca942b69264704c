#include "store/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/json.h"
#include "store/files.h"

namespace doppler::store {
namespace {

static_assert(std::endian::native == std::endian::little, "The table is written as it lies in memory.");

constexpr int64_t kVersion = 1;

std::string boot_id() {
  return std::string(trim(read_small_file("/proc/sys/kernel/random/boot_id").value_or("")));
}

struct Notes {
  Json head;
  uint64_t piece_bytes = kPieceBytes;
  std::vector<uint64_t> done;
};

uint64_t piece_count(uint64_t bytes, uint64_t piece_bytes) { return (bytes + piece_bytes - 1) / piece_bytes; }

bool is_piece_size(int64_t bytes) {
  return bytes >= static_cast<int64_t>(kLeastPieceBytes) && bytes <= static_cast<int64_t>(kPieceBytes) &&
         std::has_single_bit(static_cast<uint64_t>(bytes));
}

// The content of a journal, if it is whole and sound.
std::optional<Notes> read_notes(int file) {
  std::string head(kJournalHead, '\0');
  if (::pread(file, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return {};
  auto parsed = parse_json(head, "journal", 2);
  if (!parsed) return {};
  const auto version = get_integer(*parsed, "version"), bytes = get_integer(*parsed, "bytes");
  const auto piece = get_integer(*parsed, "piece_bytes");
  if (!piece || (*piece && !is_piece_size(**piece))) return {};
  if (!version || *version != kVersion || !bytes || !*bytes || **bytes <= 0) return {};
  const auto total = static_cast<uint64_t>(**bytes);
  if (total > kMostFileBytes) return {};
  const uint64_t piece_bytes = *piece ? static_cast<uint64_t>(**piece) : kPieceBytes;
  Notes notes{.head = std::move(*parsed),
              .piece_bytes = piece_bytes,
              .done = std::vector<uint64_t>(piece_count(total, piece_bytes))};
  const size_t table = notes.done.size() * sizeof(uint64_t);
  struct stat status{};
  if (::fstat(file, &status) != 0 || static_cast<uint64_t>(status.st_size) != kJournalHead + table) return {};
  if (::pread(file, notes.done.data(), table, kJournalHead) != static_cast<ssize_t>(table)) return {};
  for (size_t i = 0; i < notes.done.size(); ++i) {
    if (notes.done[i] > std::min(piece_bytes, total - i * piece_bytes)) return {};
  }
  return notes;
}

bool is_text(const Json& head, const char* key, const std::string& expected) {
  const auto value = get_string(head, key);
  return value && *value && **value == expected;
}

bool is_same_file(const Json& head, const JournalKey& key) {
  const auto bytes = get_integer(head, "bytes");
  if (!bytes || !*bytes || static_cast<uint64_t>(**bytes) != key.bytes) return false;
  if (key.sha256) return is_text(head, "sha256", sha256_hex(*key.sha256));
  return !key.validator.empty() && is_text(head, "validator", key.validator) &&
         is_text(head, "boot", boot_id());
}

}  // namespace

Journal::Journal(Journal&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      key_(std::move(other.key_)),
      done_(std::move(other.done_)),
      changed_(other.changed_) {}

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(file_, other.file_);
  path_ = std::move(other.path_);
  key_ = std::move(other.key_);
  done_ = std::move(other.done_);
  changed_ = other.changed_;
  return *this;
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

Result<Journal> Journal::open(const std::string& path, const JournalKey& key) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return fail_errno("open", path);
  Journal journal(file, path, key);
  if (auto notes = read_notes(file); notes && is_same_file(notes->head, key)) {
    if (notes->piece_bytes > key.piece_bytes) {
      DP_CHECK(journal.cut(notes->done, notes->piece_bytes));
    } else {
      journal.done_ = std::move(notes->done);
      journal.key_.piece_bytes = notes->piece_bytes;
    }
    return journal;
  }
  struct stat status{};
  journal.changed_ = ::fstat(file, &status) == 0 && status.st_size > 0;
  DP_CHECK(journal.reset());
  return journal;
}

Result<void> Journal::reset() {
  return write(std::vector<uint64_t>(piece_count(key_.bytes, key_.piece_bytes)));
}

// What was done of a larger piece is the beginning of it.
Result<void> Journal::cut(const std::vector<uint64_t>& done, uint64_t piece_bytes) {
  std::vector<uint64_t> smaller(piece_count(key_.bytes, key_.piece_bytes));
  for (size_t i = 0; i < smaller.size(); ++i) {
    const uint64_t at = i * key_.piece_bytes, of_larger = done[at / piece_bytes], before = at % piece_bytes;
    smaller[i] = of_larger > before ? std::min(of_larger - before, size(i)) : 0;
  }
  return write(std::move(smaller));
}

Result<void> Journal::write(std::vector<uint64_t> done) {
  done_ = std::move(done);
  const Json head = {{"version", kVersion},
                     {"bytes", key_.bytes},
                     {"piece_bytes", key_.piece_bytes},
                     {"validator", key_.validator},
                     {"sha256", key_.sha256 ? sha256_hex(*key_.sha256) : ""},
                     {"boot", boot_id()}};
  std::string text = to_text(head);
  text.resize(kJournalHead - 1, ' ');
  text += '\n';
  // The head last: a half written journal is no journal.
  const uint64_t table = done_.size() * sizeof(uint64_t);
  if (::ftruncate(file_, 0) != 0 || ::ftruncate(file_, static_cast<off_t>(kJournalHead + table)) != 0 ||
      ::pwrite(file_, done_.data(), table, kJournalHead) != static_cast<ssize_t>(table) ||
      ::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return fail_errno("write", path_);
  }
  return {};
}

uint64_t Journal::size(size_t piece) const { return std::min(key_.piece_bytes, key_.bytes - begin(piece)); }

uint64_t Journal::total_done() const { return std::accumulate(done_.begin(), done_.end(), uint64_t{0}); }

uint64_t Journal::contiguous() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < done_.size(); ++i) {
    bytes += done_[i];
    if (done_[i] < size(i)) break;
  }
  return bytes;
}

Result<void> Journal::note(size_t piece, uint64_t done) {
  done_[piece] = done;
  const auto place = static_cast<off_t>(kJournalHead + piece * sizeof(uint64_t));
  if (::pwrite(file_, &done, sizeof(done), place) != static_cast<ssize_t>(sizeof(done))) {
    return fail_errno("write", path_);
  }
  return {};
}

std::optional<uint64_t> journalled_bytes(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return {};
  const auto notes = read_notes(file);
  ::close(file);
  if (!notes) return {};
  return std::accumulate(notes->done.begin(), notes->done.end(), uint64_t{0});
}

}  // namespace doppler::store
