// TLS with the part of OpenSSL that the released binary contains (cmake/openssl_provider.cc), with
// both ends in this process: everything needed works, and everything left out is refused cleanly.
// Builds that are not static leave nothing out, and the former still holds.
//
// Keys and certificates come from make_tls_identities, a program with the whole of OpenSSL.
#include <gmock/gmock.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/tls_identity.h"

namespace disttf {
namespace {

using test_support::OpenSsl;

std::string last_error() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

class ProductTls : public testing::Test {
 protected:
  ProductTls() : folder_(testing::TempDir() + "/disttf_tls_" + std::to_string(getpid())) {}
  ~ProductTls() override { std::filesystem::remove_all(folder_); }

  // Creates the identities or keys of this kind.
  void make(const std::string& kind) {
    const std::string command = DISTTF_MAKE_TLS_IDENTITIES " " + kind + " " + folder_;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  // A peer that presents `certificate`, or none if that is empty, and trusts the authority.
  OpenSsl<SSL_CTX> context(const SSL_METHOD* method,
                           const std::string& certificate = "server.pem") {
    OpenSsl<SSL_CTX> made(SSL_CTX_new(method));
    EXPECT_NE(made, nullptr) << last_error();
    if (!certificate.empty()) {
      EXPECT_EQ(SSL_CTX_use_certificate_chain_file(made.get(), path(certificate).c_str()), 1)
          << last_error();
      EXPECT_EQ(
          SSL_CTX_use_PrivateKey_file(made.get(), path("server.key").c_str(), SSL_FILETYPE_PEM), 1)
          << last_error();
      EXPECT_EQ(SSL_CTX_check_private_key(made.get()), 1) << last_error();
      EXPECT_EQ(SSL_CTX_load_verify_locations(made.get(), path("ca.pem").c_str(), nullptr), 1)
          << last_error();
      SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    return made;
  }

  std::string folder_;
};

OpenSsl<EVP_PKEY> read_key(const std::string& path, std::string password = "password") {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"),
                                                             &std::fclose);
  EXPECT_NE(file, nullptr);
  return OpenSsl<EVP_PKEY>(PEM_read_PrivateKey(file.get(), nullptr, nullptr, password.data()));
}

// Two ends with a pipe between them.
class Pair {
 public:
  Pair(SSL_CTX& server, SSL_CTX& client, const char* host = "localhost")
      : server_(SSL_new(&server)), client_(SSL_new(&client)) {
    BIO* to_server = nullptr;
    BIO* to_client = nullptr;
    BIO_new_bio_pair(&to_server, 0, &to_client, 0);
    SSL_set_bio(server_.get(), to_server, to_server);
    SSL_set_bio(client_.get(), to_client, to_client);
    SSL_set_accept_state(server_.get());
    SSL_set_connect_state(client_.get());
    SSL_set1_host(client_.get(), host);
  }

  // Returns false if either end gives up.
  bool shake_hands() {
    for (int turn = 0; turn < 20; ++turn) {
      const int client = SSL_do_handshake(client_.get());
      const int server = SSL_do_handshake(server_.get());
      if (client == 1 && server == 1) return true;
      if (gave_up(*client_, client) || gave_up(*server_, server)) return false;
    }
    return false;
  }

  // Returns whether more than one record arrives unchanged in each direction.
  bool talk() { return sends(*client_, *server_) && sends(*server_, *client_); }

  [[nodiscard]] SSL& server() const { return *server_; }
  [[nodiscard]] SSL& client() const { return *client_; }

 private:
  static bool gave_up(SSL& ssl, int result) {
    if (result == 1) return false;
    const int error = SSL_get_error(&ssl, result);
    return error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
  }

  static bool sends(SSL& from, SSL& to) {
    const std::string sent(5000, 'x');
    std::string received(sent.size(), '\0');
    for (int record = 0; record < 2; ++record) {
      const int size = static_cast<int>(sent.size());
      if (SSL_write(&from, sent.data(), size) != size) return false;
      if (SSL_read(&to, received.data(), size) != size || received != sent) return false;
    }
    return true;
  }

