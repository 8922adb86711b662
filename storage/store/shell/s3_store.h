// A bucket of S3, or of a compatible store, as an object store.
//
// Requests are signed, retried up to three times if that may help, and use persistent connections.
// The store checks the SHA-256 of a written body; the file's own format protects what is read (a
// checkpoint's index).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/http/http_session.h"
#include "net/http/url.h"
#include "net/waiting/interrupt.h"
#include "storage/store/core/object_store.h"
#include "storage/store/core/s3_answers.h"
#include "storage/store/shell/aws_credentials.h"
#include "storage/store/shell/parts_under_way.h"
#include "storage/store/shell/store_environment.h"
#include "storage/store/shell/store_session.h"

namespace disttf::roles {

class S3Store final : public ObjectStore {
 public:
  // `environment` must outlive the object. Throws std::invalid_argument if its endpoint is no URL.
  S3Store(std::string bucket, const StoreEnvironment& environment);

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

  // One request, about the object `key`, or the bucket if that is empty.
  struct Request {
    std::string method;
    std::string key{};
    NamedTexts query{};
    NamedTexts fields{};
    std::span<const std::byte> body{};
    // Statuses that are accepted besides those below 300.
    int accepted = 0;
    int also_accepted = 0;
    // The store processes stored bytes: it may take long, and an answer of 200 may have an error in
    // its body.
    bool is_late = false;
    std::uint64_t work_bytes = 0;  // the number of these bytes; 0: unknown
  };
  // Throws as ObjectStore's functions do. Sets `was_repeated`, if not null, when a try got no
  // answer: it may have taken effect.
  [[nodiscard]] net::HttpAnswer ask(const Request& request, bool* was_repeated = nullptr);

 private:
  [[nodiscard]] net::HttpAnswer ask_once(const Request& request, const Credentials& credentials);
  [[nodiscard]] static std::optional<StoreRefusal> refusal_of(const Request& request,
                                                              const net::HttpAnswer& answer);
  [[nodiscard]] std::string url_of(const std::string& key) const;
  void check_conditions(const std::string& key);

  const std::string bucket_;
  const ProfileSettings profile_;
  const std::string region_;
  net::Url base_;  // the endpoint; its target is the path before the key, without a slash
  const net::Interrupt interrupt_;  // never set: a save is bounded, not interrupted
  AwsCredentials credentials_;
  SessionPool sessions_;
  StoreClock clock_;
  std::atomic<bool> heeds_conditions_ = false;  // true once it has been verified
  std::atomic<bool> has_bucket_ = false;        // true once an answer has shown that it exists
};

// A large object of S3, in parts.
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
