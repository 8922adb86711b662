// The certificate by which a task shows which task of which run it is, and by which it knows the
// others: signed by an authority that all of them trust, and with one URI that names the task
// (net/transport/spiffe_id.h). Other than a secret, which all tasks share, it lets nobody be
// another task than it is.
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

#include "net/transport/credentials.h"
#include "net/transport/file_watch.h"
#include "net/transport/spiffe_id.h"

using X509 = struct x509_st;

namespace disttf::net {

// PEM. The certificate has those between it and its authority behind it; the key, which others
// than its owner and its group must not read, has no password.
struct TaskCertificateFiles {
  std::string certificate;
  std::string key;
  std::string authorities;
};

// The one URI of a certificate that names a task. nullopt: it has none, several, or another one;
// `found` says then what is wrong with it, as the end of a sentence: "is missing".
[[nodiscard]] std::optional<SpiffeId> spiffe_id_of(const X509& certificate, std::string& uri,
                                                   std::string& found);

// Callable from any thread.
//
// The files are looked at when somebody connects, and read again where they have changed, the
// authorities, too: files that do not fit each other yet, or cannot be used, cost a warning, and
// the ones of before go on to count. Connections keep theirs.
class TaskCertificates final : public Credentials {
 public:
  // Throws std::invalid_argument, one sentence: the flag, the file, what is wrong; NotFittingYet.
  // The certificate must be one that the authorities take now, and name `self`.
  TaskCertificates(TaskCertificateFiles files, const TaskId& self,
                   std::function<void(std::string_view)> warn);
  ~TaskCertificates() override;

  [[nodiscard]] std::unique_ptr<Proof> to_say(const Hello& hello) override;
  [[nodiscard]] std::unique_ptr<Proof> to_accept() override;
  [[nodiscard]] std::vector<std::string> files() const override;
  [[nodiscard]] std::optional<Refusal> refusal(std::error_code error, const std::string& whom,
                                               const std::string& detail) override;
  [[nodiscard]] std::string wanted_by(const std::string& whom) const override;

  // What the certificate says before the job: the same of all tasks of the run, and for the life of
  // this object.
  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  // Of a new connection; the caller frees it. nullptr: out of memory.
  [[nodiscard]] SSL* session();

 private:
  struct Free {
    void operator()(SSL_CTX* context) const noexcept;
  };
  using Context = std::unique_ptr<SSL_CTX, Free>;
  // `run`: empty, any; else the certificate must be of this one. It is what it is of afterwards.
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
