// TLS by a secret that both ends have.
//
// The secret seasons a fresh exchange of keys (an external PSK, psk_dhe_ke, RFC 8446 and 9257): who
// learns it later can read nothing of before. The name of the key goes in clear: the secret's
// fingerprint, then what net/transport/secrets.h has as the pair's context; the HELLO that follows
// must fit it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "net/transport/credentials.h"
#include "net/transport/secrets.h"

namespace disttf::net {

class SecretProof final : public Proof {
 public:
  // `hello`: what is to be said; null: of one who accepts. `secrets` must outlive it.
  SecretProof(Secrets& secrets, const Hello* hello);

  [[nodiscard]] SSL* make() override;
  [[nodiscard]] std::error_code check(SSL& ssl) override;
  [[nodiscard]] std::error_code why_not_shaken(SSL& ssl, int reason) override;
  [[nodiscard]] std::error_code why_ended(int reason) const override;
  [[nodiscard]] std::optional<std::string> misfit(const Hello& hello) const override;
  // Each that has the secret may do all.
  [[nodiscard]] bool may_drive() const override { return true; }
  [[nodiscard]] std::string detail(std::error_code error, const std::string& self) const override;

 private:
  struct Callbacks;
  [[nodiscard]] TlsError other_secret() const;

  Secrets& secrets_;
  const bool accepts_;
  Peer peer_{};                  // of one who connects: to whom
  std::vector<std::byte> name_;  // of the key, in clear
  // Of the secret that one who connects has said, until it has proved to be ours.
  std::optional<Fingerprint> other_;
};

}  // namespace disttf::net
