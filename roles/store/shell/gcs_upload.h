// A large object of Google's Cloud Storage: parts that are objects of their own, of which the store
// then makes one.
//
//   KEY.disttf-part-<16 hex digits>-00001, ...
//
// An upload that is resumed would leave no parts behind, but sends one piece after the other, and
// where a piece was lost it has to be found out how far the last one came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "roles/store/core/object_store.h"
#include "roles/store/shell/parts_under_way.h"

namespace disttf::roles {

class GcsStore;

// As many as the store makes one of at a time.
inline constexpr std::size_t kMaxComposed = 32;

// Used by one thread.
class GcsUpload final : public ObjectUpload {
 public:
  // `store` must outlive the object.
  GcsUpload(GcsStore& store, std::string key);
  ~GcsUpload() override;  // waits for what is under way, and removes the parts
  void add(std::span<const std::byte> part) override;
  void complete() override;

 private:
  [[nodiscard]] std::string key_of(std::size_t number) const;

  GcsStore& store_;
  const std::string key_;
  const std::string prefix_;  // of the keys of its parts
  PartsUnderWay parts_;       // by their generations
  // Of each part.
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint32_t> sums_;  // CRC-32C of all up to its end
  std::size_t merged_ = 0;           // how many parts there are besides, which are others in one
};

}  // namespace disttf::roles
