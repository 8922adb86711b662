// An object store: bytes under keys. It has no directories and no rename; every write is complete
// or absent. object_file_system.h builds a file system on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace disttf::roles {

struct ObjectInfo {
  std::string key;
  std::uint64_t size_bytes = 0;
  std::string etag;  // changes with the contents; otherwise opaque
  std::chrono::sys_seconds modified{};
  std::optional<std::uint32_t> crc32c{};  // of its contents, if the store reports it
};

struct ObjectListing {
  std::vector<ObjectInfo> objects;
  std::vector<std::string> folders;  // of a shallow listing: the prefixes up to the next slash,
                                     // "run/checkpoint-00000500/"
};

// An object's metadata and its first bytes.
struct ObjectHead {
  ObjectInfo info;
  std::string bytes;
};

// A large object, sent in parts as they are added. The destructor discards it unless it was
// completed.
class ObjectUpload {
 public:
  ObjectUpload() = default;
  virtual ~ObjectUpload() = default;
  ObjectUpload(const ObjectUpload&) = delete;
  ObjectUpload& operator=(const ObjectUpload&) = delete;
  // All parts except the last have kPartBytes.
  virtual void add(std::span<const std::byte> part) = 0;
  virtual void complete() = 0;
};

// S3 accepts parts of at least 5 MiB, and at most 10 000: this allows 160 GB.
inline constexpr std::size_t kPartBytes = std::size_t{16} << 20U;

// Callable from any thread. All functions throw std::system_error with a sentence that names the
// URL; with std::errc::resource_unavailable_try_again if the store is unavailable after several
// tries: then the state of the store is unknown.
class ObjectStore {
 public:
  ObjectStore() = default;
  virtual ~ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // nullopt: there is no such object. A missing bucket is an error.
  [[nodiscard]] virtual std::optional<ObjectInfo> find(const std::string& key) = 0;
  // Also fetches up to `max_bytes` of its contents, in one request.
  [[nodiscard]] virtual std::optional<ObjectHead> open(const std::string& key,
                                                       std::size_t max_bytes) = 0;
  // Reads from `offset` on, which must be within the object. Returns the number of bytes read.
  virtual std::size_t read(const ObjectInfo& object, std::uint64_t offset,
                           std::span<std::byte> to) = 0;
  // All objects whose keys begin with `prefix`; without `deeply`, only up to the next slash after
  // it.
  [[nodiscard]] virtual ObjectListing list(const std::string& prefix, bool deeply) = 0;

  virtual void put(const std::string& key, std::span<const std::byte> bytes) = 0;
  // False: another object exists and is kept. Of two concurrent calls one returns false. An object
  // with the same bytes counts as written: a try without an answer may have written it.
  [[nodiscard]] virtual bool put_new(const std::string& key, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<ObjectUpload> upload(const std::string& key) = 0;
  virtual void copy(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& key) = 0;  // no error where there is none
  // The store's clock, that of ObjectInfo::modified.
  [[nodiscard]] virtual std::chrono::sys_seconds now() = 0;
};

}  // namespace disttf::roles
