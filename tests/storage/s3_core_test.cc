// What is decided of S3 without a socket. The signatures are those that AWS publishes in its
// documentation of Signature Version 4, with the keys that it publishes them with.
#include <gmock/gmock.h>

#include "storage/store/core/aws_identity.h"
#include "storage/store/core/s3_answers.h"
#include "storage/store/core/store_answers.h"
#include "storage/store/core/store_url.h"
#include "storage/store/core/xml_elements.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string signature_of(const UnsignedRequest& request) {
  const Credentials credentials{.key_id = "AKIAIOSFODNN7EXAMPLE",
                                .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                .token = {}};
  const auto now = time_from_iso("2013-05-24T00:00:00Z").value();
  const std::string text =
      signed_fields(request, credentials, "us-east-1", "s3", now).back().second;
  return text.substr(text.find("Signature=") + 10);
}

UnsignedRequest request_of(const std::string& method, const std::string& path) {
  return {.method = method,
          .host = "examplebucket.s3.amazonaws.com",
          .path = path,
          .payload_sha256 = kNothing};
}

TEST(SignatureV4, IsThatOfThePublishedGet) {
  UnsignedRequest request = request_of("GET", "/test.txt");
  request.fields = {{"Range", "bytes=0-9"}};
  EXPECT_EQ(signature_of(request),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SignatureV4, IsThatOfThePublishedPut) {
  UnsignedRequest request = request_of("PUT", "/test$file.text");
  request.fields = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                    {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  request.payload_sha256 = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
  EXPECT_EQ(signature_of(request),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SignatureV4, IsThatOfThePublishedQueries) {
  UnsignedRequest lifecycle = request_of("GET", "/");
  lifecycle.query = {{"lifecycle", ""}};
  EXPECT_EQ(signature_of(lifecycle),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  UnsignedRequest list = request_of("GET", "/");
  list.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(signature_of(list), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  EXPECT_EQ(request_target(list), "/?max-keys=2&prefix=J");
}

TEST(SignatureV4, SignsTheTokenOfASession) {
  const Credentials credentials{.key_id = "a", .secret = "b", .token = "c"};
  const auto fields = signed_fields(request_of("GET", "/"), credentials, "r", "s3", {});
  EXPECT_THAT(fields, testing::Contains(Pair("x-amz-security-token", "c")));
  EXPECT_THAT(fields.back().second, HasSubstr("x-amz-date;x-amz-security-token"));
}

TEST(Times, AreReadInBothFormsAndNonsenseIsNot) {
  const auto iso = time_from_iso("1994-11-06T08:49:37.000Z");
  ASSERT_TRUE(iso);
  EXPECT_EQ(iso->time_since_epoch().count(), 784111777);
  EXPECT_EQ(time_from_http("Sun, 06 Nov 1994 08:49:37 GMT"), iso);
  EXPECT_EQ(iso_text(*iso), "1994-11-06T08:49:37Z");
  EXPECT_EQ(amazon_time(*iso), "19941106T084937Z");
  for (const char* text : {"", "1994-13-06T08:49:37Z", "1994-02-30T08:49:37Z", "1994-11-06 08:49Z",
                           "x994-11-06T08:49:37Z"}) {
    EXPECT_EQ(time_from_iso(text), std::nullopt) << text;
  }
  for (const char* text : {"", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT"}) {
    EXPECT_EQ(time_from_http(text), std::nullopt) << text;
  }
}

TEST(Xml, TellsElementsWithTheirText) {
  std::vector<std::pair<std::string, std::string>> found;
  EXPECT_TRUE(read_xml(
      "<?xml version=\"1.0\"?>\n<a x='1'><b>1 &lt; &#x32;&amp;&#228;</b>"
      "<!-- c --><c/></a>\n",
      [&](std::string_view path, const std::string& text) { found.emplace_back(path, text); }));
  EXPECT_THAT(found, ElementsAre(Pair("a/b", "1 < 2&\xC3\xA4"), Pair("a/c", ""), Pair("a", "")));
}

TEST(Xml, SkipsAttributesWhateverTheirValues) {
  std::string text;
  EXPECT_TRUE(read_xml("<a x=\"1>2\" y='\">'>b<c z='/>'/></a>",
                       [&](std::string_view path, const std::string& inside) {
                         text += std::string(path) + "=" + inside + ";";
                       }));
  EXPECT_EQ(text, "a/c=;a=b;");
  EXPECT_FALSE(read_xml("<a x=\">\">", [](std::string_view, const std::string&) {}));
  EXPECT_FALSE(read_xml("<a x=\"></a>", [](std::string_view, const std::string&) {}));
}

TEST(Xml, RefusesWhatIsNone) {
  for (const char* text :
       {"", "text", "<a>", "<a></b>", "</a>", "<a></a><b></b>", "<a>&nope;</a>", "<a>&amp</a>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a><b></a></b>", "<a>&#0;</a>", "<"}) {
    EXPECT_FALSE(read_xml(text, [](std::string_view, const std::string&) {})) << text;
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<a>";
  EXPECT_FALSE(read_xml(deep, [](std::string_view, const std::string&) {}));
}

TEST(Listing, IsReadWithItsNextPage) {
  const auto page = read_listing(
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
      "<Contents><Key>run/a b+&lt;%20</Key><LastModified>2026-11-22T08:30:00.000Z</LastModified>"
      "<ETag>&quot;x&quot;</ETag><Size>17</Size></Contents>"
      "<CommonPrefixes><Prefix>run/d/</Prefix></CommonPrefixes>"
      "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->listing.objects.size(), 1U);
  EXPECT_EQ(page->listing.objects[0].key, "run/a b+<%20");
  EXPECT_EQ(page->listing.objects[0].size_bytes, 17U);
  EXPECT_EQ(page->listing.objects[0].etag, "\"x\"");
  EXPECT_THAT(page->listing.folders, ElementsAre("run/d/"));
  EXPECT_EQ(page->next, "t");
}

TEST(Listing, EndsWhateverItsPagesNameAsTheNext) {
  // "a", "b", "a", ...; and then always a new one.
  int asked = 0;
  EXPECT_THROW(static_cast<void>(all_pages(
                   "s3://b/", "",
                   [&](const std::string&) {
                     return ListingPage{.listing = {}, .next = ++asked % 2 != 0 ? "a" : "b"};
                   })),
               std::system_error);
  EXPECT_EQ(asked, 3);
  EXPECT_THROW(static_cast<void>(all_pages("s3://b/", "",
                                           [&](const std::string&) {
                                             return ListingPage{.listing = {},
                                                                .next = std::to_string(++asked)};
                                           })),
               std::system_error);
}

TEST(Listing, WhatIsNoneIsRefused) {
  for (const char* text : {"", "<Error><Code>AccessDenied</Code></Error>", "<ListBucketResult>",
                           "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents>"
                           "</ListBucketResult>"}) {
    EXPECT_FALSE(read_listing(text)) << text;
  }
}

TEST(Refusal, SaysWhatIsWrongAndWhetherItMayPass) {
  const auto of = [](int status, const std::string& code) {
    return s3_refusal(status, "Reason", "<Error><Code>" + code + "</Code></Error>", "");
  };
  EXPECT_EQ(of(403, "AccessDenied").error, StoreError::kDenied);
  EXPECT_EQ(of(403, "RequestTimeTooSkewed").error, StoreError::kClockSkew);
  EXPECT_EQ(of(400, "ExpiredToken").error, StoreError::kExpired);
  EXPECT_EQ(of(404, "NoSuchBucket").error, StoreError::kNoBucket);
  EXPECT_EQ(of(412, "PreconditionFailed").error, StoreError::kExists);
  EXPECT_FALSE(of(403, "AccessDenied").may_pass);
  for (const int status : {408, 409, 429, 500, 502, 503, 504}) {
    EXPECT_TRUE(of(status, "").may_pass) << status;
    EXPECT_EQ(of(status, "").error, StoreError::kAway) << status;
  }
  const StoreRefusal moved = s3_refusal(301, "Moved Permanently", "", "eu-west-1");
  EXPECT_EQ(moved.error, StoreError::kWrongRegion);
  EXPECT_EQ(moved.sentence,
            "the store answered 301 (Moved Permanently); the bucket is in \"eu-west-1\"");
}

TEST(Retries, WaitLongerEachTimeUpToABound) {
  EXPECT_EQ(wait_before_try(2, "", 0.5).count(), 500);
  EXPECT_EQ(wait_before_try(3, "", 0.5).count(), 1000);
  EXPECT_EQ(wait_before_try(30, "", 0.5).count(), 10'000);
  EXPECT_EQ(wait_before_try(2, "", 0).count(), 0);
  EXPECT_EQ(wait_before_try(2, "7", 0.5).count(), 7000);
  EXPECT_EQ(wait_before_try(2, "86400", 0.5).count(), 20'000);
  EXPECT_EQ(wait_before_try(2, "Sun, 06 Nov 1994 08:49:37 GMT", 0.5).count(), 500);
}

TEST(Profile, IsReadFromBothKindsOfFiles) {
  const char* const credentials =
      "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B\r\n"
      "[other]\naws_access_key_id = C\n";
  EXPECT_THAT(
      profile_settings(credentials, "default", false),
      UnorderedElementsAre(Pair("aws_access_key_id", "A"), Pair("aws_secret_access_key", "B")));
  const char* const config =
      "[default]\nregion = r\ns3 =\n  addressing_style = path\n[profile other]\nREGION=q\n"
      "[sso-session other]\nregion = s\n";
  EXPECT_THAT(profile_settings(config, "default", true),
              UnorderedElementsAre(Pair("region", "r"), Pair("s3", "")));
  EXPECT_THAT(profile_settings(config, "other", true), UnorderedElementsAre(Pair("region", "q")));
  EXPECT_THAT(profile_settings(config, "none", true), UnorderedElementsAre());
}

TEST(HandedOut, CredentialsAreReadFromBothForms) {
  const auto json = credentials_from_json(
      R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"B","Token":"C",)"
      R"("Expiration":"2026-11-22T08:30:00Z"})");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->key_id, "A");
  EXPECT_EQ(json->token, "C");
  EXPECT_EQ(json->end, time_from_iso("2026-11-22T08:30:00Z"));
  const auto xml = credentials_from_xml(
      "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
      "<AccessKeyId>A</AccessKeyId><SecretAccessKey>B</SecretAccessKey><SessionToken>C"
      "</SessionToken><Expiration>2026-11-22T08:30:00Z</Expiration></Credentials>"
      "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>");
  ASSERT_TRUE(xml);
  EXPECT_EQ(xml->secret, "B");
  EXPECT_FALSE(credentials_from_json("{}"));
  EXPECT_FALSE(credentials_from_json("[[[[[[[[[[[[[[[["));
  EXPECT_FALSE(credentials_from_xml("<a/>"));
}

TEST(StoreUrl, IsReadAndWritten) {
  const StoreUrl url = parse_store_url("--train_dir", "S3://bucket//run/one/");
  EXPECT_EQ(url, (StoreUrl{.scheme = "s3", .bucket = "bucket", .key = "run/one"}));
  EXPECT_EQ(to_string(url), "s3://bucket/run/one");
  EXPECT_EQ(to_string(parse_store_url("x", "s3://bucket")), "s3://bucket");
  EXPECT_TRUE(is_store_url(std::string_view("gs://x")));
  for (const std::string_view path : {"", "a/b", "/a://b", "://x", "1s3://x", "./s3://x"}) {
    EXPECT_FALSE(is_store_url(path)) << path;
  }
}

TEST(StoreUrl, MayBeOfAServerThatIsOnlyRead) {
  const StoreUrl url = parse_store_url("--data", "https://host:8443/a/b.csv");
  EXPECT_EQ(url, (StoreUrl{.scheme = "https", .bucket = "host:8443", .key = "a/b.csv"}));
  EXPECT_TRUE(is_only_read(url));
  EXPECT_FALSE(is_only_read(parse_store_url("--data", "gs://bucket/a")));
}

TEST(StoreUrl, WhatIsWrongIsSaidWithWhatIsAllowed) {
  const auto sentence = [](const std::string& url) {
    return sentence_of([&] { return parse_store_url("--train_dir", url); }, "it was taken");
  };
  EXPECT_EQ(sentence("ftp://host/x"),
            "--train_dir: \"ftp://host/x\" has the unknown scheme \"ftp\"; expected a path, or a "
            "URL like s3://bucket/prefix, gs://bucket/prefix or hdfs://namenode/path");
  EXPECT_THAT(sentence("s3://"), HasSubstr("names no bucket"));
  EXPECT_THAT(sentence("gs://"), HasSubstr("names no bucket"));
  EXPECT_THAT(sentence("http:///x"), HasSubstr("names no server"));
  EXPECT_THAT(sentence("https://host/x?y=z"), HasSubstr("has a query or a fragment"));
  EXPECT_THAT(sentence("s3:///x"), HasSubstr("names no bucket"));
  EXPECT_THAT(sentence("s3://UP/x"), HasSubstr("names the bucket \"UP\", which is not a name"));
  EXPECT_THAT(sentence("s3://user:secret@host/x"), HasSubstr("which is not a name"));
  EXPECT_THAT(sentence("s3://bucket/a/../b"), HasSubstr("\"..\" in it"));
  EXPECT_THAT(sentence("s3://bucket/" + std::string(2000, 'a')), HasSubstr("1024 bytes"));
}

TEST(Listing, IsOfThePrefixThatWasAskedFor) {
  const auto of = [](const std::string& key, const std::string& folder) {
    ObjectListing listing;
    listing.objects.emplace_back().key = key;
    listing.folders.push_back(folder);
    return is_listing_of(listing, "run/");
  };
  EXPECT_TRUE(of("run/a", "run/b/"));
  EXPECT_FALSE(of("ru", "run/b/"));
  EXPECT_FALSE(of("other/a", "run/b/"));
  EXPECT_FALSE(of("run/a", "run/"));
  EXPECT_FALSE(of("run/a", "run/b"));
  EXPECT_FALSE(of("run/a", "b/"));
}

}  // namespace
}  // namespace disttf::roles
