#include "net/tls/task_certificates.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <new>
#include <stdexcept>
#include <utility>

#include "net/tls/certificate_files.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr const char* kCertificate = "--task_cert";
constexpr const char* kKey = "--task_key";
constexpr const char* kAuthorities = "--task_ca";
constexpr const char* kAllFlags = "(--task_cert, --task_key, --task_ca)";

struct Freed {
  void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
  void operator()(X509_STORE_CTX* context) const noexcept { X509_STORE_CTX_free(context); }
};

// A missing file is reported by the code that reads it.
void must_be_private(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IRWXO) != 0) {
    throw std::invalid_argument(std::string(kKey) + ": " + quoted(path) +
                                " can be read or written by others than its owner and its group: "
                                "its mode must be 0640, 0600 or 0400");
  }
}

// Verifies the task's own certificate as its peers will. One error here replaces an error in the
// log of every peer.
void must_be_taken(SSL_CTX& context, const TaskCertificateFiles& files) {
  STACK_OF(X509)* between = nullptr;
  SSL_CTX_get0_chain_certs(&context, &between);
  // Every task is a client towards some tasks and a server towards others, so the certificate must
  // serve both purposes.
  for (const int side : {X509_PURPOSE_SSL_CLIENT, X509_PURPOSE_SSL_SERVER}) {
    const std::unique_ptr<X509_STORE_CTX, Freed> check(X509_STORE_CTX_new());
    if (!check || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(&context),
                                      SSL_CTX_get0_certificate(&context), between) != 1) {
      throw std::bad_alloc();
    }
    X509_STORE_CTX_set_purpose(check.get(), side);
    if (X509_verify_cert(check.get()) == 1) continue;
    const int why = X509_STORE_CTX_get_error(check.get());
    ERR_clear_error();
    throw NotFittingYet(std::string(kCertificate) + ": " + quoted(files.certificate) +
                        " is rejected by tasks that trust " + kAuthorities + " " +
                        quoted(files.authorities) + ": " + X509_verify_cert_error_string(why));
  }
}

// What alerts of the peer say about the certificate that this end has shown.
std::optional<TlsError> said_by_alert(int reason) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:  // another authority of the same name has signed it
      return TlsError::kNotTaken;
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return TlsError::kNotValidNow;
    default:
      return std::nullopt;
  }
}

// Whether the reason means that the peer uses no certificates but a secret or an older version. Any
// other reason may be temporary.
bool has_none(int reason) {
  switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_VERSION_NUMBER:
      return true;
    default:
      return false;
  }
}

// Reports a certificate that is not valid yet like an expired one. OpenSSL would call it bad, and a
// peer whose clock is a second behind would exit for that.
int check_chain(int is_right, X509_STORE_CTX* context) {
  if (X509_STORE_CTX_get_error(context) == X509_V_ERR_CERT_NOT_YET_VALID) {
    X509_STORE_CTX_set_error(context, X509_V_ERR_CERT_HAS_EXPIRED);
  }
  return is_right;
}

class CertificateProof final : public Proof {
 public:
  // `peer`: the expected task; nullopt: for the accepting end. `ours` must outlive this object.
  CertificateProof(TaskCertificates& ours, std::optional<TaskId> peer) : ours_(ours), peer_(peer) {}

  [[nodiscard]] SSL* make() override { return ours_.session(); }

  // At the accepting end the HELLO says which task to expect: misfit() checks it.
  [[nodiscard]] std::error_code check(SSL& ssl) override {
    const X509* const shown = SSL_get0_peer_certificate(&ssl);
    // FAIL_IF_NO_PEER_CERT ensures this in the handshake; the check here does not depend on that
    // setting.
    if (shown == nullptr || SSL_get_verify_result(&ssl) != X509_V_OK) {
      return TlsError::kNoCertificate;
    }
    id_ = spiffe_id_of(*shown, uri_, found_);
    return !peer_ || is(*peer_) ? std::error_code() : TlsError::kOtherTask;
  }

  [[nodiscard]] std::error_code why_not_shaken(SSL& ssl, int reason) override {
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      const long result = SSL_get_verify_result(&ssl);
      // check_chain() reports a certificate that is not valid yet by this code, too.
      const bool is_of_time = result == X509_V_ERR_CERT_HAS_EXPIRED;
      found_ = is_of_time ? "it has expired, or is not valid yet"
                          : X509_verify_cert_error_string(result);
      return is_of_time ? TlsError::kNotValidNow : TlsError::kNotTrusted;
    }
    if (const auto said = said_by_alert(reason)) return *said;
    return has_none(reason) ? TlsError::kNoCertificate : TlsError::kNotShaken;
  }

  [[nodiscard]] std::error_code why_ended(int reason) const override {
    // The acceptor's alert arrives after the connecting end has begun to send.
    if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED) return TlsError::kNotTaken;
    return said_by_alert(reason).value_or(TlsError::kBroken);
  }

  [[nodiscard]] std::optional<std::string> misfit(const Hello& hello) const override {
    // A driver is the chief of its run, and an evaluator to its servers, which are not in its task
    // lists.
    const bool is_driver = hello.from.job == Job::kEvaluator && may_drive();
    if (is(hello.from) || is_driver) return std::nullopt;
    return "got a HELLO of " + to_string(hello.from) + " of " + ours_.run() +
           ", and the certificate that came with it " + shown();
  }

  [[nodiscard]] bool may_drive() const override { return is({.job = Job::kChief, .index = 0}); }

  [[nodiscard]] std::string detail(std::error_code error, const std::string& self) const override {
    if (error == TlsError::kOtherTask) return "its certificate " + shown();
    if (error != TlsError::kNotTrusted && error != TlsError::kNotValidNow) return {};
    return found_.empty() ? std::string()
                          : "its certificate is rejected by " + self + ": " + found_;
  }

 private:
  [[nodiscard]] bool is(const TaskId& task) const {
    // The run's name is part of the identity: tasks of other runs may have certificates of the same
    // authority.
    return id_ && id_->run == ours_.run() && id_->names(task);
  }
  [[nodiscard]] std::string shown() const {
    return id_ ? "is of " + uri_ : "names no task: its URI " + found_;
  }

  TaskCertificates& ours_;
  const std::optional<TaskId> peer_;
  std::optional<SpiffeId> id_;  // the peer's
  std::string uri_;             // the URI that it was read from
  std::string found_;           // what is wrong with its certificate
};

}  // namespace

