// make_tls_identities KIND DIR: writes TLS identities for tests into DIR as PEM.
//
// A separate program with all of OpenSSL: the executable that users get makes no keys and no
// certificates (cmake/openssl_provider.cc), nor does a test that is linked in the same way.
//
// KIND: rsa, rsa-pss, p256, p384, p521, ed25519, ed448, dsa. An authority and the identities that
// it signed, all with keys of this kind:
//   ca.pem        the authority
//   server.pem    localhost's certificate, followed by the intermediate authority; server.key
//   expired.pem   localhost's certificate, expired an hour ago; the same key
// KIND tasks: identities of tasks of the run spiffe://test/mnist, NAME.pem and NAME.key, each
// followed by the intermediate authority that signed it, which ca.pem signed:
//   ps-0, worker-0, worker-1, chief-0, evaluator-0: that task; worker: any worker
//   other-run: worker 1 of spiffe://test/other; dns, two: worker 1 without a URI and with two
//   expired, later: worker 1, expired an hour ago, and valid in an hour; for-servers: worker 1 with
//   a key that is for servers alone; foreign, foreign-ps: worker 1 and ps 0, by another authority,
//   foreign-ca.pem
// KIND keys: private keys in the formats of other programs.
//   pkcs8.key, rsa.key (PKCS#1), ec.key (SEC 1), x25519.key, encrypted.key (PBES2 with AES-256; its
//   password is "password")
//   des.key (like `encrypted`, in PEM's own format), x448.key, binary.key (a curve over a binary
//   field)
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/support/tls_identity.h"

namespace disttf::test_support {
namespace {

using Path = std::filesystem::path;

void write(const Path& path, const std::function<bool(std::FILE*)>& body) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"),
                                                             &std::fclose);
  if (file == nullptr || !body(file.get()))
    throw std::runtime_error("cannot write " + path.string());
}

void write_key(const Path& path, EVP_PKEY& key) {
  write(path, [&](std::FILE* file) {
    return PEM_write_PKCS8PrivateKey(file, &key, nullptr, nullptr, 0, nullptr, nullptr) == 1;
  });
}

using KeyContext = std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)>;

