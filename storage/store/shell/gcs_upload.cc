#include "storage/store/shell/gcs_upload.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "data/crc32c.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "storage/store/core/store_answers.h"
#include "storage/store/core/store_error.h"
#include "storage/store/shell/gcs_store.h"

namespace disttf::roles {
namespace {

// As ifGenerationMatch: write only if the object is absent.
constexpr const char* kNothingThere = "0";

}  // namespace

GcsUpload::GcsUpload(GcsStore& store, std::string key)
    : store_(store),
      key_(std::move(key)),
      prefix_(fmt::format("{}.disttf-part-{:016x}-", key_, random_number())),
      parts_([this](std::size_t number, std::span<const std::byte> bytes) {
        const auto put = store_.put_after(kNothingThere, key_of(number), bytes);
        if (!put) {
          throw std::system_error(StoreError::kExists, "cannot write " + key_of(number));
        }
        return put->etag;
      }) {}

std::string GcsUpload::key_of(std::size_t number) const {
  return fmt::format("{}{:05}", prefix_, number);
}

GcsUpload::~GcsUpload() {
  // No part may appear after its removal.
  parts_.wait();
  // Also after complete(): the composed object does not need its parts.
  const std::size_t all = parts_.count() + merged_;
  try {
    PartsUnderWay removals([this](std::size_t number, auto /*bytes*/) {
      try {
        store_.remove(key_of(number));
      } catch (const std::system_error& error) {
        log_debug(std::string("cannot remove a part of an upload: ") + error.what());
      }
      return std::string();
    });
    // Several at a time, as an upload may have many parts.
    for (std::size_t i = 0; i < all; ++i) removals.add({});
  } catch (const std::exception& error) {  // no thread could be started, or there is no memory
    log_debug(std::string("cannot remove parts of an upload: ") + error.what());
  }
}

void GcsUpload::add(std::span<const std::byte> part) {
  // The sum of everything so far: the store reports the same of a composed object, so that it can
  // be compared.
  sums_.push_back(data::crc32c(part, sums_.empty() ? 0 : sums_.back()));
  sizes_.push_back(part.size());
  parts_.add(part);
}

void GcsUpload::complete() {
  const std::vector<std::string>& generations = parts_.finish();
  std::vector<ObjectInfo> pieces;  // together the beginning of the object
  for (std::size_t i = 0; i < generations.size(); ++i) {
    // Too many for one request: composes the beginning, which is then the first piece.
    if (pieces.size() == kMaxComposed) {
      const std::string key = key_of(generations.size() + ++merged_);
      auto beginning = store_.compose_after(kNothingThere, key, pieces, sums_[i - 1]);
      // The name has a random part, so no other process has written it.
      if (!beginning) throw std::system_error(StoreError::kExists, "cannot write " + key);
      pieces.assign(1, *std::move(beginning));
    }
    pieces.push_back({.key = key_of(i + 1), .size_bytes = sizes_[i], .etag = generations[i]});
  }
  // Replaces the generation that is there. If another process replaces the object between the two
  // requests, the condition fails and the next try uses the new generation.
  std::string generation = kNothingThere;
  for (int i = 0; i < kStoreTries; ++i) {
    if (store_.compose_after(generation, key_, pieces, sums_.back())) return;
    generation = store_.generation_of(key_);
  }
  throw std::system_error(StoreError::kAway,
                          "another process writes " + store_.url_of(key_) + " at the same time");
}

}  // namespace disttf::roles
