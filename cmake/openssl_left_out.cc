// Parts of OpenSSL that nobody here reaches, and that its other parts name all the same.
//
// Each function below is all that is asked of one or several objects of libcrypto.a and libssl.a,
// so that the linker leaves these where they are; what each group would take is behind it. Who
// comes here nevertheless is told that there is no such thing, in the way the caller would be told
// of a failure. A call from our own code to something that is left out shows when the file is
// linked: the linker then finds one of these functions twice.
//
// The signatures are those of OpenSSL 3.0; cmake/static_archives.cmake links this with no other.
// What one object asks of another may differ from one 3.0.x to the next; with those that were not
// tried the linker takes these functions, and the objects that it needs besides.
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

// What no header shows. (OpenSSL's names are its own.)
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
void* EC_nistp256_pre_comp_dup(void* table);
void* EC_nistp521_pre_comp_dup(void* table);
void EC_nistp224_pre_comp_free(void* table);
void EC_nistp256_pre_comp_free(void* table);
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

// The provider of what needs no cryptography: all of that is in openssl_provider.cc. 0.1 MB.
int ossl_base_provider_init(const OSSL_CORE_HANDLE* /*handle*/, const OSSL_DISPATCH* /*in*/,
                            const OSSL_DISPATCH** /*out*/, void** /*context*/) {
  return 0;
}

// What has names by which EVP_get_cipherbyname() and EVP_get_digestbyname() find it, all of it
// written a second time as it was before there were providers. Ciphers: 0.32 MB, and nobody wants
// one. Of digests, 0.05 MB, those that certificates and TLS name: it is by this table that a digest
// which a provider has made knows its own number.
void openssl_add_all_ciphers_int() {}

void openssl_add_all_digests_int() {
  EVP_add_digest(EVP_md5());
  EVP_add_digest(EVP_sha1());
  EVP_add_digest(EVP_sha224());
  EVP_add_digest(EVP_sha256());
  EVP_add_digest(EVP_sha384());
  EVP_add_digest(EVP_sha512());
}

// What errors say, of those parts that can fail on what somebody else has sent or written: 0.04 MB
// less. (libssl brings its own.) Of others the number is told.
int ossl_err_load_crypto_strings() {
  const bool loaded = ossl_err_load_ERR_strings() != 0 && ossl_err_load_ASN1_strings() != 0 &&
                      ossl_err_load_BIO_strings() != 0 && ossl_err_load_CRYPTO_strings() != 0 &&
                      ossl_err_load_EC_strings() != 0 && ossl_err_load_EVP_strings() != 0 &&
                      ossl_err_load_PEM_strings() != 0 && ossl_err_load_PROV_strings() != 0 &&
                      ossl_err_load_RAND_strings() != 0 && ossl_err_load_RSA_strings() != 0 &&
                      ossl_err_load_X509_strings() != 0 && ossl_err_load_X509V3_strings() != 0;
  return loaded ? 1 : 0;
}

// Engines: what OpenSSL 1 had in place of providers. 0.03 MB.
void engine_load_dynamic_int() {}
void engine_load_openssl_int() {}
void engine_load_padlock_int() {}
void engine_load_afalg_int() {}
void ENGINE_load_builtin_engines() {}

// What openssl.cnf may ask for; it is never read (net/http/tls.h). 0.02 MB.
void OPENSSL_load_builtin_modules() {}
void ssl_ctx_system_config(SSL_CTX* /*context*/) {}

// Methods of keys that an application or an engine brings; ours are the provider's. 0.02 MB. They
// are searched by their kinds, so there is one of each, and it can do nothing.
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

// Keys that TLS 1.3 has given up, or that only servers without elliptic curves ask for: 0.02 MB.
// One object decodes keys of all kinds, and names these for decoders that the provider does not
// list.
const OSSL_DISPATCH ossl_dh_keymgmt_functions[] = {{0, nullptr}};
const OSSL_DISPATCH ossl_dhx_keymgmt_functions[] = {{0, nullptr}};
const OSSL_DISPATCH ossl_dsa_keymgmt_functions[] = {{0, nullptr}};

// Three curves written a second time, by hand: 0.11 MB. P-256 has nistz256, which is faster still,
// and P-224 and P-521 are computed as P-384 is. The tables in question are made by these alone.
const EC_METHOD* EC_GFp_nistp224_method() { return EC_GFp_mont_method(); }
const EC_METHOD* EC_GFp_nistp521_method() { return EC_GFp_mont_method(); }
void* EC_nistp224_pre_comp_dup(void* /*table*/) { return nullptr; }
void* EC_nistp256_pre_comp_dup(void* /*table*/) { return nullptr; }
void* EC_nistp521_pre_comp_dup(void* /*table*/) { return nullptr; }
void EC_nistp224_pre_comp_free(void* /*table*/) {}
void EC_nistp256_pre_comp_free(void* /*table*/) {}
void EC_nistp521_pre_comp_free(void* /*table*/) {}

// Curves over binary fields, which TLS 1.3 has given up: 0.02 MB. Without a method there is no
// group of this kind, and so no point of one.
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

// The larger sisters of X25519 and Ed25519, which hardly anybody uses: 0.07 MB. The provider lists
// neither; their names remain in tables of the kinds of keys.
int ossl_x448(std::uint8_t* /*shared*/, const std::uint8_t* /*own*/, const std::uint8_t* /*peer*/) {
  return 0;
}
// It cannot fail, so it gives a point that everybody refuses.
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

// Passwords in TLS (SRP): 0.02 MB. Contexts are made without; a suite of this kind is then never
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

// A client for HTTP, which would fetch certificates and lists of revoked ones: 0.02 MB.
BIO* OSSL_HTTP_get(const char* /*url*/, const char* /*proxy*/, const char* /*no_proxy*/,
                   BIO* /*bio*/, BIO* /*rbio*/, OSSL_HTTP_bio_cb_t /*update*/, void* /*argument*/,
                   int /*buf_size*/, const STACK_OF(CONF_VALUE) * /*headers*/,
                   const char* /*expected_ct*/, int /*expect_asn1*/, size_t /*max_resp_len*/,
                   int /*timeout*/) {
  return nullptr;
}
void OSSL_CMP_log_close() {}

// Stores of keys and certificates with addresses, and PKCS#12, which such a store may be: 0.03 MB.
// Certificates come from one file of PEM. Nothing can be opened, so nothing is read or closed.
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

// Signed and encrypted letters: 0.02 MB.
BIO* PKCS7_dataInit(PKCS7* /*letter*/, BIO* /*bio*/) { return nullptr; }
int PKCS7_dataFinal(PKCS7* /*letter*/, BIO* /*bio*/) { return 0; }
ASN1_OCTET_STRING* PKCS7_get_octet_string(PKCS7* /*letter*/) { return nullptr; }

// A certificate's signature as text for people: 0.01 MB.
int X509_signature_dump(BIO* /*bio*/, const ASN1_STRING* /*signature*/, int /*indent*/) {
  return 0;
}
// NOLINTEND(readability-identifier-naming)
