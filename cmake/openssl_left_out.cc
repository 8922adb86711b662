// Stubs for parts of OpenSSL that disttf never reaches but that its other parts reference.
//
// Each function below replaces every symbol that is referenced in one or several objects of
// libcrypto.a and libssl.a, so that the linker leaves these objects out. The comment of each group
// gives the size that it saves. A caller that reaches a stub nevertheless receives the failure that
// the function documents. If our own code calls a function of an object that is left out, linking
// fails with a duplicate definition of one of these functions.
//
// The signatures are those of OpenSSL 3.0; cmake/static_archives.cmake links this file only with
// 3.0. References between objects may differ from one 3.0.x to the next. With versions that were
// not tried, the linker uses these functions and also links the objects that it needs.
#include <openssl/cmp_util.h>
#include <openssl/conf.h>
#include <openssl/core.h>
#include <openssl/ec.h>
#include <openssl/engine.h>
#include <openssl/evp.h>
#include <openssl/http.h>
#include <openssl/pkcs7.h>
#include <openssl/ssl.h>
#include <openssl/store.h>
#include <openssl/x509.h>

#include <cstddef>
#include <cstdint>

// Functions that no header declares. (OpenSSL chooses the names.)
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
OSSL_provider_init_fn ossl_base_provider_init;
void openssl_add_all_ciphers_int();
void openssl_add_all_digests_int();
int ossl_err_load_crypto_strings();
int ossl_err_load_ERR_strings();
int ossl_err_load_ASN1_strings();
int ossl_err_load_BIO_strings();
int ossl_err_load_CRYPTO_strings();
int ossl_err_load_EC_strings();
int ossl_err_load_EVP_strings();
int ossl_err_load_PEM_strings();
int ossl_err_load_PROV_strings();
int ossl_err_load_RAND_strings();
int ossl_err_load_RSA_strings();
int ossl_err_load_X509_strings();
int ossl_err_load_X509V3_strings();
void engine_load_dynamic_int();
void engine_load_openssl_int();
void engine_load_padlock_int();
void engine_load_afalg_int();
const EVP_PKEY_METHOD* ossl_rsa_pkey_method();
const EVP_PKEY_METHOD* ossl_rsa_pss_pkey_method();
const EVP_PKEY_METHOD* ossl_dh_pkey_method();
const EVP_PKEY_METHOD* ossl_dhx_pkey_method();
const EVP_PKEY_METHOD* ossl_dsa_pkey_method();
const EVP_PKEY_METHOD* ossl_ec_pkey_method();
extern const OSSL_DISPATCH ossl_dh_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_dhx_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_dsa_keymgmt_functions[];
const EC_METHOD* EC_GFp_nistp224_method();
const EC_METHOD* EC_GFp_nistp521_method();
void* EC_nistp224_pre_comp_dup(void* table);
void* EC_nistp521_pre_comp_dup(void* table);
void EC_nistp224_pre_comp_free(void* table);
void EC_nistp521_pre_comp_free(void* table);
std::size_t ossl_ec_GF2m_simple_point2oct(const EC_GROUP* group, const EC_POINT* point,
                                          point_conversion_form_t form, unsigned char* bytes,
                                          std::size_t size, BN_CTX* context);
int ossl_ec_GF2m_simple_oct2point(const EC_GROUP* group, EC_POINT* point,
                                  const unsigned char* bytes, std::size_t size, BN_CTX* context);
int ossl_ec_GF2m_simple_set_compressed_coordinates(const EC_GROUP* group, EC_POINT* point,
                                                   const BIGNUM* x, int y_bit, BN_CTX* context);
int ossl_x448(std::uint8_t* shared, const std::uint8_t* own, const std::uint8_t* peer);
void ossl_x448_public_from_private(std::uint8_t* shared, const std::uint8_t* own);
int ossl_ed448_sign(OSSL_LIB_CTX* library, std::uint8_t* signature, const std::uint8_t* message,
                    std::size_t message_size, const std::uint8_t* shared, const std::uint8_t* own,
                    const std::uint8_t* context, std::size_t context_size, const char* properties);
int ossl_ed448_verify(OSSL_LIB_CTX* library, const std::uint8_t* message, std::size_t message_size,
                      const std::uint8_t* signature, const std::uint8_t* shared,
                      const std::uint8_t* context, std::size_t context_size,
                      const char* properties);
int ossl_ed448_public_from_private(OSSL_LIB_CTX* library, std::uint8_t* shared,
                                   const std::uint8_t* own, const char* properties);
