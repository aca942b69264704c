#include "swarm/share.h"

#include <random>

namespace doppler::swarm {

using store::AnswerHead;
using store::Reply;

namespace {

AnswerHead fields_of(int status) {
  AnswerHead fields(status);
  fields.set("X-Content-Type-Options", "nosniff");
  // Pages must not find out what their reader's machine shares.
  fields.set("Cross-Origin-Resource-Policy", "same-origin");
  fields.set("Cache-Control", "no-store");
  return fields;
}

// An unknown key, a wrong path and a missing piece get the same answer.
Reply not_here() { return text_reply(fields_of(404), "This is not shared here.\n"); }

Reply message(const char* type, std::string text) {
  AnswerHead fields = fields_of(200);
  fields.set("Content-Type", type);
  return {.fields = std::move(fields), .text = std::move(text)};
}

}  // namespace

SharedFile::SharedFile(store::File file, PieceTree tree)
    : file_(std::move(file)),
      bytes_(tree.bytes()),
      root_(tree.root()),
      tree_(std::move(tree)),
      pieces_(piece_count(bytes_), true) {}

SharedFile::SharedFile(store::File file, uint64_t bytes, const Sha256& root)
    : file_(std::move(file)), bytes_(bytes), root_(root), pieces_(piece_count(bytes)) {}

Offer SharedFile::offer() const {
  const std::lock_guard lock(mutex_);
  return {.bytes = bytes_, .root = root_, .pieces = pieces_, .coming = {coming_.begin(), coming_.end()}};
}

std::optional<std::string> SharedFile::proof(uint64_t run) const {
  const std::lock_guard lock(mutex_);
  if (tree_) return run < run_count(bytes_) ? std::optional(tree_->proof(run)) : std::nullopt;
  const auto found = proofs_.find(run);
  return found == proofs_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<store::FilePart> SharedFile::part(const store::ByteRange& range) const {
  const std::lock_guard lock(mutex_);
  if (range.last >= bytes_) return {};
  for (uint64_t piece = range.first / kPieceBytes; piece <= range.last / kPieceBytes; ++piece) {
    if (!pieces_.has(piece)) return {};
  }
  auto copy = file_.duplicate();
  if (!copy) return {};
  return store::FilePart{.file = std::move(*copy), .first = range.first, .count = range.count()};
}

void SharedFile::set_coming(uint64_t piece, bool is_coming) {
  const std::lock_guard lock(mutex_);
  if (!is_coming) {
    coming_.erase(piece);
  } else if (coming_.size() < kMostComing) {
    coming_.insert(piece);
  }
}

void SharedFile::add_piece(uint64_t piece) {
  const std::lock_guard lock(mutex_);
  pieces_.add(piece);
}

void SharedFile::add_proof(uint64_t run, std::string message) {
  const std::lock_guard lock(mutex_);
  proofs_[run] = std::move(message);
}

Share::Share() : number_(std::mt19937_64(std::random_device()())() >> 1) {}

void Share::add_file(const Sha256& sha256, std::shared_ptr<SharedFile> file) {
  const std::lock_guard lock(mutex_);
  files_[sha256_hex(key_of_file(sha256))] = std::move(file);
}

void Share::remove_file(const Sha256& sha256) {
  const std::lock_guard lock(mutex_);
  files_.erase(sha256_hex(key_of_file(sha256)));
}

void Share::add_card(const Card& card) {
  std::string text = card_text(card);
  const std::string key = sha256_hex(key_of_model(sha256(text_bytes(text))));
  const std::lock_guard lock(mutex_);
  cards_[key] = std::move(text);
}

std::shared_ptr<SharedFile> Share::find(const Sha256& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(sha256_hex(key));
  return found == files_.end() ? nullptr : found->second;
}

uint64_t Share::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  return bytes_sent_;
}

Reply Share::answer(const store::RequestHead& head) const {
  ++requests_;
  if (head.method != "GET" && head.method != "HEAD") {
    AnswerHead fields = fields_of(405);
    fields.set("Allow", "GET, HEAD");
    return text_reply(std::move(fields), "Only GET and HEAD are answered.\n");
  }
  const auto path = parse_swarm_path(head.path);
  if (!path) return not_here();
  if (path->kind == SwarmPath::Kind::kCard) {
    const std::lock_guard lock(mutex_);
    const auto found = cards_.find(sha256_hex(path->key));
    return found == cards_.end() ? not_here() : message("application/json", found->second);
  }
  const std::shared_ptr<SharedFile> file = find(path->key);
  if (!file) return not_here();
  if (path->kind == SwarmPath::Kind::kOffer) {
    Offer offer = file->offer();
    offer.peer = number_;
    return message("application/json", offer_text(offer));
  }
  if (path->kind == SwarmPath::Kind::kProof) {
    auto proof = file->proof(path->run);
    return proof ? message("application/octet-stream", std::move(*proof)) : not_here();
  }
  // A request gets one piece at most. That bounds its cost, and a piece is the unit of proof.
  const store::RangeRequest range = store::parse_range(head.field("range"), file->bytes());
  if (range.answer != store::RangeAnswer::kPart || range.range.count() > kPieceBytes) {
    return text_reply(fields_of(416), "One range of at most 1 MiB is needed.\n");
  }
  auto part = file->part(range.range);
  if (!part) return not_here();
  {
    const std::lock_guard lock(mutex_);
    bytes_sent_ += head.method == "GET" ? part->count : 0;
  }
  AnswerHead fields = fields_of(206);
  fields.set("Content-Type", "application/octet-stream");
  fields.set("Content-Range", store::content_range(range.range, file->bytes()));
  return {.fields = std::move(fields), .part = std::move(*part)};
}

}  // namespace doppler::swarm
