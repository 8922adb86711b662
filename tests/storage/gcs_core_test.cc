// What is decided of Google's Cloud Storage without a socket.
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "net/wire/base64.h"
#include "storage/store/core/gcs_answers.h"
#include "storage/store/core/google_identity.h"
#include "storage/store/core/store_answers.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(GcsChecksum, IsFourBytesInBase64) {
  EXPECT_EQ(crc32c_text(0xE3069283), "4waSgw==");
  EXPECT_EQ(crc32c_from("4waSgw=="), 0xE3069283U);
  EXPECT_EQ(crc32c_in("crc32c=4waSgw==, md5=abc"), 0xE3069283U);
  EXPECT_EQ(crc32c_in("md5=abc,crc32c=4waSgw=="), 0xE3069283U);
  for (const char* none : {"", "4waSgw", "4waSg===", "4waSgx==", "4wa*gw==", "4waSgw==4waSgw=="}) {
    EXPECT_FALSE(crc32c_from(none)) << none;
  }
  EXPECT_FALSE(crc32c_in("md5=abc"));
}

constexpr const char* kObject =
    R"({"name": "run/a", "size": "123", "generation": "1700000000000001", "crc32c": "4waSgw==",
        "updated": "2026-11-22T08:30:00.123Z"})";

TEST(GcsObject, IsReadWithItsGenerationAsTheEtag) {
  const auto object = read_gcs_object(kObject);
  ASSERT_TRUE(object);
  EXPECT_EQ(object->key, "run/a");
  EXPECT_EQ(object->size_bytes, 123U);
  EXPECT_EQ(object->etag, "1700000000000001");
  EXPECT_EQ(object->crc32c, 0xE3069283U);
  EXPECT_EQ(object->modified, time_from_iso("2026-11-22T08:30:00Z"));
}

TEST(GcsObject, ThatLacksSomethingIsNone) {
  for (const char* none :
       {"", "[]", "{}", R"({"name": "a", "size": "1", "generation": "1"})",
        R"({"name": "a", "size": "-1", "generation": "1", "updated": "2026-11-22T08:30:00Z"})",
        R"({"name": "a", "size": "1", "generation": "x", "updated": "2026-11-22T08:30:00Z"})",
        R"({"name": "a", "size": 1, "generation": "1", "updated": "2026-11-22T08:30:00Z"})"}) {
    EXPECT_FALSE(read_gcs_object(none)) << none;
  }
}

TEST(GcsListing, HasObjectsFoldersAndTheNextPage) {
  const auto page =
      read_gcs_listing(std::string(R"({"kind": "storage#objects", "items": [)") + kObject +
                       R"(], "prefixes": ["run/b/"], "nextPageToken": "more"})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->listing.objects.size(), 1U);
  EXPECT_EQ(page->listing.objects.front().key, "run/a");
  EXPECT_THAT(page->listing.folders, ElementsAre("run/b/"));
  EXPECT_EQ(page->next, "more");
  EXPECT_TRUE(read_gcs_listing(R"({"kind": "storage#objects"})"));
  EXPECT_FALSE(read_gcs_listing(R"({"items": [{}]})"));
  EXPECT_FALSE(read_gcs_listing("cut off"));
}

TEST(GcsCopies, GoOnUntilTheyAreDone) {
  EXPECT_TRUE(read_gcs_copy(R"({"done": true})")->is_done);
  EXPECT_EQ(read_gcs_copy(R"({"done": false, "rewriteToken": "t"})")->token, "t");
  EXPECT_FALSE(read_gcs_copy(R"({"done": false})"));
  EXPECT_FALSE(read_gcs_copy("{}"));
}

TEST(StoreRefusals, SayWhatTheStoreSaysAndWhetherToAskAgain) {
  const auto said = [](const std::string& message, const std::string& why) {
    return R"({"error": {"code": 1, "message": ")" + message + R"(", "errors": [{"reason": ")" +
           why + R"("}]}})";
  };
  const StoreRefusal denied =
      gcs_refusal(403, "Forbidden", said("x does not have access", "f"), false);
  EXPECT_EQ(denied.error, StoreError::kDenied);
  EXPECT_FALSE(denied.may_pass);
  EXPECT_EQ(denied.sentence, "the store answered 403 (Forbidden): x does not have access");
  EXPECT_TRUE(gcs_refusal(403, "", said("slow", "rateLimitExceeded"), false).may_pass);
  EXPECT_TRUE(gcs_refusal(503, "", "<html>", false).may_pass);
  EXPECT_EQ(gcs_refusal(401, "", "", false).error, StoreError::kExpired);
  EXPECT_EQ(gcs_refusal(404, "", "Not Found", false).error, StoreError::kNotFound);
  EXPECT_EQ(gcs_refusal(404, "", "Not Found", true).error, StoreError::kNoBucket);
  EXPECT_EQ(
      gcs_refusal(404, "", said("The specified bucket does not exist.", "notFound"), false).error,
      StoreError::kNoBucket);
}

