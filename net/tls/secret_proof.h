// TLS with a secret that both ends have.
//
// The secret is an external PSK on top of a fresh key exchange (psk_dhe_ke, RFC 8446 and 9257), so
// learning the secret later does not decrypt earlier traffic. The name of the key is sent in clear:
// the secret's fingerprint, then the pair's context of net/tls/secrets.h. The HELLO that
// follows must match it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "net/tls/credentials.h"
#include "net/tls/secrets.h"

namespace disttf::net {

class SecretProof final : public Proof {
 public:
  // `hello`: the one to be sent; null: for the accepting end. `secrets` must outlive this object.
  SecretProof(Secrets& secrets, const Hello* hello);

  [[nodiscard]] SSL* make() override;
  [[nodiscard]] std::error_code check(SSL& ssl) override;
  [[nodiscard]] std::error_code why_not_shaken(SSL& ssl, int reason) override;
  [[nodiscard]] std::error_code why_ended(int reason) const override;
  [[nodiscard]] std::optional<std::string> misfit(const Hello& hello) const override;
  // Every peer that has the secret may do everything.
  [[nodiscard]] bool may_drive() const override { return true; }
  [[nodiscard]] std::string detail(std::error_code error, const std::string& self) const override;

 private:
  struct Callbacks;
  [[nodiscard]] TlsError other_secret() const;

  Secrets& secrets_;
  const bool accepts_;
  Peer peer_{};                  // connecting end: the task that it connects to
  std::vector<std::byte> name_;  // of the key, in clear
  // The fingerprint that a connecting peer has sent, until its secret has proved to be a shared
  // one.
  std::optional<Fingerprint> other_;
};

}  // namespace disttf::net