  OpenSsl<SSL> server_;
  OpenSsl<SSL> client_;
};

void only_version(SSL_CTX& context, int version) {
  SSL_CTX_set_min_proto_version(&context, version);
  SSL_CTX_set_max_proto_version(&context, version);
}

// Both ends present certificates, and each verifies the other's over one intermediate certificate.
class EachKind : public ProductTls,
                 public testing::WithParamInterface<std::tuple<std::string, int>> {};

TEST_P(EachKind, BothEndsAreKnownToEachOther) {
  const auto& [kind, version] = GetParam();
  make(kind);
  const OpenSsl<SSL_CTX> server = context(TLS_server_method());
  const OpenSsl<SSL_CTX> client = context(TLS_client_method());
  only_version(*client, version);
  Pair pair(*server, *client);
  ASSERT_TRUE(pair.shake_hands()) << last_error();
  EXPECT_EQ(SSL_version(&pair.client()), version);
  EXPECT_EQ(SSL_get_verify_result(&pair.client()), X509_V_OK);
  EXPECT_EQ(SSL_get_verify_result(&pair.server()), X509_V_OK);
  EXPECT_NE(SSL_get0_peer_certificate(&pair.server()), nullptr);
  EXPECT_TRUE(pair.talk());
}

INSTANTIATE_TEST_SUITE_P(Tls, EachKind,
                         testing::Combine(testing::Values("rsa", "rsa-pss", "p256", "p384", "p521",
                                                          "ed25519"),
                                          testing::Values(TLS1_2_VERSION, TLS1_3_VERSION)));

// The last two are for servers that support nothing newer.
TEST_F(ProductTls, EachSuiteOfTls12) {
  make("rsa");
  for (const char* suite :
       {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305",
        "ECDHE-RSA-AES256-SHA384", "AES128-GCM-SHA256"}) {
    const OpenSsl<SSL_CTX> server = context(TLS_server_method());
    const OpenSsl<SSL_CTX> client = context(TLS_client_method());
    only_version(*client, TLS1_2_VERSION);
    ASSERT_EQ(SSL_CTX_set_cipher_list(client.get(), suite), 1) << suite;
    Pair pair(*server, *client);
    ASSERT_TRUE(pair.shake_hands()) << suite << ": " << last_error();
    EXPECT_STREQ(SSL_get_cipher(&pair.client()), suite);
    EXPECT_TRUE(pair.talk()) << suite;
  }
}

TEST_F(ProductTls, EachSuiteAndGroupOfTls13) {
  make("p256");
  for (const char* suite :
       {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}) {
    for (const int group : {NID_X25519, NID_X9_62_prime256v1, NID_secp384r1, NID_secp521r1}) {
      const OpenSsl<SSL_CTX> server = context(TLS_server_method());
      const OpenSsl<SSL_CTX> client = context(TLS_client_method());
      ASSERT_EQ(SSL_CTX_set_ciphersuites(client.get(), suite), 1) << suite;
      ASSERT_EQ(SSL_CTX_set1_groups(client.get(), &group, 1), 1) << OBJ_nid2sn(group);
      Pair pair(*server, *client);
      ASSERT_TRUE(pair.shake_hands()) << suite << ' ' << OBJ_nid2sn(group) << ": " << last_error();
      EXPECT_STREQ(SSL_get_cipher(&pair.client()), suite);
      EXPECT_EQ(SSL_get_negotiated_group(&pair.client()), group);
      EXPECT_TRUE(pair.talk());
    }
  }
}

TEST_F(ProductTls, ASessionGoesOnWithItsTicket) {
  make("p256");
  const OpenSsl<SSL_CTX> server = context(TLS_server_method());
  const OpenSsl<SSL_CTX> client = context(TLS_client_method());
  constexpr std::string_view kName = "disttf";
  SSL_CTX_set_session_id_context(server.get(), reinterpret_cast<const unsigned char*>(kName.data()),
                                 kName.size());
  Pair first(*server, *client);
  ASSERT_TRUE(first.shake_hands() && first.talk()) << last_error();
  const std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(
      SSL_get1_session(&first.client()), &SSL_SESSION_free);
  Pair second(*server, *client);
  SSL_set_session(&second.client(), session.get());
  ASSERT_TRUE(second.shake_hands() && second.talk()) << last_error();
  EXPECT_EQ(SSL_session_reused(&second.client()), 1);
}

TEST_F(ProductTls, RefusesAnotherNameALateCertificateAndAnUnknownAuthority) {
  make("p256");
  const OpenSsl<SSL_CTX> client = context(TLS_client_method());
  const OpenSsl<SSL_CTX> server = context(TLS_server_method());
  Pair other_name(*server, *client, "mirror.example");
  EXPECT_FALSE(other_name.shake_hands());
  EXPECT_EQ(SSL_get_verify_result(&other_name.client()), X509_V_ERR_HOSTNAME_MISMATCH);

  const OpenSsl<SSL_CTX> expired = context(TLS_server_method(), "expired.pem");
  Pair late(*expired, *client);
  EXPECT_FALSE(late.shake_hands());
  EXPECT_EQ(SSL_get_verify_result(&late.client()), X509_V_ERR_CERT_HAS_EXPIRED);

  make("p256");  // another authority with the same name
  const OpenSsl<SSL_CTX> outsider = context(TLS_server_method());
  Pair unknown(*outsider, *client);
  EXPECT_FALSE(unknown.shake_hands());
  EXPECT_NE(SSL_get_verify_result(&unknown.client()), X509_V_OK);
}

// What two tasks share: a named secret, which becomes a session whose key is mixed into that of a
// fresh key exchange.
struct Secret {
  std::string key;
  const char* suite = "TLS_AES_128_GCM_SHA256";
};

SSL_SESSION* session_of(SSL* ssl, const Secret& secret) {
  SSL_SESSION* const session = SSL_SESSION_new();
  const STACK_OF(SSL_CIPHER)* const suites = SSL_get_ciphers(ssl);
  for (int i = 0; i < sk_SSL_CIPHER_num(suites); ++i) {
    const SSL_CIPHER* const suite = sk_SSL_CIPHER_value(suites, i);
    if (std::string_view(SSL_CIPHER_get_name(suite)) == secret.suite)
      SSL_SESSION_set_cipher(session, suite);
  }
  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
  SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(secret.key.data()),
                              secret.key.size());
  return session;
}

const Secret& secret_of(SSL* ssl) {
  return *static_cast<const Secret*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0));
}