TEST(GcsUploads, HaveWhatIsSaidOfTheObjectBeforeItsBytes) {
  const std::string bytes = "123456789";
  EXPECT_EQ(
      text_of(gcs_upload_body(std::as_bytes(std::span(bytes)), 0xE3069283, "line")),
      "--line\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
      R"({"contentType":"application/octet-stream","crc32c":"4waSgw=="})"
      "\r\n--line\r\nContent-Type: application/octet-stream\r\n\r\n123456789\r\n--line--\r\n");
  const ObjectInfo part{.key = "a", .etag = "7"};
  EXPECT_EQ(gcs_compose_body(std::span(&part, 1)),
            R"({"destination":{"contentType":"application/octet-stream"},)"
            R"("sourceObjects":[{"generation":"7","name":"a"}]})");
}

TEST(GoogleIdentities, AreThoseOfServiceAccountsAndOfUsers) {
  std::string why;
  const auto user = google_identity_from(
      R"({"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"})",
      why);
  ASSERT_TRUE(user);
  EXPECT_EQ(user->token_url, "https://oauth2.googleapis.com/token");
  EXPECT_EQ(token_request(*user, {}),
            "grant_type=refresh_token&client_id=i&client_secret=s&refresh_token=r");
  const auto account = google_identity_from(
      R"({"type": "service_account", "client_email": "e", "private_key": "k", "token_uri": "u"})",
      why);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->token_url, "u");
  EXPECT_FALSE(token_request(*account, {}));  // whose key is none
  EXPECT_FALSE(google_identity_from(R"({"type": "service_account"})", why));
  EXPECT_EQ(why, "lacks client_email or private_key");
  EXPECT_FALSE(google_identity_from(R"({"type": "x"})", why));
  EXPECT_THAT(why, HasSubstr("is of the type \"x\""));
  EXPECT_FALSE(google_identity_from("x", why));
}

// Of the type "external_account", with these members besides.
std::string external(const std::string& source, const std::string& more = "") {
  return R"({"type": "external_account", "audience": "//iam/p", "subject_token_type": "urn:t")" +
         more + R"(, "credential_source": )" + source + "}";
}

TEST(GoogleFederation, SaysWhereTheSubjectTokenIsAndHowItIsRead) {
  std::string why;
  const auto in_file = federated_identity_from(external(R"({"file": "/token"})"), why);
  ASSERT_TRUE(in_file);
  EXPECT_EQ(in_file->file, "/token");
  EXPECT_EQ(subject_token_from(*in_file, "a.b.c\n"), "a.b.c");
  EXPECT_FALSE(subject_token_from(*in_file, "\n"));
  const auto at_url =
      federated_identity_from(external(R"({"url": "http://h/t", "headers": {"Metadata": "True"},
                   "format": {"type": "json", "subject_token_field_name": "id"}})"),
                              why);
  ASSERT_TRUE(at_url);
  EXPECT_EQ(at_url->url, "http://h/t");
  EXPECT_THAT(at_url->fields, ElementsAre(std::pair("Metadata", "True")));
  EXPECT_EQ(subject_token_from(*at_url, R"({"id": "x", "other": "y"})"), "x");
  EXPECT_FALSE(subject_token_from(*at_url, "x"));
  EXPECT_FALSE(subject_token_from(*at_url, R"({"id": 1})"));
}