EVP_PKEY* rsa_pss_key() {
  const KeyContext generator(EVP_PKEY_CTX_new_from_name(nullptr, "RSA-PSS", nullptr),
                             &EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  EVP_PKEY_keygen_init(generator.get());
  EVP_PKEY_keygen(generator.get(), &made);
  return made;
}

EVP_PKEY* dsa_key() {
  const KeyContext parameters(EVP_PKEY_CTX_new_from_name(nullptr, "DSA", nullptr),
                              &EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  EVP_PKEY_paramgen_init(parameters.get());
  EVP_PKEY_paramgen(parameters.get(), &made);
  const OpenSsl<EVP_PKEY> group(made);
  const KeyContext generator(EVP_PKEY_CTX_new(group.get(), nullptr), &EVP_PKEY_CTX_free);
  made = nullptr;
  EVP_PKEY_keygen_init(generator.get());
  EVP_PKEY_keygen(generator.get(), &made);
  return made;
}

EVP_PKEY* generate(const std::string& kind) {
  constexpr std::size_t kRsaBits = 2048;
  if (kind == "rsa") return EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", kRsaBits);
  if (kind == "rsa-pss") return rsa_pss_key();
  if (kind == "p256") return EVP_EC_gen("P-256");
  if (kind == "p384") return EVP_EC_gen("P-384");
  if (kind == "p521") return EVP_EC_gen("P-521");
  if (kind == "binary") return EVP_EC_gen("sect283k1");
  if (kind == "dsa") return dsa_key();
  return EVP_PKEY_Q_keygen(nullptr, nullptr, kind.c_str());
}

OpenSsl<EVP_PKEY> make_key(const std::string& kind) {
  OpenSsl<EVP_PKEY> key(generate(kind));
  if (key == nullptr) throw std::runtime_error("cannot make a key: " + kind);
  return key;
}

void write_identities(const std::string& kind, const Path& folder) {
  const OpenSsl<EVP_PKEY> root_key = make_key(kind);
  const OpenSsl<EVP_PKEY> between_key = make_key(kind);
  const OpenSsl<EVP_PKEY> server_key = make_key(kind);
  Certificate what{.name = "root", .extension = NID_basic_constraints, .value = "critical,CA:TRUE"};
  const OpenSsl<X509> root = make_certificate(what, *root_key, nullptr, *root_key);
  what.name = "between";
  const OpenSsl<X509> between = make_certificate(what, *between_key, root.get(), *root_key);
  what = {
      .name = "server", .serial = 2, .extension = NID_subject_alt_name, .value = "DNS:localhost"};
  const OpenSsl<X509> server = make_certificate(what, *server_key, between.get(), *between_key);
  what.ends_s = -3600;
  const OpenSsl<X509> expired = make_certificate(what, *server_key, between.get(), *between_key);
  write(folder / "ca.pem", [&](std::FILE* file) { return PEM_write_X509(file, root.get()) == 1; });
  for (const auto& [name, leaf] :
       {std::pair{"server.pem", server.get()}, {"expired.pem", expired.get()}}) {
    write(folder / name, [&](std::FILE* file) {
      return PEM_write_X509(file, leaf) == 1 && PEM_write_X509(file, between.get()) == 1;
    });
  }
  write_key(folder / "server.key", *server_key);
}

// An authority, and an intermediate authority that signs the identities.
class Chain {
 public:
  explicit Chain(const std::string& name) : root_key_(make_key("p256")), key_(make_key("p256")) {
    Certificate what{.name = name, .extension = NID_basic_constraints, .value = "critical,CA:TRUE"};
    root_ = make_certificate(what, *root_key_, nullptr, *root_key_);
    what.name = name + " between";
    between_ = make_certificate(what, *key_, root_.get(), *root_key_);
  }
  void write_root(const Path& path) const {
    write(path, [&](std::FILE* file) { return PEM_write_X509(file, root_.get()) == 1; });
  }
  void write_task(const Path& folder, const std::string& name, const Certificate& what) const {
    const OpenSsl<EVP_PKEY> key = make_key("p256");
    const OpenSsl<X509> made = make_certificate(what, *key, between_.get(), *key_);
    write(folder / (name + ".pem"), [&](std::FILE* file) {
      return PEM_write_X509(file, made.get()) == 1 && PEM_write_X509(file, between_.get()) == 1;
    });
    write_key(folder / (name + ".key"), *key);
    std::filesystem::permissions(folder / (name + ".key"), std::filesystem::perms(0600));
  }

 private:
  OpenSsl<EVP_PKEY> root_key_;
  OpenSsl<EVP_PKEY> key_;  // the intermediate authority's key
  OpenSsl<X509> root_;
  OpenSsl<X509> between_;
};

Certificate task_named(const std::string& alternative_names) {
  return {
      .name = "a task", .serial = 2, .extension = NID_subject_alt_name, .value = alternative_names};
}

void write_tasks(const Path& folder) {
  const Chain chain("root");
  const Chain foreign("foreign");
  chain.write_root(folder / "ca.pem");
  foreign.write_root(folder / "foreign-ca.pem");
  const std::string run = "URI:spiffe://test/mnist/";
  for (const auto& [name, end] : {std::pair{"ps-0", "ps/0"},
                                  {"worker-0", "worker/0"},
                                  {"worker-1", "worker/1"},
                                  {"chief-0", "chief/0"},
                                  {"evaluator-0", "evaluator/0"},
                                  {"worker", "worker"}}) {
    chain.write_task(folder, name, task_named(run + end));
  }
  const Certificate worker = task_named(run + "worker/1");
  chain.write_task(folder, "other-run", task_named("URI:spiffe://test/other/worker/1"));
  chain.write_task(folder, "dns", task_named("DNS:localhost"));
  chain.write_task(folder, "two", task_named(worker.value + ",URI:https://test/"));
  foreign.write_task(folder, "foreign", worker);
  foreign.write_task(folder, "foreign-ps", task_named(run + "ps/0"));
  Certificate other = worker;
  other.ends_s = -3600;
  chain.write_task(folder, "expired", other);
  other = worker;
  other.begins_s = 3600;
  chain.write_task(folder, "later", other);
  other = worker;
  other.usages = "serverAuth";
  chain.write_task(folder, "for-servers", other);
}

void write_keys(const Path& folder) {
  const OpenSsl<EVP_PKEY> rsa = make_key("rsa");
  const OpenSsl<EVP_PKEY> ec = make_key("p256");
  const auto traditional = [](EVP_PKEY& key, const EVP_CIPHER* cipher) {
    return [&key, cipher](std::FILE* file) {
      const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_fp(file, BIO_NOCLOSE), &BIO_free);
      return PEM_write_bio_PrivateKey_traditional(bio.get(), &key, cipher, nullptr, 0, nullptr,
                                                  const_cast<char*>("password")) == 1;
    };
  };
  write_key(folder / "pkcs8.key", *ec);
  write(folder / "rsa.key", traditional(*rsa, nullptr));
  write(folder / "ec.key", traditional(*ec, nullptr));
  write(folder / "des.key", traditional(*rsa, EVP_des_ede3_cbc()));
  write(folder / "encrypted.key", [&](std::FILE* file) {
    return PEM_write_PKCS8PrivateKey(file, ec.get(), EVP_aes_256_cbc(), "password", 8, nullptr,
                                     nullptr) == 1;
  });
  for (const std::string kind : {"X25519", "X448", "binary"}) {
    const std::string name = kind == "X25519" ? "x25519" : kind == "X448" ? "x448" : kind;
    write_key(folder / (name + ".key"), *make_key(kind));
  }
}

}  // namespace
}  // namespace disttf::test_support

int main(int argc, char** argv) {
  using namespace disttf::test_support;
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_tls_identities KIND DIR\n");
    return 2;
  }
  try {
    std::filesystem::create_directories(argv[2]);
    const std::string kind = argv[1];
    if (kind == "keys") {
      write_keys(argv[2]);
    } else if (kind == "tasks") {
      write_tasks(argv[2]);
    } else {
      write_identities(kind, argv[2]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_tls_identities: %s\n", error.what());
    return 1;
  }
  return 0;
}