void ssl_ctx_system_config(SSL_CTX* context);
int ssl_ctx_srp_ctx_init_intern(SSL_CTX* context);
int ssl_ctx_srp_ctx_free_intern(SSL_CTX* context);
int ssl_srp_ctx_init_intern(SSL* ssl);
int ssl_srp_ctx_free_intern(SSL* ssl);
int ssl_srp_server_param_with_username_intern(SSL* ssl, int* alert);
int ssl_srp_calc_a_param_intern(SSL* ssl);
int srp_generate_server_master_secret(SSL* ssl);
int srp_generate_client_master_secret(SSL* ssl);
int srp_verify_server_param(SSL* ssl);
}

// The base provider, which needs no cryptography: openssl_provider.cc has its algorithms. 0.1 MB.
int ossl_base_provider_init(const OSSL_CORE_HANDLE* /*handle*/, const OSSL_DISPATCH* /*in*/,
                            const OSSL_DISPATCH** /*out*/, void** /*context*/) {
  return 0;
}

// The tables in which EVP_get_cipherbyname() and EVP_get_digestbyname() search: a second
// implementation of each algorithm, from the time before providers. Ciphers: 0.32 MB, none is
// needed. Digests, 0.05 MB: only those that certificates and TLS name, because a digest that a
// provider has made finds its own NID in this table.
void openssl_add_all_ciphers_int() {}

void openssl_add_all_digests_int() {
  EVP_add_digest(EVP_md5());
  EVP_add_digest(EVP_sha1());
  EVP_add_digest(EVP_sha224());
  EVP_add_digest(EVP_sha256());
  EVP_add_digest(EVP_sha384());
  EVP_add_digest(EVP_sha512());
}

// Error texts, only of the parts that can fail on data from a peer or a file: saves 0.04 MB.
// (libssl has its own texts.) Errors of other parts show only their number.
int ossl_err_load_crypto_strings() {
  const bool loaded = ossl_err_load_ERR_strings() != 0 && ossl_err_load_ASN1_strings() != 0 &&
                      ossl_err_load_BIO_strings() != 0 && ossl_err_load_CRYPTO_strings() != 0 &&
                      ossl_err_load_EC_strings() != 0 && ossl_err_load_EVP_strings() != 0 &&
                      ossl_err_load_PEM_strings() != 0 && ossl_err_load_PROV_strings() != 0 &&
                      ossl_err_load_RAND_strings() != 0 && ossl_err_load_RSA_strings() != 0 &&
                      ossl_err_load_X509_strings() != 0 && ossl_err_load_X509V3_strings() != 0;
  return loaded ? 1 : 0;
}

// Engines, which OpenSSL 1 had in place of providers. 0.03 MB.
void engine_load_dynamic_int() {}
void engine_load_openssl_int() {}
void engine_load_padlock_int() {}
void engine_load_afalg_int() {}
void ENGINE_load_builtin_engines() {}

// Modules that openssl.cnf can configure; the file is never read (net/http/http_connection.h). 0.02
// MB.
void OPENSSL_load_builtin_modules() {}
void ssl_ctx_system_config(SSL_CTX* /*context*/) {}

// Key methods that an application or an engine can add; ours are the provider's. 0.02 MB. OpenSSL
// searches the table by key type, so there is one method for each, which does nothing.
const EVP_PKEY_METHOD* ossl_rsa_pkey_method() {
  static const EVP_PKEY_METHOD* const method = EVP_PKEY_meth_new(EVP_PKEY_RSA, 0);
  return method;
}
const EVP_PKEY_METHOD* ossl_rsa_pss_pkey_method() {
  static const EVP_PKEY_METHOD* const method = EVP_PKEY_meth_new(EVP_PKEY_RSA_PSS, 0);
  return method;
}
const EVP_PKEY_METHOD* ossl_dh_pkey_method() {
  static const EVP_PKEY_METHOD* const method = EVP_PKEY_meth_new(EVP_PKEY_DH, 0);
  return method;
}
const EVP_PKEY_METHOD* ossl_dhx_pkey_method() {
  static const EVP_PKEY_METHOD* const method = EVP_PKEY_meth_new(EVP_PKEY_DHX, 0);
  return method;
}
const EVP_PKEY_METHOD* ossl_dsa_pkey_method() {
  static const EVP_PKEY_METHOD* const method = EVP_PKEY_meth_new(EVP_PKEY_DSA, 0);
  return method;
}
const EVP_PKEY_METHOD* ossl_ec_pkey_method() {
  static const EVP_PKEY_METHOD* const method = EVP_PKEY_meth_new(EVP_PKEY_EC, 0);
  return method;
}

