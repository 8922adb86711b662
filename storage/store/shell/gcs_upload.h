// A large object of Google Cloud Storage: its parts are objects, which the store then composes.
//
//   KEY.disttf-part-<16 hex digits>-00001, ...
//
// A resumable upload would leave no parts behind, but sends pieces in sequence, and after a lost
// piece must query how far the last one came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/store/core/object_store.h"
#include "storage/store/shell/parts_under_way.h"

namespace disttf::roles {

class GcsStore;

// The most objects that the store composes in one request.
inline constexpr std::size_t kMaxComposed = 32;

// Used by one thread.
class GcsUpload final : public ObjectUpload {
 public:
  // `store` must outlive the object.
  GcsUpload(GcsStore& store, std::string key);
  ~GcsUpload() override;  // waits for open requests, and removes the parts
  void add(std::span<const std::byte> part) override;
  void complete() override;

 private:
  [[nodiscard]] std::string key_of(std::size_t number) const;

  GcsStore& store_;
  const std::string key_;
  const std::string prefix_;  // of the keys of its parts
  PartsUnderWay parts_;       // identified by their generations
  // For each part:
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint32_t> sums_;  // CRC-32C of all bytes up to its end
  std::size_t merged_ = 0;           // number of additional parts, composed of others
};

}  // namespace disttf::roles
