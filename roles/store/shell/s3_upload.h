// A large object of S3 in parts, some of which are under way at once: one connection is waiting
// most of the time.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "roles/store/core/object_store.h"

namespace disttf::roles {

class S3Store;

// Used by one thread.
class S3Upload final : public ObjectUpload {
 public:
  // `store` must outlive the object. Throws as ObjectStore's functions do.
  S3Upload(S3Store& store, std::string key);
  ~S3Upload() override;  // waits for what is under way
  void add(std::span<const std::byte> part) override;
  void complete() override;

 private:
  // A part; its thread writes the other members, and whoever joins it reads them.
  struct Part {
    std::vector<std::byte> bytes;
    std::size_t number = 0;  // from 1 on
    std::string etag{};
    std::exception_ptr error{};
    std::thread thread{};
  };

  void send(Part& part) noexcept;
  void join_oldest();

  S3Store& store_;
  const std::string key_;
  std::string id_;
  std::deque<std::unique_ptr<Part>> under_way_;
  std::vector<std::string> etags_;  // of the parts that are there
  std::uint64_t sent_bytes_ = 0;
  bool is_complete_ = false;
};

}  // namespace disttf::roles