// Key types that TLS 1.3 removed, or that only servers without elliptic curves use: 0.02 MB. One
// object decodes keys of all types and references these for decoders that the provider does not
// list.
const OSSL_DISPATCH ossl_dh_keymgmt_functions[] = {{0, nullptr}};
const OSSL_DISPATCH ossl_dhx_keymgmt_functions[] = {{0, nullptr}};
const OSSL_DISPATCH ossl_dsa_keymgmt_functions[] = {{0, nullptr}};

// A second, hand-written implementation of two curves: P-224 and P-521 are computed like P-384.
// Only the left-out implementations make the tables that the functions below copy and free. That of
// P-256 is linked: static_archives.cmake says why.
const EC_METHOD* EC_GFp_nistp224_method() { return EC_GFp_mont_method(); }
const EC_METHOD* EC_GFp_nistp521_method() { return EC_GFp_mont_method(); }
void* EC_nistp224_pre_comp_dup(void* /*table*/) { return nullptr; }
void* EC_nistp521_pre_comp_dup(void* /*table*/) { return nullptr; }
void EC_nistp224_pre_comp_free(void* /*table*/) {}
void EC_nistp521_pre_comp_free(void* /*table*/) {}

// Curves over binary fields, which TLS 1.3 removed: 0.02 MB. Without a method no group of this type
// exists, and therefore no point of one.
const EC_METHOD* EC_GF2m_simple_method() { return nullptr; }
std::size_t ossl_ec_GF2m_simple_point2oct(const EC_GROUP* /*group*/, const EC_POINT* /*point*/,
                                          point_conversion_form_t /*form*/,
                                          unsigned char* /*bytes*/, std::size_t /*size*/,
                                          BN_CTX* /*context*/) {
  return 0;
}
int ossl_ec_GF2m_simple_oct2point(const EC_GROUP* /*group*/, EC_POINT* /*point*/,
                                  const unsigned char* /*bytes*/, std::size_t /*size*/,
                                  BN_CTX* /*context*/) {
  return 0;
}
int ossl_ec_GF2m_simple_set_compressed_coordinates(const EC_GROUP* /*group*/, EC_POINT* /*point*/,
                                                   const BIGNUM* /*x*/, int /*y_bit*/,
                                                   BN_CTX* /*context*/) {
  return 0;
}

// X448 and Ed448, which are hardly ever used: 0.07 MB. The provider lists neither; only their names
// remain in tables of key types.
int ossl_x448(std::uint8_t* /*shared*/, const std::uint8_t* /*own*/, const std::uint8_t* /*peer*/) {
  return 0;
}
// This function cannot report a failure, so it returns a point that every peer rejects.
void ossl_x448_public_from_private(std::uint8_t* shared, const std::uint8_t* /*own*/) {
  constexpr int kBytes = 56;
  for (int i = 0; i < kBytes; ++i) shared[i] = 0;
}
int ossl_ed448_sign(OSSL_LIB_CTX* /*library*/, std::uint8_t* /*signature*/,
                    const std::uint8_t* /*message*/, std::size_t /*message_size*/,
                    const std::uint8_t* /*shared*/, const std::uint8_t* /*own*/,
                    const std::uint8_t* /*context*/, std::size_t /*context_size*/,
                    const char* /*properties*/) {
  return 0;
}
int ossl_ed448_verify(OSSL_LIB_CTX* /*library*/, const std::uint8_t* /*message*/,
                      std::size_t /*message_size*/, const std::uint8_t* /*signature*/,
                      const std::uint8_t* /*shared*/, const std::uint8_t* /*context*/,
                      std::size_t /*context_size*/, const char* /*properties*/) {
  return 0;
}
int ossl_ed448_public_from_private(OSSL_LIB_CTX* /*library*/, std::uint8_t* /*shared*/,
                                   const std::uint8_t* /*own*/, const char* /*properties*/) {
  return 0;
}

