#include "store/journal.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/bytes.h"
#include "base/json.h"
#include "base/process.h"

namespace doppler::store {
namespace {

static_assert(std::endian::native == std::endian::little, "The table is written as it lies in memory.");

constexpr int64_t kJournalVersion = 1;

constexpr OpenMode kJournalMode{.writes = true, .makes = true, .follows_links = false};

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
std::optional<Notes> read_notes(const File& file) {
  std::string head(kJournalHead, '\0');
  const auto head_bytes = file.read_at({reinterpret_cast<uint8_t*>(head.data()), head.size()}, 0);
  if (!head_bytes || *head_bytes != head.size()) return {};
  auto parsed = parse_json(head, "journal", 2);
  if (!parsed) return {};
  const auto version = get_integer(*parsed, "version"), bytes = get_integer(*parsed, "bytes");
  const auto piece = get_integer(*parsed, "piece_bytes");
  if (!piece || (*piece && !is_piece_size(**piece))) return {};
  if (!version || *version != kJournalVersion || !bytes || !*bytes || **bytes <= 0) return {};
  const auto total = static_cast<uint64_t>(**bytes);
  if (total > kMostFileBytes) return {};
  const uint64_t piece_bytes = *piece ? static_cast<uint64_t>(**piece) : kPieceBytes;
  Notes notes{.head = std::move(*parsed),
              .piece_bytes = piece_bytes,
              .done = std::vector<uint64_t>(piece_count(total, piece_bytes))};
  const std::span<uint8_t> table(reinterpret_cast<uint8_t*>(notes.done.data()),
                                 notes.done.size() * sizeof(uint64_t));
  const auto size = file.size();
  if (!size || *size != kJournalHead + table.size()) return {};
  const auto table_bytes = file.read_at(table, kJournalHead);
  if (!table_bytes || *table_bytes != table.size()) return {};
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

Result<Journal> Journal::open(const std::string& path, const JournalKey& key) {
  DP_TRY(File file, File::open(path, kJournalMode));
  Journal journal(std::move(file), key);
  if (auto notes = read_notes(journal.file_); notes && is_same_file(notes->head, key)) {
    if (notes->piece_bytes > key.piece_bytes) {
      DP_CHECK(journal.cut(notes->done, notes->piece_bytes));
    } else {
      journal.done_ = std::move(notes->done);
      journal.key_.piece_bytes = notes->piece_bytes;
    }
    return journal;
  }
  const auto size = journal.file_.size();
  journal.changed_ = size && *size > 0;
  DP_CHECK(journal.reset());
  return journal;
}

Result<void> Journal::reset() {
  return write(std::vector<uint64_t>(piece_count(key_.bytes, key_.piece_bytes)));
}

// The part of a larger piece that is done is its beginning, so it fills the first of the smaller pieces.
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
  const Json head = {{"version", kJournalVersion},
                     {"bytes", key_.bytes},
                     {"piece_bytes", key_.piece_bytes},
                     {"validator", key_.validator},
                     {"sha256", key_.sha256 ? sha256_hex(*key_.sha256) : ""},
                     {"boot", boot_id()}};
  std::string text = to_text(head);
  text.resize(kJournalHead - 1, ' ');
  text += '\n';
  // The head last: a half written journal is no journal.
  const std::span<const uint8_t> table = bytes_of(done_);
  DP_CHECK(file_.resize(0));
  DP_CHECK(file_.resize(kJournalHead + table.size()));
  DP_CHECK(file_.write_at(table, kJournalHead));
  return file_.write_at(text_bytes(text), 0);
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
  return file_.write_at(bytes_of(done), kJournalHead + piece * sizeof(uint64_t));
}

std::optional<uint64_t> journalled_bytes(const std::string& path) {
  const auto file = File::open(path, {.follows_links = false});
  const auto notes = file ? read_notes(*file) : std::nullopt;
  if (!notes) return {};
  return std::accumulate(notes->done.begin(), notes->done.end(), uint64_t{0});
}

}  // namespace doppler::store
