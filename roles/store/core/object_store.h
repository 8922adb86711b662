// A store of objects: bytes under keys, no directories, nothing renamed, every write whole or not
// there at all. What a file system is made of in object_file_system.h.
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
  std::string etag;  // another one when its contents are others; nothing else is read into it
  std::chrono::sys_seconds modified{};
  std::optional<std::uint32_t> crc32c{};  // of its contents, where the store says it
};

struct ObjectListing {
  std::vector<ObjectInfo> objects;
  std::vector<std::string> folders;  // where not listed deeply: what is below "prefix" up to the
                                     // next slash, "run/checkpoint-00000500/"
};

// What is known of an object, and its first bytes.
struct ObjectHead {
  ObjectInfo info;
  std::string bytes;
};

// A large object, in parts that each are sent when they are given. Gone when destroyed, unless it
// was completed.
class ObjectUpload {
 public:
  ObjectUpload() = default;
  virtual ~ObjectUpload() = default;
  ObjectUpload(const ObjectUpload&) = delete;
  ObjectUpload& operator=(const ObjectUpload&) = delete;
  // All but the last have kPartBytes.
  virtual void add(std::span<const std::byte> part) = 0;
  virtual void complete() = 0;
};

// S3 takes no part below 5 MiB, nor more than 10 000: this makes 160 GB.
inline constexpr std::size_t kPartBytes = std::size_t{16} << 20U;

// Callable from any thread. Everything throws std::system_error with a sentence that names the URL,
// with std::errc::resource_unavailable_try_again where the store could not be had, after several
// tries: what is there is not known then.
class ObjectStore {
 public:
  ObjectStore() = default;
  virtual ~ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // nullopt: there is none.
  [[nodiscard]] virtual std::optional<ObjectInfo> find(const std::string& key) = 0;
  // With up to `max_bytes` of its contents, at one go.
  [[nodiscard]] virtual std::optional<ObjectHead> open(const std::string& key,
                                                       std::size_t max_bytes) = 0;
  // From `offset` on, of an object that has that many. Returns how many bytes that were.
  virtual std::size_t read(const ObjectInfo& object, std::uint64_t offset,
                           std::span<std::byte> to) = 0;
  // All whose keys begin with `prefix`; or, not `deeply`, up to the next slash after it.
  [[nodiscard]] virtual ObjectListing list(const std::string& prefix, bool deeply) = 0;

  virtual void put(const std::string& key, std::span<const std::byte> bytes) = 0;
  // False: there is one, which stays as it is. Of two who try at once one gets false. What is
  // there and has the same bytes counts as put: it may have been, by a try of which no answer came.
  [[nodiscard]] virtual bool put_new(const std::string& key, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<ObjectUpload> upload(const std::string& key) = 0;
  virtual void copy(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& key) = 0;  // no error where there is none
  // The store's clock, that of ObjectInfo::modified.
  [[nodiscard]] virtual std::chrono::sys_seconds now() = 0;
};

}  // namespace disttf::roles