// Passwords in TLS (SRP): 0.02 MB. Contexts are created without SRP, so its cipher suites are never
// offered.
int ssl_ctx_srp_ctx_init_intern(SSL_CTX* /*context*/) { return 1; }
int ssl_ctx_srp_ctx_free_intern(SSL_CTX* /*context*/) { return 1; }
int ssl_srp_ctx_init_intern(SSL* /*ssl*/) { return 1; }
int ssl_srp_ctx_free_intern(SSL* /*ssl*/) { return 1; }
int ssl_srp_server_param_with_username_intern(SSL* /*ssl*/, int* alert) {
  constexpr int kFatal = 2;
  *alert = SSL_AD_UNKNOWN_PSK_IDENTITY;
  return kFatal;
}
int ssl_srp_calc_a_param_intern(SSL* /*ssl*/) { return 0; }
int srp_generate_server_master_secret(SSL* /*ssl*/) { return 0; }
int srp_generate_client_master_secret(SSL* /*ssl*/) { return 0; }
int srp_verify_server_param(SSL* /*ssl*/) { return 0; }

// An HTTP client for downloading certificates and revocation lists: 0.02 MB.
BIO* OSSL_HTTP_get(const char* /*url*/, const char* /*proxy*/, const char* /*no_proxy*/,
                   BIO* /*bio*/, BIO* /*rbio*/, OSSL_HTTP_bio_cb_t /*update*/, void* /*argument*/,
                   int /*buf_size*/, const STACK_OF(CONF_VALUE) * /*headers*/,
                   const char* /*expected_ct*/, int /*expect_asn1*/, size_t /*max_resp_len*/,
                   int /*timeout*/) {
  return nullptr;
}
void OSSL_CMP_log_close() {}

// Key and certificate stores with URIs, and PKCS#12, which such a store may use: 0.03 MB.
// Certificates come from one PEM file. No store can be opened, so none is read or closed.
OSSL_STORE_CTX* OSSL_STORE_open(const char* /*uri*/, const UI_METHOD* /*ui*/, void* /*ui_data*/,
                                OSSL_STORE_post_process_info_fn /*post_process*/,
                                void* /*argument*/) {
  return nullptr;
}
OSSL_STORE_CTX* OSSL_STORE_open_ex(const char* /*uri*/, OSSL_LIB_CTX* /*library*/,
                                   const char* /*properties*/, const UI_METHOD* /*ui*/,
                                   void* /*ui_data*/, const OSSL_PARAM* /*params*/,
                                   OSSL_STORE_post_process_info_fn /*post_process*/,
                                   void* /*argument*/) {
  return nullptr;
}
OSSL_STORE_INFO* OSSL_STORE_load(OSSL_STORE_CTX* /*store*/) { return nullptr; }
int OSSL_STORE_eof(OSSL_STORE_CTX* /*store*/) { return 1; }
int OSSL_STORE_error(OSSL_STORE_CTX* /*store*/) { return 1; }
int OSSL_STORE_close(OSSL_STORE_CTX* /*store*/) { return 0; }
int OSSL_STORE_find(OSSL_STORE_CTX* /*store*/, const OSSL_STORE_SEARCH* /*search*/) { return 0; }
OSSL_STORE_SEARCH* OSSL_STORE_SEARCH_by_name(X509_NAME* /*name*/) { return nullptr; }
void OSSL_STORE_SEARCH_free(OSSL_STORE_SEARCH* /*search*/) {}
int OSSL_STORE_INFO_get_type(const OSSL_STORE_INFO* /*info*/) { return 0; }
const char* OSSL_STORE_INFO_get0_NAME(const OSSL_STORE_INFO* /*info*/) { return nullptr; }
X509* OSSL_STORE_INFO_get0_CERT(const OSSL_STORE_INFO* /*info*/) { return nullptr; }
X509_CRL* OSSL_STORE_INFO_get0_CRL(const OSSL_STORE_INFO* /*info*/) { return nullptr; }
void OSSL_STORE_INFO_free(OSSL_STORE_INFO* /*info*/) {}

// Signed and encrypted messages (PKCS#7): 0.02 MB.
BIO* PKCS7_dataInit(PKCS7* /*letter*/, BIO* /*bio*/) { return nullptr; }
int PKCS7_dataFinal(PKCS7* /*letter*/, BIO* /*bio*/) { return 0; }
ASN1_OCTET_STRING* PKCS7_get_octet_string(PKCS7* /*letter*/) { return nullptr; }

// A certificate's signature as readable text: 0.01 MB.
int X509_signature_dump(BIO* /*bio*/, const ASN1_STRING* /*signature*/, int /*indent*/) {
  return 0;
}
// NOLINTEND(readability-identifier-naming)
