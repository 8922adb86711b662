// A bucket of Google Cloud Storage as an object store, over its JSON API.
//
// Each write names the generation of the object that it replaces, so that a repeated or late
// request takes effect once or not at all. The store compares the CRC-32C of written bytes;
// object_file_system.cc compares that of read bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/http/http_session.h"
#include "net/http/url.h"
#include "net/waiting/interrupt.h"
#include "storage/store/core/aws_identity.h"
#include "storage/store/core/gcs_answers.h"
#include "storage/store/core/object_store.h"
#include "storage/store/shell/google_credentials.h"
#include "storage/store/shell/parts_under_way.h"
#include "storage/store/shell/store_environment.h"
#include "storage/store/shell/store_session.h"

namespace disttf::roles {

class GcsStore final : public ObjectStore {
 public:
  // `environment` must outlive the object. Throws std::invalid_argument if its endpoint is no URL.
  GcsStore(std::string bucket, const StoreEnvironment& environment);

  [[nodiscard]] std::optional<ObjectInfo> find(const std::string& key) override;
  [[nodiscard]] std::optional<ObjectHead> open(const std::string& key,
                                               std::size_t max_bytes) override;
  std::size_t read(const ObjectInfo& object, std::uint64_t offset,
                   std::span<std::byte> to) override;
  [[nodiscard]] ObjectListing list(const std::string& prefix, bool deeply) override;
  void put(const std::string& key, std::span<const std::byte> bytes) override;
  [[nodiscard]] bool put_new(const std::string& key, std::span<const std::byte> bytes) override;
  [[nodiscard]] std::unique_ptr<ObjectUpload> upload(const std::string& key) override;
  void copy(const std::string& from, const std::string& to) override;
  void remove(const std::string& key) override;
  [[nodiscard]] std::chrono::sys_seconds now() override;

  // Writes the object if its present generation is `generation`, "0" for none. nullopt: it has
  // another one. The same bytes, written by a try without an answer, count as written.
  [[nodiscard]] std::optional<ObjectInfo> put_after(const std::string& generation,
                                                    const std::string& key,
                                                    std::span<const std::byte> bytes);
  // The same, composing the object of at most kMaxComposed others.
  [[nodiscard]] std::optional<ObjectInfo> compose_after(const std::string& generation,
                                                        const std::string& key,
                                                        std::span<const ObjectInfo> parts,
                                                        std::uint32_t crc32c);
  // The present generation, "0" for none.
  [[nodiscard]] std::string generation_of(const std::string& key);
  [[nodiscard]] std::string url_of(const std::string& key) const;

 private:
  struct Request {
    std::string method;
    std::string path;  // after the endpoint, encoded: "/storage/v1/b/bucket/o"
    std::string key;   // of its object, for messages; empty: the bucket
    NamedTexts query{};
    NamedTexts fields{};
    std::span<const std::byte> body{};
    // Statuses that are accepted besides those below 300.
    int accepted = 0;
    int also_accepted = 0;
    std::optional<std::chrono::seconds> patience{};  // if not the default
  };
  // Throws as ObjectStore's functions do. Sets `was_repeated`, if not null, when a try got no
  // answer: it may have taken effect.
  [[nodiscard]] net::HttpAnswer ask(const Request& request, bool* was_repeated = nullptr);
  [[nodiscard]] net::HttpAnswer ask_once(const Request& request);
  [[nodiscard]] std::string path_of(const std::string& key) const;
  // Whether the answer to a GET says that there is no such object; throws if its bucket is missing.
  [[nodiscard]] bool is_missing(const net::HttpAnswer& answer, const std::string& key) const;
  // The result of a write with a generation; see put_after().
  [[nodiscard]] std::optional<ObjectInfo> write(const Request& request, std::uint64_t size_bytes,
                                                std::uint32_t crc32c);

  const std::string bucket_;
  const bool is_emulator_;          // emulators use no credentials
  net::Url base_;                   // the endpoint; its target is the path before the API's
  const net::Interrupt interrupt_;  // never set: a save is bounded, not interrupted
  GoogleCredentials credentials_;
  SessionPool sessions_;
  StoreClock clock_;
};

// A large object of Google Cloud Storage: its parts are objects, which the store then composes.
//
//   KEY.disttf-part-<16 hex digits>-00001, ...
//
// A resumable upload would leave no parts behind, but sends pieces in sequence, and after a lost
// piece must query how far the last one came.
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
