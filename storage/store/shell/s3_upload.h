// A large object of S3, in parts.
#pragma once

#include <string>

#include "storage/store/core/object_store.h"
#include "storage/store/shell/parts_under_way.h"

namespace disttf::roles {

class S3Store;

// Used by one thread.
class S3Upload final : public ObjectUpload {
 public:
  // `store` must outlive the object. Throws as ObjectStore's functions do.
  S3Upload(S3Store& store, std::string key);
  ~S3Upload() override;  // waits for open requests
  void add(std::span<const std::byte> part) override { parts_.add(part); }
  void complete() override;

 private:
  S3Store& store_;
  const std::string key_;
  std::string id_;
  PartsUnderWay parts_;  // identified by their entity tags
  bool is_complete_ = false;
};

}  // namespace disttf::roles
