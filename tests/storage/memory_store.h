// An object store in memory. It can fail at any operation, before or after the operation takes
// effect.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "storage/store/core/object_store.h"
#include "storage/store/core/store_error.h"

namespace disttf::roles {

// For use by one thread.
class MemoryStore final : public ObjectStore {
 public:
  std::map<std::string, std::string> objects;
  std::chrono::sys_seconds clock{std::chrono::seconds(1'800'000'000)};
  std::map<std::string, std::uint32_t> sums;  // CRC-32C, of objects whose checksum was sent
  std::size_t operations = 0;                 // so far
  // Called before each operation with its number, from 1 on. May throw.
  std::function<void(std::size_t)> before = nullptr;
  // Called after an operation has taken effect but before it returns. May throw.
  std::function<void(std::size_t)> after = nullptr;

  [[nodiscard]] std::optional<ObjectInfo> find(const std::string& key) override {
    begin();
    const auto found = objects.find(key);
    if (found == objects.end()) return std::nullopt;
    return info(found->first);
  }
  [[nodiscard]] std::optional<ObjectHead> open(const std::string& key,
                                               std::size_t max_bytes) override {
    begin();
    const auto found = objects.find(key);
    if (found == objects.end()) return std::nullopt;
    return ObjectHead{.info = info(key), .bytes = found->second.substr(0, max_bytes)};
  }
  std::size_t read(const ObjectInfo& object, std::uint64_t offset,
                   std::span<std::byte> to) override {
    begin();
    const std::string part = objects.at(object.key).substr(offset, to.size());
    std::memcpy(to.data(), part.data(), part.size());
    return part.size();
  }
  [[nodiscard]] ObjectListing list(const std::string& prefix, bool deeply) override {
    begin();
    ObjectListing listing;
    for (const auto& [key, bytes] : objects) {
      if (!key.starts_with(prefix)) continue;
      const std::size_t slash = deeply ? std::string::npos : key.find('/', prefix.size());
      if (slash == std::string::npos) {
        listing.objects.push_back(info(key));
      } else if (const std::string folder = key.substr(0, slash + 1);
                 listing.folders.empty() || listing.folders.back() != folder) {
        listing.folders.push_back(folder);
      }
    }
    return listing;
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    begin();
    keep(key, text(bytes));
    end();
  }
  [[nodiscard]] bool put_new(const std::string& key, std::span<const std::byte> bytes) override {
    begin();
    const auto found = objects.find(key);
    if (found != objects.end()) return found->second == text(bytes);
    keep(key, text(bytes));
    end();
    return true;
  }
  [[nodiscard]] std::unique_ptr<ObjectUpload> upload(const std::string& key) override {
    begin();
    return std::make_unique<Upload>(*this, key);
  }
  void copy(const std::string& from, const std::string& to) override {
    begin();
    keep(to, objects.at(from));
    end();
  }
  void remove(const std::string& key) override {
    begin();
    objects.erase(key);
    end();
  }
  [[nodiscard]] std::chrono::sys_seconds now() override { return clock; }

 private:
  class Upload final : public ObjectUpload {
   public:
    Upload(MemoryStore& store, std::string key) : store_(store), key_(std::move(key)) {}
    void add(std::span<const std::byte> part) override {
      store_.begin();
      bytes_ += text(part);
    }
    void complete() override {
      store_.begin();
      store_.keep(key_, bytes_);
      store_.end();
    }

   private:
    MemoryStore& store_;
    std::string key_;
    std::string bytes_;
  };

  static std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void begin() {
    ++operations;
    if (before) before(operations);
  }
  void end() const {
    if (after) after(operations);
  }
  void keep(const std::string& key, std::string bytes) {
    objects[key] = std::move(bytes);
    times_[key] = clock;
  }
  [[nodiscard]] ObjectInfo info(const std::string& key) const {
    const auto time = times_.find(key);
    return {.key = key,
            .size_bytes = objects.at(key).size(),
            .etag = {},
            .modified = time == times_.end() ? clock : time->second,
            .crc32c = sums.contains(key) ? std::optional(sums.at(key)) : std::nullopt};
  }

  std::map<std::string, std::chrono::sys_seconds> times_;
};

}  // namespace disttf::roles
