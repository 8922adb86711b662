// An emulator of Google Cloud Storage behind a proxy that requires tokens like Google's servers:
// how the real binary authenticates, and what it does with the tokens.
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "tests/process/faulty_proxy.h"
#include "tests/process/on_store.h"
#include "tests/process/process_test.h"
#include "tests/support/mirror_server.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test_support::MirrorConnection;
using test_support::MirrorRequest;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kOpenSsl = "/usr/bin/openssl";

std::string json_answer(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

// Decodes a part of a JWT.
std::string from_base64_of_url(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bytes;
  unsigned bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    bits = (bits << 6U) | static_cast<unsigned>(kDigits.find(c));
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>((bits >> count) & 0xFFU);
    }
  }
  return bytes;
}

class GcsTest : public OnStore<GcsServer> {
 protected:
  void SetUp() override {
    OnStore::SetUp();
    if (!server_) return;
    guard_.emplace(
        server_->port(), [this](const ProxiedRequest& request) { return guard(request); },
        FaultMeans{.answer = json_answer(
                       "401 Unauthorized",
                       R"({"error": {"code": 401, "message": "Invalid Credentials"}})")});
  }

  // Returns "token-1", "token-2", .. for each request of any kind.
  void give_token(const MirrorRequest& request, const MirrorConnection& connection) {
    const std::string length = request.header("content-length");
    const std::string body = length.empty() ? "" : connection.read_body(std::stoul(length));
    const std::scoped_lock lock(mutex_);
    asked_.push_back(body);
    flavors_.push_back(request.header("metadata-flavor"));
    const std::string token = "token-" + std::to_string(++given_);
    // The response for a service account's token has other field names.
    const bool is_account = request.target.find(":generateAccessToken") != std::string::npos;
    connection.respond(
        "200 OK", R"({")" + std::string(is_account ? "accessToken" : "access_token") + R"(": ")" +
                      token + R"(", "expires_in": 3599, "token_type": "Bearer"})");
  }

  // Passes only requests with the token number good_.
  Fault guard(const ProxiedRequest& request) {
    const std::scoped_lock lock(mutex_);
    const std::string wanted = "\r\nAuthorization: Bearer token-" + std::to_string(good_) + "\r\n";
    return request.head.find(wanted) == std::string::npos ? Fault::kAnswer : Fault::kNone;
  }

  // Variables of a client without credentials.
  [[nodiscard]] Variables nobody() const {
    return {{"STORAGE_EMULATOR_HOST", ""},
            {"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE",
             "http://127.0.0.1:" + std::to_string(guard_->port()) + "/"},
            {"CLOUDSDK_CONFIG", scratch() / "gcloud"},
            {"NO_GCE_CHECK", "true"}};
  }

  std::string service_account(const std::string& private_key) {
    const json file = {{"type", "service_account"},
                       {"client_email", "trainer@project.iam.gserviceaccount.com"},
                       {"private_key_id", "key-1"},
                       {"private_key", private_key},
                       {"token_uri", tokens_.url("/token")}};
    std::ofstream(scratch() / "account.json") << file.dump();
    return scratch() / "account.json";
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;    // bodies
  std::vector<std::string> flavors_;  // Metadata-Flavor
  unsigned given_ = 0;
  unsigned good_ = 1;  // the number of the accepted token
  test_support::MirrorServer tokens_{
      [this](const auto& request, const auto& connection) { give_token(request, connection); }};
  std::optional<FaultyProxy> guard_;
};

