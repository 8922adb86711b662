#include "net/tls/credentials.h"

#include <openssl/ssl.h>

namespace disttf::net {
namespace {

// Both use SHA-256, to which the key of a secret is bound.
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

}  // namespace

SSL_CTX* make_task_context() {
  // Without the machine's openssl.cnf, so that all tasks of a run have the same settings.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  SSL_CTX* const made = SSL_CTX_new(TLS_method());
  if (made == nullptr) return nullptr;
  // No session is resumed: each connection authenticates anew, with the credentials of that time.
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  // After would_block TlsStream writes the same record again from another address, because it
  // gathers header and body on its stack.
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_num_tickets(made, 0) == 1 && SSL_CTX_set_ciphersuites(made, kSuites) == 1) {
    return made;
  }
  SSL_CTX_free(made);
  return nullptr;
}

}  // namespace disttf::net
