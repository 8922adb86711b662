// OpenSSL's default provider, reduced to what TLS 1.2 and 1.3 need.
//
// A provider is a table from names to implementations. OpenSSL's own table names all of its
// algorithms, so a static executable would contain all of them: 0.6 MB of ciphers that TLS has
// removed and of unused formats. The tables below replace it: the linker finds
// ossl_default_provider_init() here and leaves OpenSSL's out. The implementations are those of
// libcrypto.a, whose names are the same in every 3.0. cmake/static_archives.cmake checks that they
// exist; if one is missing, the whole of OpenSSL is linked.
//
// To add an algorithm, add its row: `openssl list -all-algorithms` lists the names, `nm
// libcrypto.a` the tables. tests/net/product_tls_test.cc checks that all required algorithms are
// there. An algorithm that is not listed fails like one that OpenSSL does not implement. In
// particular there are no encoders: the executable reads keys and certificates, and writes none.
#include <openssl/bio.h>
#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/opensslv.h>
#include <openssl/params.h>

// Symbols of libcrypto.a that no header declares. (OpenSSL chooses the names.)
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
struct prov_ctx_st;
prov_ctx_st* ossl_prov_ctx_new();
void ossl_prov_ctx_free(prov_ctx_st* context);
void ossl_prov_ctx_set0_libctx(prov_ctx_st* context, OSSL_LIB_CTX* library);
void ossl_prov_ctx_set0_handle(prov_ctx_st* context, const OSSL_CORE_HANDLE* handle);
void ossl_prov_ctx_set0_core_bio_method(prov_ctx_st* context, BIO_METHOD* method);
BIO_METHOD* ossl_prov_ctx_get0_core_bio_method(prov_ctx_st* context);
BIO_METHOD* ossl_bio_prov_init_bio_method();
int ossl_prov_bio_from_dispatch(const OSSL_DISPATCH* functions);
int ossl_prov_seeding_from_dispatch(const OSSL_DISPATCH* functions);
int ossl_prov_get_capabilities(void* context, const char* capability, OSSL_CALLBACK* callback,
                               void* argument);
int ossl_prov_is_running();

// Digests.
extern const OSSL_DISPATCH ossl_md5_functions[];
extern const OSSL_DISPATCH ossl_sha1_functions[];
extern const OSSL_DISPATCH ossl_sha224_functions[];
extern const OSSL_DISPATCH ossl_sha256_functions[];
extern const OSSL_DISPATCH ossl_sha384_functions[];
extern const OSSL_DISPATCH ossl_sha512_functions[];
// Ciphers.
extern const OSSL_DISPATCH ossl_aes128gcm_functions[];
extern const OSSL_DISPATCH ossl_aes256gcm_functions[];
extern const OSSL_DISPATCH ossl_aes128cbc_functions[];
extern const OSSL_DISPATCH ossl_aes256cbc_functions[];
extern const OSSL_DISPATCH ossl_aes256ctr_functions[];
extern const OSSL_DISPATCH ossl_aes256ecb_functions[];
extern const OSSL_DISPATCH ossl_chacha20_ossl_poly1305_functions[];
// Message authentication codes, key derivation, random numbers.
extern const OSSL_DISPATCH ossl_hmac_functions[];
extern const OSSL_DISPATCH ossl_kdf_hkdf_functions[];
extern const OSSL_DISPATCH ossl_kdf_tls1_3_kdf_functions[];
extern const OSSL_DISPATCH ossl_kdf_tls1_prf_functions[];
extern const OSSL_DISPATCH ossl_kdf_pbkdf2_functions[];
extern const OSSL_DISPATCH ossl_drbg_ctr_functions[];
extern const OSSL_DISPATCH ossl_seed_src_functions[];
// Key types and their operations.
extern const OSSL_DISPATCH ossl_rsa_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_rsapss_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_ec_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_x25519_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_ed25519_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_mac_legacy_keymgmt_functions[];
extern const OSSL_DISPATCH ossl_ecdh_keyexch_functions[];
extern const OSSL_DISPATCH ossl_x25519_keyexch_functions[];
extern const OSSL_DISPATCH ossl_rsa_signature_functions[];
extern const OSSL_DISPATCH ossl_ecdsa_signature_functions[];
extern const OSSL_DISPATCH ossl_ed25519_signature_functions[];
extern const OSSL_DISPATCH ossl_mac_legacy_hmac_signature_functions[];
extern const OSSL_DISPATCH ossl_rsa_asym_cipher_functions[];
// Key decoders.
extern const OSSL_DISPATCH ossl_pem_to_der_decoder_functions[];
extern const OSSL_DISPATCH ossl_EncryptedPrivateKeyInfo_der_to_der_decoder_functions[];
extern const OSSL_DISPATCH ossl_SubjectPublicKeyInfo_der_to_der_decoder_functions[];
extern const OSSL_DISPATCH ossl_PrivateKeyInfo_der_to_rsa_decoder_functions[];
extern const OSSL_DISPATCH ossl_SubjectPublicKeyInfo_der_to_rsa_decoder_functions[];
extern const OSSL_DISPATCH ossl_type_specific_keypair_der_to_rsa_decoder_functions[];
extern const OSSL_DISPATCH ossl_PrivateKeyInfo_der_to_rsapss_decoder_functions[];
extern const OSSL_DISPATCH ossl_SubjectPublicKeyInfo_der_to_rsapss_decoder_functions[];
extern const OSSL_DISPATCH ossl_PrivateKeyInfo_der_to_ec_decoder_functions[];
extern const OSSL_DISPATCH ossl_SubjectPublicKeyInfo_der_to_ec_decoder_functions[];
extern const OSSL_DISPATCH ossl_type_specific_no_pub_der_to_ec_decoder_functions[];
extern const OSSL_DISPATCH ossl_PrivateKeyInfo_der_to_x25519_decoder_functions[];
extern const OSSL_DISPATCH ossl_SubjectPublicKeyInfo_der_to_x25519_decoder_functions[];
extern const OSSL_DISPATCH ossl_PrivateKeyInfo_der_to_ed25519_decoder_functions[];
extern const OSSL_DISPATCH ossl_SubjectPublicKeyInfo_der_to_ed25519_decoder_functions[];

