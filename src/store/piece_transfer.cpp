#include "store/piece_transfer.h"

#include "base/text.h"
#include "store/url.h"

namespace doppler::store {
namespace {

Unexpected changed(const std::string& url) {
  return fail(ErrorKind::kIo, "%s changed while it was downloaded; the same command begins anew.",
              shown_url(url).c_str());
}

// True if the answer names another file than the one that was probed.
bool is_other_file(const ResponseHead& head, const Remote& remote) {
  const std::string* tag = head.find("etag");
  if (!tag || !remote.validator.starts_with('"')) return false;
  const auto strong = strong_etag(*tag);
  return strong && *strong != remote.validator;
}

}  // namespace

PieceTransfer::PieceTransfer(Target target) : target_(target) {
  const Journal* journal = target.journal;
  position_ = journal ? journal->begin(target.piece) + journal->done(target.piece) : 0;
  end_ = journal ? journal->begin(target.piece) + journal->size(target.piece)
                 : target.remote.bytes.value_or(UINT64_MAX);
}

Request PieceTransfer::request(std::string bearer) const {
  Request request{.url = target_.remote.url, .range = {}, .if_range = {}, .bearer = std::move(bearer)};
  if (target_.journal) {
    request.range = ByteRange{position_, end_ - 1};
    request.if_range = target_.remote.validator;
  }
  return request;
}

Result<bool> PieceTransfer::on_head(const ResponseHead& head) {
  status_ = head.status;
  if (head.status < 200 || head.status >= 300) {
    bad_status_ = failure_of_status(head, target_.remote.url, false);
    return false;
  }
  return target_.journal ? check_part(head) : check_whole(head);
}

Result<bool> PieceTransfer::check_part(const ResponseHead& head) const {
  const std::string& url = target_.remote.url;
  if (is_other_file(head, target_.remote)) return changed(url);
  if (head.status != 206) {
    if (!target_.remote.validator.empty()) return changed(url);  // what If-Range means
    return fail(ErrorKind::kIo, "%s was asked for bytes %llu to %llu and answers with all (HTTP %d).",
                shown_url(url).c_str(), static_cast<unsigned long long>(position_),
                static_cast<unsigned long long>(end_ - 1), head.status);
  }
  const std::string* field = head.find("content-range");
  const auto range = field ? parse_content_range(*field) : std::nullopt;
  if (!range || !range->range || range->range->first != position_ || range->range->last >= end_) {
    return fail(ErrorKind::kIo, "%s was asked for bytes %llu to %llu and answers with others (\"%s\").",
                shown_url(url).c_str(), static_cast<unsigned long long>(position_),
                static_cast<unsigned long long>(end_ - 1), printable(field ? *field : "").c_str());
  }
  if (range->total && range->total != target_.remote.bytes) return changed(url);
  return true;
}

Result<bool> PieceTransfer::check_whole(const ResponseHead& head) const {
  const std::string* length = head.find("content-length");
  const auto bytes = length ? parse_decimal(*length) : std::nullopt;
  if (is_other_file(head, target_.remote) ||
      (bytes && target_.remote.bytes && *bytes != *target_.remote.bytes)) {
    return changed(target_.remote.url);
  }
  return true;
}

Result<void> PieceTransfer::on_body(std::span<const uint8_t> bytes) {
  if (bytes.size() > end_ - position_) {
    return fail(ErrorKind::kIo, "%s sends more bytes than it was asked for.",
                shown_url(target_.remote.url).c_str());
  }
  DP_CHECK(target_.file.write_at(bytes, position_));
  position_ += bytes.size();
  target_.received += bytes.size();
  if (target_.journal) {
    target_.retries.note_progress(bytes.size());
    DP_CHECK(target_.journal->note(target_.piece, position_ - target_.journal->begin(target_.piece)));
  } else if (position_ > kMostFileBytes) {
    return fail(ErrorKind::kIo, "%s does not end.", shown_url(target_.remote.url).c_str());
  }
  return {};
}

std::optional<Failure> PieceTransfer::outcome(std::optional<Failure> of_exchange) const {
  if (of_exchange) {
    of_exchange->is_refused_connection = false;  // it was there when the file was probed
    return of_exchange;
  }
  if (bad_status_) return bad_status_;
  if (position_ == end_ || end_ == UINT64_MAX) return {};
  return Failure{.error = Error(ErrorKind::kIo, format_text("%s ended too early, after %llu of %llu bytes.",
                                                            shown_url(target_.remote.url).c_str(),
                                                            static_cast<unsigned long long>(position_),
                                                            static_cast<unsigned long long>(end_))),
                 .may_pass = true};
}

}  // namespace doppler::store