TEST(GoogleFederation, WhatIsNoneOfTheTwoSourcesIsRefusedInHalfASentence) {
  const std::map<std::string, std::string> refused = {
      {R"({"environment_id": "aws1", "url": "http://h"})", "neither a file nor a url"},
      {R"({"executable": {"command": "x"}})", "neither a file nor a url"},
      {R"({"file": "a", "url": "b"})", "neither a file nor a url"},
      {"1", "neither a file nor a url"},
      {R"({"file": "a", "format": {"type": "json"}})", "neither text nor json"},
      {R"({"file": "a", "format": {"type": "xml"}})", "neither text nor json"},
      {R"({"url": "b", "headers": {"a": "b\r\nc"}})", "not text of one line"}};
  for (const auto& [source, expected] : refused) {
    std::string why;
    EXPECT_FALSE(federated_identity_from(external(source), why)) << source;
    EXPECT_THAT(why, HasSubstr(expected)) << source;
  }
  std::string why;
  EXPECT_FALSE(federated_identity_from(R"({"type": "external_account"})", why));
  EXPECT_EQ(why, "lacks audience or subject_token_type");
}

TEST(GoogleFederation, AsksForWhatItIsToHave) {
  std::string why;
  const auto alone = federated_identity_from(external(R"({"file": "f"})"), why);
  ASSERT_TRUE(alone);
  EXPECT_EQ(exchange_form(*alone, "a+b"),
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&"
            "requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&"
            "audience=%2F%2Fiam%2Fp&"
            "scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fdevstorage.read_write&"
            "subject_token_type=urn%3At&subject_token=a%2Bb");
  EXPECT_EQ(exchange_fields(*alone).size(), 1U);
  const auto account =
      federated_identity_from(external(R"({"file": "f"})",
                                       R"(, "service_account_impersonation_url": "https://i/sa",
                  "service_account_impersonation": {"token_lifetime_seconds": 1800},
                  "client_id": "id", "client_secret": "secret")"),
                              why);
  ASSERT_TRUE(account);
  EXPECT_THAT(exchange_form(*account, "s"), HasSubstr("auth%2Fcloud-platform"));
  EXPECT_EQ(exchange_fields(*account).back().second, "Basic " + net::base64("id:secret"));
  EXPECT_EQ(
      impersonation_body(*account),
      R"({"lifetime":"1800s","scope":["https://www.googleapis.com/auth/devstorage.read_write"]})");
  const auto of_workforce = federated_identity_from(
      external(R"({"file": "f"})", R"(, "workforce_pool_user_project": "p")"), why);
  ASSERT_TRUE(of_workforce);
  EXPECT_TRUE(
      exchange_form(*of_workforce, "s").ends_with("&options=%7B%22userProject%22%3A%22p%22%7D"));
}

TEST(GoogleTokens, EndWhenItIsSaid) {
  const std::chrono::sys_seconds now{std::chrono::seconds(1'800'000'000)};
  const auto token = google_token_from(R"({"access_token": "t", "expires_in": 60})", now);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->text, "t");
  EXPECT_EQ(token->end, now + std::chrono::seconds(60));
  EXPECT_FALSE(google_token_from(R"({"access_token": "a\r\nb"})", now));  // it goes into a header
  EXPECT_FALSE(google_token_from(R"({"error": "x"})", now));
  EXPECT_EQ(google_token_error(R"({"error": "invalid_grant", "error_description": "Revoked."})"),
            "invalid_grant: Revoked.");
  EXPECT_EQ(google_token_error(R"({"error": {"code": 403, "message": "Not allowed."}})"),
            "Not allowed.");
  const auto of_account =
      impersonated_token_from(R"({"accessToken": "t", "expireTime": "2027-01-15T08:01:00Z"})", now);
  ASSERT_TRUE(of_account);
  EXPECT_EQ(of_account->text, "t");
  EXPECT_EQ(of_account->end, now + std::chrono::seconds(60));
  EXPECT_FALSE(impersonated_token_from(R"({"access_token": "t"})", now));
}

}  // namespace
}  // namespace disttf::roles