int ossl_default_provider_init(const OSSL_CORE_HANDLE* handle, const OSSL_DISPATCH* in,
                               const OSSL_DISPATCH** out, void** context);
}
// NOLINTEND(readability-identifier-naming)

namespace {

// The property string of OpenSSL's own provider: contexts may request algorithms with it.
constexpr char kDefault[] = "provider=default";
constexpr char kPrivateKey[] = "provider=default,input=der,structure=PrivateKeyInfo";
constexpr char kPublicKey[] = "provider=default,input=der,structure=SubjectPublicKeyInfo";
constexpr char kOwnStructure[] = "provider=default,input=der,structure=type-specific";

constexpr char kRsa[] = "RSA:rsaEncryption:1.2.840.113549.1.1.1";
constexpr char kRsaPss[] = "RSA-PSS:RSASSA-PSS:1.2.840.113549.1.1.10";
constexpr char kEc[] = "EC:id-ecPublicKey:1.2.840.10045.2.1";
constexpr char kX25519[] = "X25519:1.3.101.110";
constexpr char kEd25519[] = "ED25519:1.3.101.112";

constexpr OSSL_ALGORITHM kEnd = {nullptr, nullptr, nullptr, nullptr};

// MD5 is not used for secrets, only for the checksums with which object stores check uploads.
const OSSL_ALGORITHM kDigests[] = {
    {"SHA1:SHA-1:SSL3-SHA1:1.3.14.3.2.26", kDefault, ossl_sha1_functions, nullptr},
    {"SHA2-224:SHA-224:SHA224:2.16.840.1.101.3.4.2.4", kDefault, ossl_sha224_functions, nullptr},
    {"SHA2-256:SHA-256:SHA256:2.16.840.1.101.3.4.2.1", kDefault, ossl_sha256_functions, nullptr},
    {"SHA2-384:SHA-384:SHA384:2.16.840.1.101.3.4.2.2", kDefault, ossl_sha384_functions, nullptr},
    {"SHA2-512:SHA-512:SHA512:2.16.840.1.101.3.4.2.3", kDefault, ossl_sha512_functions, nullptr},
    {"MD5:SSL3-MD5:1.2.840.113549.2.5", kDefault, ossl_md5_functions, nullptr},
    kEnd};

// GCM and ChaCha20 are for the record layer; CBC is also for encrypted private keys and session
// tickets. The random number generator uses CTR and ECB.
const OSSL_ALGORITHM kCiphers[] = {
    {"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46", kDefault, ossl_aes256gcm_functions,
     nullptr},
    {"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", kDefault, ossl_aes128gcm_functions,
     nullptr},
    {"ChaCha20-Poly1305", kDefault, ossl_chacha20_ossl_poly1305_functions, nullptr},
    {"AES-256-CBC:AES256:2.16.840.1.101.3.4.1.42", kDefault, ossl_aes256cbc_functions, nullptr},
    {"AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2", kDefault, ossl_aes128cbc_functions, nullptr},
    {"AES-256-CTR", kDefault, ossl_aes256ctr_functions, nullptr},
    {"AES-256-ECB:2.16.840.1.101.3.4.1.41", kDefault, ossl_aes256ecb_functions, nullptr},
    kEnd};

const OSSL_ALGORITHM kMacs[] = {{"HMAC", kDefault, ossl_hmac_functions, nullptr}, kEnd};

const OSSL_ALGORITHM kDerivations[] = {
    {"HKDF", kDefault, ossl_kdf_hkdf_functions, nullptr},
    {"TLS13-KDF", kDefault, ossl_kdf_tls1_3_kdf_functions, nullptr},
    {"TLS1-PRF", kDefault, ossl_kdf_tls1_prf_functions, nullptr},
    {"PBKDF2:1.2.840.113549.1.5.12", kDefault, ossl_kdf_pbkdf2_functions, nullptr},
    kEnd};

const OSSL_ALGORITHM kRandom[] = {{"CTR-DRBG", kDefault, ossl_drbg_ctr_functions, nullptr},
                                  {"SEED-SRC", kDefault, ossl_seed_src_functions, nullptr},
                                  kEnd};

// (libssl stores HMAC input in a key: for PSK binders and for TLS 1.2's CBC suites.)
const OSSL_ALGORITHM kKeys[] = {{kRsa, kDefault, ossl_rsa_keymgmt_functions, nullptr},
                                {kRsaPss, kDefault, ossl_rsapss_keymgmt_functions, nullptr},
                                {kEc, kDefault, ossl_ec_keymgmt_functions, nullptr},
                                {kX25519, kDefault, ossl_x25519_keymgmt_functions, nullptr},
                                {kEd25519, kDefault, ossl_ed25519_keymgmt_functions, nullptr},
                                {"HMAC", kDefault, ossl_mac_legacy_keymgmt_functions, nullptr},
                                kEnd};

const OSSL_ALGORITHM kExchanges[] = {{"ECDH", kDefault, ossl_ecdh_keyexch_functions, nullptr},
                                     {kX25519, kDefault, ossl_x25519_keyexch_functions, nullptr},
                                     kEnd};

const OSSL_ALGORITHM kSignatures[] = {
    {kRsa, kDefault, ossl_rsa_signature_functions, nullptr},
    {"ECDSA", kDefault, ossl_ecdsa_signature_functions, nullptr},
    {kEd25519, kDefault, ossl_ed25519_signature_functions, nullptr},
    {"HMAC", kDefault, ossl_mac_legacy_hmac_signature_functions, nullptr},
    kEnd};

// For servers that support nothing newer than TLS 1.2 with RSA key exchange.
const OSSL_ALGORITHM kAsymmetricCiphers[] = {
    {kRsa, kDefault, ossl_rsa_asym_cipher_functions, nullptr}, kEnd};

const OSSL_ALGORITHM kDecoders[] = {
    {kRsa, kPrivateKey, ossl_PrivateKeyInfo_der_to_rsa_decoder_functions, nullptr},
    {kRsa, kPublicKey, ossl_SubjectPublicKeyInfo_der_to_rsa_decoder_functions, nullptr},
    {kRsa, kOwnStructure, ossl_type_specific_keypair_der_to_rsa_decoder_functions, nullptr},
    {kRsaPss, kPrivateKey, ossl_PrivateKeyInfo_der_to_rsapss_decoder_functions, nullptr},
    {kRsaPss, kPublicKey, ossl_SubjectPublicKeyInfo_der_to_rsapss_decoder_functions, nullptr},
    {kEc, kPrivateKey, ossl_PrivateKeyInfo_der_to_ec_decoder_functions, nullptr},
    {kEc, kPublicKey, ossl_SubjectPublicKeyInfo_der_to_ec_decoder_functions, nullptr},
    {kEc, kOwnStructure, ossl_type_specific_no_pub_der_to_ec_decoder_functions, nullptr},
    {kX25519, kPrivateKey, ossl_PrivateKeyInfo_der_to_x25519_decoder_functions, nullptr},
    {kX25519, kPublicKey, ossl_SubjectPublicKeyInfo_der_to_x25519_decoder_functions, nullptr},
    {kEd25519, kPrivateKey, ossl_PrivateKeyInfo_der_to_ed25519_decoder_functions, nullptr},
    {kEd25519, kPublicKey, ossl_SubjectPublicKeyInfo_der_to_ed25519_decoder_functions, nullptr},
    {"DER", kPublicKey, ossl_SubjectPublicKeyInfo_der_to_der_decoder_functions, nullptr},
    {"DER", "provider=default,input=der,structure=EncryptedPrivateKeyInfo",
     ossl_EncryptedPrivateKeyInfo_der_to_der_decoder_functions, nullptr},
    {"DER", "provider=default,input=pem", ossl_pem_to_der_decoder_functions, nullptr},
    kEnd};

const OSSL_ALGORITHM* query(void* /*context*/, int operation, int* no_cache) {
  *no_cache = 0;
  switch (operation) {
    case OSSL_OP_DIGEST:
      return kDigests;
    case OSSL_OP_CIPHER:
      return kCiphers;
    case OSSL_OP_MAC:
      return kMacs;
    case OSSL_OP_KDF:
      return kDerivations;
    case OSSL_OP_RAND:
      return kRandom;
    case OSSL_OP_KEYMGMT:
      return kKeys;
    case OSSL_OP_KEYEXCH:
      return kExchanges;
    case OSSL_OP_SIGNATURE:
      return kSignatures;
    case OSSL_OP_ASYM_CIPHER:
      return kAsymmetricCiphers;
    case OSSL_OP_DECODER:
      return kDecoders;
    default:
      return nullptr;
  }
}

void tear_down(void* context) {
  auto* const own = static_cast<prov_ctx_st*>(context);
  BIO_meth_free(ossl_prov_ctx_get0_core_bio_method(own));
  ossl_prov_ctx_free(own);
}

const OSSL_PARAM* gettable_params(void* /*context*/) {
  static const OSSL_PARAM params[] = {{OSSL_PROV_PARAM_NAME, OSSL_PARAM_UTF8_PTR, nullptr, 0, 0},
                                      {OSSL_PROV_PARAM_VERSION, OSSL_PARAM_UTF8_PTR, nullptr, 0, 0},
                                      {OSSL_PROV_PARAM_STATUS, OSSL_PARAM_INTEGER, nullptr, 0, 0},
                                      {nullptr, 0, nullptr, 0, 0}};
  return params;
}

// Stores `text` in the parameter `name`, if the caller requested it. Returns false on failure.
bool tell(OSSL_PARAM* params, const char* name, const char* text) {
  OSSL_PARAM* const param = OSSL_PARAM_locate(params, name);
  return param == nullptr || OSSL_PARAM_set_utf8_ptr(param, text) == 1;
}

int get_params(void* /*context*/, OSSL_PARAM* params) {
  OSSL_PARAM* const status = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_STATUS);
  const bool told =
      tell(params, OSSL_PROV_PARAM_NAME, "disttf's choice of OpenSSL's default provider") &&
      tell(params, OSSL_PROV_PARAM_VERSION, OPENSSL_VERSION_STR) &&
      (status == nullptr || OSSL_PARAM_set_int(status, ossl_prov_is_running()) == 1);
  return told ? 1 : 0;
}

