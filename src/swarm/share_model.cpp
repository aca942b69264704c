// Shares a stored model: hashes each file once, and keeps the hashes of its pieces.
#include <cstring>

#include "base/text.h"
#include "swarm/share.h"

namespace doppler::swarm {
namespace {

// Reads <cache>/<sha256 of the file>, which holds the leaves as they lie in memory.
std::optional<PieceTree> cached_tree(const std::string& path, uint64_t bytes) {
  const auto file = store::File::open(path, {.follows_links = false});
  if (!file) return {};
  std::vector<Sha256> leaves(piece_count(bytes));
  const std::span<uint8_t> content(leaves[0].data(), leaves.size() * sizeof(Sha256));
  const auto size = file->size();
  const auto read = file->read_at(content, 0);
  if (!size || *size != content.size() || !read || *read != content.size()) return {};
  auto tree = PieceTree::make(bytes, std::move(leaves));
  return tree ? std::optional(std::move(*tree)) : std::nullopt;
}

// The cache is only a convenience. A cache that cannot be written costs time and does no other harm.
void keep_tree(const std::string& folder, const std::string& path, const PieceTree& tree) {
  if (!store::make_folders(folder)) return;
  const auto leaves = tree.leaves();
  (void)store::write_small_file(path, {reinterpret_cast<const char*>(leaves.data()), leaves.size_bytes()});
}

Result<PieceTree> hash_file(const store::File& file, const store::StoredFile& stored,
                            const std::function<void(const ShareProgress&)>& on_progress) {
  std::vector<Sha256> leaves;
  std::vector<uint8_t> piece(kPieceBytes);
  Sha256Hasher whole;
  for (uint64_t at = 0; at < piece_count(stored.bytes); ++at) {
    const auto content = std::span(piece).first(piece_size(stored.bytes, at));
    DP_TRY(const size_t count, file.read_at(content, at * kPieceBytes));
    if (count != content.size()) break;
    whole.update(content);
    leaves.push_back(leaf_of(content));
    if (on_progress) {
      on_progress({.file = stored.file, .done = at * kPieceBytes + count, .total = stored.bytes});
    }
  }
  DP_TRY(const uint64_t bytes, file.size());
  if (bytes != stored.bytes || whole.finish() != stored.sha256) {
    return fail(ErrorKind::kInvalidInput,
                "%s is not what was stored (its size or SHA-256 differs), so it is not shared.",
                printable(file.path(), 4096).c_str());
  }
  return PieceTree::make(stored.bytes, std::move(leaves));
}

}  // namespace

Result<Sha256> share_model(Share& share, const store::StoredModel& model, const std::string& cache,
                           const std::function<void(const ShareProgress&)>& on_progress) {
  Card card{.name = model.name, .kind = model.record.kind, .entry = model.record.entry, .files = {}};
  if (model.record.files.size() > kMostCardFiles) {
    return fail(ErrorKind::kInvalidInput, "%s has %zu files; at most %zu are shared.", model.name.c_str(),
                model.record.files.size(), kMostCardFiles);
  }
  for (const store::StoredFile& stored : model.record.files) {
    DP_TRY(store::File file, store::File::open(model.folder + "/" + stored.file, {.follows_links = false}));
    const std::string path = cache + "/" + sha256_hex(stored.sha256);
    std::optional<PieceTree> tree;
    if (!cache.empty()) tree = cached_tree(path, stored.bytes);
    if (!tree) {
      DP_TRY(tree, hash_file(file, stored, on_progress));
      if (!cache.empty()) keep_tree(cache, path, *tree);
    }
    card.files.push_back(
        {.file = stored.file, .bytes = stored.bytes, .sha256 = stored.sha256, .root = tree->root()});
    share.add_file(stored.sha256, std::make_shared<SharedFile>(std::move(file), std::move(*tree)));
  }
  share.add_card(card);
  return sha256(text_bytes(card_text(card)));
}

}  // namespace doppler::swarm
