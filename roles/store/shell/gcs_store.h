// A bucket of Google's Cloud Storage as a store of objects, over its JSON API.
//
// Each write says which generation of the object it takes the place of, so that one that is tried
// again, or comes late, is done once or not at all. What is sent is covered by its CRC-32C, which
// the store compares; so is what is read (object_file_system.cc).
#pragma once

#include <optional>
#include <string>

#include "net/http/http_session.h"
#include "net/http/url.h"
#include "net/transport/interrupt.h"
#include "roles/store/core/gcs_answers.h"
#include "roles/store/core/object_store.h"
#include "roles/store/core/sigv4.h"
#include "roles/store/shell/google_credentials.h"
#include "roles/store/shell/store_environment.h"
#include "roles/store/shell/store_session.h"

namespace disttf::roles {

class GcsStore final : public ObjectStore {
 public:
  // `environment` must outlive the object. Throws std::invalid_argument where its endpoint is no
  // URL.
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

  // What follows the first, "0" where there is no such object, once that is so. nullopt: another
  // generation is there. The same bytes, put by a try of which no answer came, count as put.
  [[nodiscard]] std::optional<ObjectInfo> put_after(const std::string& generation,
                                                    const std::string& key,
                                                    std::span<const std::byte> bytes);
  // Makes one object of at most kMaxComposed. The same.
  [[nodiscard]] std::optional<ObjectInfo> compose_after(const std::string& generation,
                                                        const std::string& key,
                                                        std::span<const ObjectInfo> parts,
                                                        std::uint32_t crc32c);
  // The generation that is there, "0" for none.
  [[nodiscard]] std::string generation_of(const std::string& key);
  [[nodiscard]] std::string url_of(const std::string& key) const;

 private:
  struct Request {
    std::string method;
    std::string path;  // behind the endpoint, encoded: "/storage/v1/b/bucket/o"
    std::string key;   // that it is about, for what is said; empty: the bucket
    NamedTexts query{};
    NamedTexts fields{};
    std::span<const std::byte> body{};
    // Statuses that are an answer besides those below 300.
    int accepted = 0;
    int also_accepted = 0;
    std::optional<std::chrono::seconds> patience{};  // where it is not that of most requests
  };
  // Throws as ObjectStore's functions do. `was_repeated`, where given, is set once a try has got no
  // answer: it may have been done all the same.
  [[nodiscard]] net::HttpAnswer ask(const Request& request, bool* was_repeated = nullptr);
  [[nodiscard]] net::HttpAnswer ask_once(const Request& request);
  [[nodiscard]] std::string path_of(const std::string& key) const;
  // What a write that heeds a generation has come to, see put_after().
  [[nodiscard]] std::optional<ObjectInfo> write(const Request& request, std::uint64_t size_bytes,
                                                std::uint32_t crc32c);

  const std::string bucket_;
  const bool is_emulator_;          // which knows of no credentials
  net::Url base_;                   // whom requests go to; its target is the path before the API's
  const net::Interrupt interrupt_;  // nobody interrupts: a save is not broken off, but bounded
  GoogleCredentials credentials_;
  SessionPool sessions_;
  StoreClock clock_;
};

}  // namespace disttf::roles