std::optional<SpiffeId> spiffe_id_of(const X509& certificate, std::string& uri,
                                     std::string& found) {
  const std::unique_ptr<GENERAL_NAMES, Freed> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  int uris = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const text = name->d.uniformResourceIdentifier;
    uri.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
               static_cast<std::size_t>(ASN1_STRING_length(text)));
    ++uris;
  }
  std::optional<SpiffeId> id;
  // Several URIs would leave it open which one names the task.
  if (uris == 1) {
    id = parse_spiffe_id(uri);
    if (!id) found = "is " + quoted(uri);
  } else {
    found = uris == 0 ? "is missing" : "is one of " + std::to_string(uris);
  }
  return id;
}

void TaskCertificates::Free::operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }

TaskCertificates::TaskCertificates(TaskCertificateFiles files, const TaskId& self,
                                   std::function<void(std::string_view)> warn)
    : files_(std::move(files)),
      self_(self),
      watch_(TaskCertificates::files(), "the previous certificates stay in use", std::move(warn)),
      context_(read(run_)) {}

TaskCertificates::~TaskCertificates() = default;

TaskCertificates::Context TaskCertificates::read(std::string& run) const {
  // A new context for each read: existing sessions keep the old one, and an error leaves it in use.
  Context made(make_task_context());
  if (!made) throw std::bad_alloc();
  const std::string whose = std::string(kCertificate) + ": " + quoted(files_.certificate);
  // A readable key has to be replaced anyway, so its mode is checked first.
  must_be_private(files_.key);
  use_certificate(*made, {kCertificate, files_.certificate}, {kKey, files_.key});
  trust(*made, {kAuthorities, files_.authorities});
  must_be_taken(*made, files_);
  SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, &check_chain);
  std::string uri;
  std::string found;
  const auto id = spiffe_id_of(*SSL_CTX_get0_certificate(made.get()), uri, found);
  if (!id) {
    throw std::invalid_argument(whose + " names no task: its URI " + found +
                                "; expected one like spiffe://example.org/mnist/" +
                                std::string(job_name(self_.job)) + "/" +
                                std::to_string(self_.index));
  }
  if (!id->names(self_)) {
    throw std::invalid_argument(whose + " is of " + uri + ", and this task is " + to_string(self_));
  }
  // A renewed certificate must stay in the same run, because the connections of this process belong
  // to it.
  if (!run.empty() && id->run != run) {
    throw std::invalid_argument(whose + " is of the run " + id->run + ", and this task is of " +
                                run);
  }
  run = id->run;
  return made;
}

void TaskCertificates::read_again() {
  // Sessions of the earlier context keep it alive: OpenSSL counts references.
  watch_.read_where_due([this] {
    // A copy, so that an error in read() leaves run_ unchanged.
    std::string run = run_;
    context_ = read(run);
  });
}

SSL* TaskCertificates::session() try {
  const std::lock_guard lock(mutex_);
  read_again();
  return SSL_new(context_.get());
  // A missing session is reported as a lack of memory by the caller.
} catch (const std::bad_alloc&) {
  return nullptr;
}

std::unique_ptr<Proof> TaskCertificates::to_say(const Hello& hello) {
  return std::make_unique<CertificateProof>(*this, hello.to);
}

std::unique_ptr<Proof> TaskCertificates::to_accept() {
  return std::make_unique<CertificateProof>(*this, std::nullopt);
}

std::vector<std::string> TaskCertificates::files() const {
  return {files_.certificate, files_.key, files_.authorities};
}

std::optional<Refusal> TaskCertificates::refusal(std::error_code error, const std::string& whom,
                                                 const std::string& detail) {
  const std::string why = detail.empty() ? std::string() : ": " + detail;
  const auto refused = [](std::string sentence) {
    return Refusal{.exit_code = kExitMisconfigured, .sentence = std::move(sentence)};
  };
  if (error == TlsError::kNotTls) {
    return refused(whom +
                   " speaks without TLS, and this task has a certificate: give it one, too " +
                   kAllFlags);
  }
  if (error == TlsError::kNoCertificate) {
    return refused(whom +
                   " did not agree to TLS 1.3 with certificates, as this task has one: give "
                   "it one, too " +
                   kAllFlags);
  }
  if (error == TlsError::kNotTrusted) {
    return refused(whom + " has a certificate that " + kAuthorities + " " +
                   quoted(files_.authorities) + " does not accept" + why);
  }
  if (error == TlsError::kNotTaken) {
    return refused(whom + " rejects the certificate " + quoted(files_.certificate) +
                   " of this task: see its log for the reason, and compare the " + kAuthorities +
                   " of both tasks");
  }
  if (error == TlsError::kOtherTask) {
    return refused(whom + " is not the expected task of " + run() + why);
  }
  return std::nullopt;
}

std::string TaskCertificates::wanted_by(const std::string& whom) const {
  return whom + " accepts only peers that have a certificate: give this task its own " + kAllFlags;
}

}  // namespace disttf::net