int use_session(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** name, std::size_t* size,
                SSL_SESSION** session) {
  static constexpr std::string_view kName = "run";
  *name = reinterpret_cast<const unsigned char*>(kName.data());
  *size = kName.size();
  *session = session_of(ssl, secret_of(ssl));
  return 1;
}

int find_session(SSL* ssl, const unsigned char* /*name*/, std::size_t /*size*/,
                 SSL_SESSION** session) {
  *session = session_of(ssl, secret_of(ssl));
  return 1;
}

class SharedSecret : public ProductTls {
 protected:
  void set(Secret server_secret, Secret client_secret) {
    server_secret_ = std::move(server_secret);
    client_secret_ = std::move(client_secret);
    SSL_CTX_set_ex_data(server_.get(), 0, &server_secret_);
    SSL_CTX_set_ex_data(client_.get(), 0, &client_secret_);
    SSL_CTX_set_psk_find_session_callback(server_.get(), &find_session);
    SSL_CTX_set_psk_use_session_callback(client_.get(), &use_session);
    SSL_CTX_set_verify(client_.get(), SSL_VERIFY_PEER, nullptr);
  }

  Secret server_secret_;
  Secret client_secret_;
  OpenSsl<SSL_CTX> server_ = context(TLS_server_method(), "");
  OpenSsl<SSL_CTX> client_ = context(TLS_client_method(), "");
};

TEST_F(SharedSecret, IsEnoughAndFreshKeysAreExchanged) {
  for (const char* suite :
       {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}) {
    const Secret secret{std::string(32, 's'), suite};
    set(secret, secret);
    // Otherwise the server could choose a suite with a hash that differs from the secret's.
    ASSERT_EQ(SSL_CTX_set_ciphersuites(client_.get(), suite), 1);
    Pair pair(*server_, *client_);
    ASSERT_TRUE(pair.shake_hands()) << suite << ": " << last_error();
    EXPECT_STREQ(SSL_get_cipher(&pair.client()), suite);
    EXPECT_EQ(SSL_session_reused(&pair.client()), 1);  // which means that no certificate was used
    EXPECT_EQ(SSL_get_negotiated_group(&pair.client()), NID_X25519);
    EXPECT_TRUE(pair.talk());
  }
}

TEST_F(SharedSecret, AnotherIsRefused) {
  set({.key = std::string(32, 's')}, {.key = std::string(32, 't')});
  ASSERT_EQ(SSL_CTX_set_ciphersuites(client_.get(), client_secret_.suite), 1);
  Pair pair(*server_, *client_);
  EXPECT_FALSE(pair.shake_hands());
}

