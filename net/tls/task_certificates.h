// The certificate by which a task proves which task of which run it is, and the check of its peers'
// certificates. A certificate must be signed by an authority that all tasks trust and contain
// exactly one URI that names the task (net/tls/spiffe_id.h). Unlike a shared secret, it
// prevents a task from impersonating another one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/tls/credentials.h"
#include "net/tls/file_watch.h"
#include "net/tls/spiffe_id.h"

using X509 = struct x509_st;

namespace disttf::net {

// PEM files. The certificate is followed by those between it and its authority. The key must be
// readable only by its owner and its group, and has no password.
struct TaskCertificateFiles {
  std::string certificate;
  std::string key;
  std::string authorities;
};

// Returns the URI of a certificate that names a task. nullopt: it has none, several, or a different
// kind; `found` then describes that as the end of a sentence: "is missing".
[[nodiscard]] std::optional<SpiffeId> spiffe_id_of(const X509& certificate, std::string& uri,
                                                   std::string& found);

// Callable from any thread.
//
// The files are checked on each connection and read again when they have changed, the authorities
// as well. Files that do not match each other yet, or are unusable, cause a warning, and the
// previous ones stay in use. Existing connections keep theirs.
class TaskCertificates final : public Credentials {
 public:
  // Throws std::invalid_argument, one sentence (the flag, the file, what is wrong), or
  // NotFittingYet. The certificate must be valid now under the authorities, and name `self`.
  TaskCertificates(TaskCertificateFiles files, const TaskId& self,
                   std::function<void(std::string_view)> warn);
  ~TaskCertificates() override;

  [[nodiscard]] std::unique_ptr<Proof> to_say(const Hello& hello) override;
  [[nodiscard]] std::unique_ptr<Proof> to_accept() override;
  [[nodiscard]] std::vector<std::string> files() const override;
  [[nodiscard]] std::optional<Refusal> refusal(std::error_code error, const std::string& whom,
                                               const std::string& detail) override;
  [[nodiscard]] std::string wanted_by(const std::string& whom) const override;

  // The part of the certificate's URI before the job: the same for all tasks of the run and for the
  // life of this object.
  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  // Makes the SSL object of a new connection; the caller frees it. nullptr: out of memory.
  [[nodiscard]] SSL* session();

 private:
  struct Free {
    void operator()(SSL_CTX* context) const noexcept;
  };
  using Context = std::unique_ptr<SSL_CTX, Free>;
  // `run`: empty for any, else the run that the certificate must belong to. Afterwards the run that
  // it belongs to.
  [[nodiscard]] Context read(std::string& run) const;
  void read_again();  // REQUIRES: mutex_ is held

  const TaskCertificateFiles files_;
  const TaskId self_;
  std::mutex mutex_;
  FileWatch watch_;  // guarded by mutex_
  std::string run_;
  Context context_;  // guarded by mutex_
};

}  // namespace disttf::net