TEST_F(GcsTest, AServiceAccountIsChangedForATokenAndForAnotherOnceThatHasEnded) {
  if (!fs::exists(kOpenSsl)) {
    test_support::skip_without_engine(std::string(kOpenSsl) + ", which makes keys, is missing");
    return;
  }
  const auto open_ssl = [&](const Words& words) {
    EXPECT_TRUE(exits(run_program(kOpenSsl, words), 0));
  };
  open_ssl({"genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "key.pem"});
  open_ssl({"pkey", "-in", "key.pem", "-pubout", "-out", "public.pem"});
  Variables who = nobody();
  who["GOOGLE_APPLICATION_CREDENTIALS"] = service_account(read("key.pem"));
  write("a", 1000);
  Process& up = done({"cp", "a", "gs://bucket/a", "--log_level=debug"}, who);

  ASSERT_EQ(asked_.size(), 1U);
  const std::string jwt = captured(asked_.front(), "assertion=([A-Za-z0-9._-]+)$");
  const std::size_t first = jwt.find('.');
  const std::size_t second = jwt.find('.', first + 1);
  EXPECT_THAT(asked_.front(),
              HasSubstr("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&"));
  const json claims = json::parse(from_base64_of_url(jwt.substr(first + 1, second - first - 1)));
  EXPECT_EQ(claims["iss"], "trainer@project.iam.gserviceaccount.com");
  EXPECT_EQ(claims["aud"], tokens_.url("/token"));
  EXPECT_EQ(claims["exp"].get<int>() - claims["iat"].get<int>(), 3600);
  EXPECT_EQ(json::parse(from_base64_of_url(jwt.substr(0, first)))["kid"], "key-1");
  std::ofstream(scratch() / "signed") << jwt.substr(0, second);
  std::ofstream(scratch() / "signature") << from_base64_of_url(jwt.substr(second + 1));
  open_ssl({"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "signed"});

  const std::string said = up.standard_error();
  EXPECT_THAT(said, AllOf(HasSubstr("account.json"), Not(HasSubstr("token-1")),
                          Not(HasSubstr("PRIVATE KEY")), Not(HasSubstr(jwt))));
  // The proxy accepts only the second token, so the client must request another after the first is
  // rejected.
  good_ = given_ + 2;
  done({"cp", "gs://bucket/a", "back"}, who);
  EXPECT_EQ(given_, good_);
  EXPECT_EQ(read("back"), read("a"));
}

TEST_F(GcsTest, AUserWhoHasLoggedInIsFoundWhereGcloudKeepsThat) {
  fs::create_directories(scratch() / "gcloud");
  std::ofstream(scratch() / "gcloud" / "application_default_credentials.json") << json{
      {"type", "authorized_user"},
      {"client_id", "id"},
      {"client_secret", "a secret"},
      {"refresh_token", "1//refresh"},
      {"token_uri", tokens_.url("/token")}}.dump();
  Process& list = done({"ls", "gs://bucket", "--log_level=debug"}, nobody());
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_.front(),
            "grant_type=refresh_token&client_id=id&client_secret=a%20secret&"
            "refresh_token=1%2F%2Frefresh");
  EXPECT_THAT(list.standard_error(), Not(HasSubstr("refresh_token")));
}

// The test's token servers answer as Google's documentation describes.
TEST_F(GcsTest, AFederatedIdentityIsExchangedForATokenOfTheServiceAccount) {
  std::ofstream(scratch() / "subject") << "subject.of.file\n";
  json file = {{"type", "external_account"},
               {"audience", "//iam.googleapis.com/projects/1/pool"},
               {"subject_token_type", "urn:ietf:params:oauth:token-type:jwt"},
               {"token_url", tokens_.url("/v1/token")},
               {"credential_source", {{"file", scratch() / "subject"}}}};
  const auto write_file = [&] { std::ofstream(scratch() / "external.json") << file.dump(); };
  write_file();
  Variables who = nobody();
  who["GOOGLE_APPLICATION_CREDENTIALS"] = scratch() / "external.json";
  Process& alone = done({"ls", "gs://bucket", "--log_level=debug"}, who);
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_THAT(asked_.front(), AllOf(HasSubstr("audience=%2F%2Fiam.googleapis.com%2Fprojects%2F1"),
                                    HasSubstr("devstorage.read_write"),
                                    HasSubstr("&subject_token=subject.of.file")));
  EXPECT_THAT(alone.standard_error(), AllOf(HasSubstr("external.json"), Not(HasSubstr("token-1")),
                                            Not(HasSubstr("subject.of.file"))));

  file["credential_source"] = {
      {"url", tokens_.url("/subject")},
      {"headers", {{"Metadata-Flavor", "Theirs"}}},
      {"format", {{"type", "json"}, {"subject_token_field_name", "access_token"}}}};
  file["service_account_impersonation_url"] = tokens_.url("/account:generateAccessToken");
  write_file();
  good_ = 4;  // "token-2" is the subject, "token-3" its access token
  write("a", 1000);
  done({"cp", "a", "gs://bucket/a"}, who);
  ASSERT_EQ(asked_.size(), 4U);
  EXPECT_EQ(flavors_[1], "Theirs");
  EXPECT_THAT(asked_[2], AllOf(HasSubstr("cloud-platform"), HasSubstr("&subject_token=token-2")));
  EXPECT_EQ(json::parse(asked_[3])["lifetime"], "3600s");
  EXPECT_EQ(tokens_.requests()[3].header("authorization"), "Bearer token-3");

  fs::remove(scratch() / "subject");
  file["credential_source"] = {{"file", scratch() / "subject"}};
  write_file();
  EXPECT_THAT(refusal({"ls", "gs://bucket"}, kExitBadData, who),
              HasSubstr("there is no subject token in \"" + (scratch() / "subject").string()));
}

TEST_F(GcsTest, AMachineHasItsTokenFromItsMetadataServer) {
  Variables who = nobody();
  who["NO_GCE_CHECK"] = "";
  who["GCE_METADATA_HOST"] = "127.0.0.1:" + std::to_string(tokens_.port());
  done({"ls", "gs://bucket"}, who);
  EXPECT_EQ(flavors_, std::vector<std::string>{"Google"});
  EXPECT_EQ(tokens_.requests().front().target,
            "/computeMetadata/v1/instance/service-accounts/default/token");
}

TEST_F(GcsTest, MissingCredentialsAreReportedInOneSentence) {
  EXPECT_THAT(refusal({"ls", "gs://bucket"}, kExitBadData, nobody()),
              AllOf(HasSubstr("no credentials were found: neither GOOGLE_APPLICATION_CREDENTIALS"),
                    HasSubstr("metadata server")));
  Variables who = nobody();
  who["GOOGLE_APPLICATION_CREDENTIALS"] = "none.json";
  EXPECT_THAT(
      refusal({"ls", "gs://bucket"}, kExitBadData, who),
      HasSubstr("GOOGLE_APPLICATION_CREDENTIALS: \"none.json\" cannot be read: No such file"));
  std::ofstream(scratch() / "other.json") << R"({"type": "impersonated_service_account"})";
  who["GOOGLE_APPLICATION_CREDENTIALS"] = "other.json";
  EXPECT_THAT(refusal({"ls", "gs://bucket"}, kExitBadData, who),
              HasSubstr("is of the type \"impersonated_service_account\"; known are "
                        "service_account, authorized_user and external_account"));
  std::ofstream(scratch() / "other.json") << R"({"type": "external_account", "audience": "a",
      "subject_token_type": "t", "credential_source": {"environment_id": "aws1", "url": "u"}})";
  EXPECT_THAT(refusal({"ls", "gs://bucket"}, kExitBadData, who),
              HasSubstr("has a credential_source that is neither a file nor a url"));
  who["GOOGLE_APPLICATION_CREDENTIALS"] = service_account("no key");
  EXPECT_THAT(refusal({"ls", "gs://bucket"}, kExitBadData, who),
              AllOf(HasSubstr("private_key is not an RSA key in PEM"), Not(HasSubstr("no key"))));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(GcsTest, ATokenThatIsRefusedForGoodIsSaidInOneSentence) {
  Variables who = nobody();
  who["NO_GCE_CHECK"] = "";
  who["GCE_METADATA_HOST"] = "127.0.0.1:" + std::to_string(tokens_.port());
  good_ = 0;
  EXPECT_THAT(refusal({"ls", "gs://bucket"}, kExitBadData, who),
              AllOf(HasSubstr("GET gs://bucket: the store answered 401 (Unauthorized): Invalid "
                              "Credentials: the credentials have expired"),
                    Not(HasSubstr("token-"))));
  EXPECT_EQ(given_, 2U);
}

TEST_F(GcsTest, NoPartOfALargeFileIsLeftAndWhatHasTheNameIsReplaced) {
  write("large.bin", 50'000'001);
  done({"cp", "large.bin", "gs://bucket/large.bin"});
  const std::string text = write("large.bin", 40'000'002);
  done({"cp", "large.bin", "gs://bucket/large.bin"});
  const json found = json::parse(done({"ls", "gs://bucket", "--json"}).standard_output());
  ASSERT_EQ(found["entries"].size(), 1U);
  EXPECT_EQ(found["entries"][0]["bytes"], 40'000'002);
  done({"cp", "gs://bucket/large.bin", "back"});
  EXPECT_TRUE(read("back") == text);
  EXPECT_THAT(refusal({"ls", "gs://no-such-bucket"}, kExitBadData),
              HasSubstr("there is no such bucket"));
}

}  // namespace
}  // namespace disttf::test_process