TEST_F(ProductTls, ReadsKeysAsOtherProgramsWriteThem) {
  make("keys");
  const std::vector<std::pair<const char*, const char*>> keys = {
      {"pkcs8", "EC"}, {"rsa", "RSA"}, {"ec", "EC"}, {"x25519", "X25519"}, {"encrypted", "EC"}};
  for (const auto& [name, kind] : keys) {
    const OpenSsl<EVP_PKEY> key = read_key(path(std::string(name) + ".key"));
    ASSERT_NE(key, nullptr) << name << ": " << last_error();
    EXPECT_EQ(EVP_PKEY_is_a(key.get(), kind), 1) << name;
  }
  EXPECT_EQ(read_key(path("encrypted.key"), "another"), nullptr);
}

TEST_F(ProductTls, SaysWhatIsWrong) {
  OpenSsl<SSL_CTX> made(SSL_CTX_new(TLS_client_method()));
  EXPECT_EQ(SSL_CTX_use_PrivateKey_file(made.get(), "/dev/null", SSL_FILETYPE_PEM), 0);
  EXPECT_THAT(last_error(), testing::Not(testing::HasSubstr("reason(")));
  EXPECT_EQ(SSL_CTX_load_verify_locations(made.get(), "/dev/null", nullptr), 0);
  EXPECT_THAT(last_error(), testing::Not(testing::HasSubstr("reason(")));
}

#ifdef DISTTF_OPENSSL_CHOICE
// Returns whether the key is usable: OpenSSL still parses the numbers of some unsupported kinds.
bool is_of_use(EVP_PKEY* key) {
  if (key == nullptr) return false;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> signer(EVP_MD_CTX_new(),
                                                                       &EVP_MD_CTX_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new(key, nullptr), &EVP_PKEY_CTX_free);
  return EVP_DigestSignInit(signer.get(), nullptr, EVP_sha256(), nullptr, key) == 1 ||
         EVP_DigestSignInit(signer.get(), nullptr, nullptr, nullptr, key) == 1 ||
         (context != nullptr && EVP_PKEY_derive_init(context.get()) == 1);
}

TEST_F(ProductTls, RefusesKeysOfKindsThatAreLeftOut) {
  make("keys");
  EXPECT_TRUE(is_of_use(read_key(path("pkcs8.key")).get()));
  EXPECT_TRUE(is_of_use(read_key(path("x25519.key")).get()));
  for (const char* name : {"des", "x448", "binary"}) {
    EXPECT_FALSE(is_of_use(read_key(path(std::string(name) + ".key")).get())) << name;
  }
}

// The peer that presents it may use any OpenSSL.
TEST_F(ProductTls, RefusesCertificatesOfKindsThatAreLeftOut) {
  for (const char* kind : {"ed448", "dsa"}) {
    make(kind);
    EXPECT_FALSE(is_of_use(read_key(path("server.key")).get())) << kind;
    const OpenSsl<SSL_CTX> client(SSL_CTX_new(TLS_client_method()));
    EXPECT_NE(SSL_CTX_use_certificate_chain_file(client.get(), path("server.pem").c_str()), 1)
        << kind;
    SSL_CTX_load_verify_locations(client.get(), path("ca.pem").c_str(), nullptr);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        std::fopen(path("server.pem").c_str(), "r"), &std::fclose);
    const OpenSsl<X509> leaf(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
    const OpenSsl<X509> between(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
    ASSERT_TRUE(leaf != nullptr && between != nullptr) << last_error();
    EXPECT_EQ(X509_get0_pubkey(leaf.get()), nullptr) << kind;
    STACK_OF(X509)* const chain = sk_X509_new_null();
    sk_X509_push(chain, between.get());
    X509_STORE_CTX* const check = X509_STORE_CTX_new();
    X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(client.get()), leaf.get(), chain);
    EXPECT_NE(X509_verify_cert(check), 1) << kind;
    EXPECT_NE(X509_STORE_CTX_get_error(check), X509_V_OK) << kind;
    X509_STORE_CTX_free(check);
    sk_X509_free(chain);
  }
}

TEST_F(ProductTls, EnginesStoresAndOtherProvidersAreNotThere) {
  EXPECT_EQ(EVP_CIPHER_fetch(nullptr, "CAMELLIA-256-CBC", nullptr), nullptr);
  EXPECT_EQ(EVP_MD_fetch(nullptr, "SM3", nullptr), nullptr);
  EXPECT_EQ(EVP_get_cipherbyname("des-ede3-cbc"), nullptr);
  const OpenSsl<SSL_CTX> client(SSL_CTX_new(TLS_client_method()));
  EXPECT_EQ(SSL_CTX_load_verify_store(client.get(), "file:/dev/null"), 0);
  EXPECT_EQ(SSL_CTX_set1_groups_list(client.get(), "X448"), 0);
}
#endif

}  // namespace
}  // namespace disttf