using Function = void (*)();

const OSSL_DISPATCH kProvider[] = {
    {OSSL_FUNC_PROVIDER_TEARDOWN, reinterpret_cast<Function>(&tear_down)},
    {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, reinterpret_cast<Function>(&gettable_params)},
    {OSSL_FUNC_PROVIDER_GET_PARAMS, reinterpret_cast<Function>(&get_params)},
    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, reinterpret_cast<Function>(&query)},
    // TLS group names. libssl leaves out groups whose keys no provider supports.
    {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, reinterpret_cast<Function>(&ossl_prov_get_capabilities)},
    {0, nullptr}};

}  // namespace

// OpenSSL calls this once for each of its contexts, on any thread.
int ossl_default_provider_init(const OSSL_CORE_HANDLE* handle, const OSSL_DISPATCH* in,
                               const OSSL_DISPATCH** out, void** context) {
  if (ossl_prov_bio_from_dispatch(in) == 0 || ossl_prov_seeding_from_dispatch(in) == 0) return 0;
  OSSL_FUNC_core_get_libctx_fn* get_library = nullptr;
  for (; in->function_id != 0; ++in) {
    if (in->function_id == OSSL_FUNC_CORE_GET_LIBCTX) get_library = OSSL_FUNC_core_get_libctx(in);
  }
  if (get_library == nullptr) return 0;
  prov_ctx_st* const own = ossl_prov_ctx_new();
  BIO_METHOD* const method = ossl_bio_prov_init_bio_method();
  if (own == nullptr || method == nullptr) {
    BIO_meth_free(method);
    ossl_prov_ctx_free(own);
    return 0;
  }
  ossl_prov_ctx_set0_libctx(own, reinterpret_cast<OSSL_LIB_CTX*>(get_library(handle)));
  ossl_prov_ctx_set0_handle(own, handle);
  ossl_prov_ctx_set0_core_bio_method(own, method);
  *context = own;
  *out = kProvider;
  return 1;
}
