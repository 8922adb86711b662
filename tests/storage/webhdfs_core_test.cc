// What HDFS says, without one.
#include <gmock/gmock.h>

#include "storage/store/core/store_error.h"
#include "storage/store/core/store_url.h"
#include "storage/store/core/webhdfs_answers.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string status_json(const std::string& name, const std::string& type = "FILE") {
  return R"({"pathSuffix":")" + name + R"(","type":")" + type +
         R"(","length":7,"modificationTime":1700000000123,"owner":"a","group":"b"})";
}

std::string listing_json(const std::string& entries) {
  return R"({"FileStatuses":{"FileStatus":[)" + entries + "]}}";
}

std::string exception_json(const std::string& exception, const std::string& message) {
  return R"({"RemoteException":{"exception":")" + exception + R"(","javaClassName":"x.)" +
         exception + R"(","message":")" + message + "\"}}";
}

TEST(WebHdfsAnswers, AStatusIsRead) {
  const auto status = read_hdfs_status(R"({"FileStatus":)" + status_json("") + "}");
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->is_directory);
  EXPECT_EQ(status->size_bytes, 7U);
  EXPECT_EQ(status->modified.time_since_epoch().count(), 1700000000123);
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string(1000, '['),
        R"({"FileStatus":)" + status_json("", "SYMLINK") + "}",
        std::string(R"({"FileStatus":{"type":"FILE","length":-1,"modificationTime":1}})")}) {
    EXPECT_FALSE(read_hdfs_status(text)) << text;
  }
}

TEST(WebHdfsAnswers, AListingIsReadAndAWayOutOfItIsNot) {
  const auto listing =
      read_hdfs_listing(listing_json(status_json("a") + "," + status_json("b", "DIRECTORY")));
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->size(), 2U);
  EXPECT_TRUE(listing->at(1).is_directory);
  EXPECT_TRUE(read_hdfs_listing(listing_json(""))->empty());
  EXPECT_TRUE(read_hdfs_listing(listing_json(status_json("")))->front().name.empty());
  for (const char* name : {"..", ".", "a/b", "../a"}) {
    EXPECT_FALSE(read_hdfs_listing(listing_json(status_json(name)))) << name;
  }
  EXPECT_FALSE(read_hdfs_listing(listing_json(status_json("a") + "," + status_json(""))));
}

TEST(WebHdfsAnswers, ARefusalIsToldByItsException) {
  const auto refused = [](int status, const std::string& exception, const std::string& message) {
    return hdfs_refusal(status, "Some", exception_json(exception, message));
  };
  EXPECT_EQ(refused(404, "FileNotFoundException", "x").error, StoreError::kNotFound);
  EXPECT_EQ(refused(403, "FileAlreadyExistsException", "x").error, StoreError::kExists);
  EXPECT_EQ(refused(403, "AccessControlException", "x").error, StoreError::kDenied);
  EXPECT_EQ(refused(403, "DSQuotaExceededException", "x").error, std::errc::no_space_on_device);
  EXPECT_EQ(refused(403, "IOException", "rename destination directory is not empty: /a").error,
            std::errc::directory_not_empty);
  EXPECT_EQ(refused(403, "InvalidToken", "x").error, StoreError::kExpired);
  for (const char* exception : {"StandbyException", "RetriableException", "SafeModeException"}) {
    EXPECT_TRUE(refused(403, exception, "x").may_pass) << exception;
    EXPECT_EQ(refused(403, exception, "x").error, std::errc::resource_unavailable_try_again);
  }
  EXPECT_TRUE(refused(403, "IOException", "could only be written to 0 of the 1").may_pass);
  EXPECT_FALSE(refused(403, "IOException", "x").may_pass);
  EXPECT_TRUE(hdfs_refusal(500, "", "<html>").may_pass);
}

TEST(WebHdfsAnswers, ARefusalIsSaidInOneLine) {
  const StoreRefusal refusal = hdfs_refusal(
      403, "Forbidden", exception_json("AccessControlException", "no\\n at some.Class(1)"));
  EXPECT_EQ(refusal.sentence, "the store answered 403 (Forbidden), AccessControlException: no");
}

TEST(HadoopConfiguration, HasItsProperties) {
  const std::string xml =
      "<?xml version=\"1.0\"?>\n<configuration><property><name>a</name><value> 1 </value>"
      "</property><property><name>b</name></property></configuration>";
  EXPECT_EQ(hadoop_property(xml, "a"), "1");
  EXPECT_EQ(hadoop_property(xml, "b"), "");
  EXPECT_EQ(hadoop_property(xml, "c"), "");
  EXPECT_EQ(hadoop_property("", "a"), "");
}

std::string writable(const std::string& bytes) { return static_cast<char>(bytes.size()) + bytes; }

std::string token_bytes(const std::string& kind) {
  return writable("id") + writable("pw") + writable(kind) + writable("1.2.3.4:8020");
}

TEST(HadoopTokenFile, TheTokenOfHdfsIsFound) {
  const std::string head("HDTS\0", 5);
  const std::string file = head + '\2' + writable("yarn") + token_bytes("YARN_AM_RM_TOKEN") +
                           writable("hdfs") + token_bytes("HDFS_DELEGATION_TOKEN");
  // What Hadoop's Token.encodeToUrlString() makes of these bytes: base64 for URLs, no padding.
  EXPECT_EQ(hdfs_token_from(file), "AmlkAnB3FUhERlNfREVMRUdBVElPTl9UT0tFTgwxLjIuMy40OjgwMjA");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(hdfs_token_from(file.substr(0, size))) << size;
  }
  EXPECT_FALSE(hdfs_token_from(std::string("HDTS\1", 5) + file.substr(5)));
}

TEST(StoreUrl, OfHdfsNamesANameNode) {
  const StoreUrl url = parse_store_url("--train_dir", "hdfs://name-node:8020/run/one/");
  EXPECT_EQ(url, (StoreUrl{.scheme = "hdfs", .bucket = "name-node:8020", .key = "run/one"}));
  EXPECT_TRUE(is_hdfs(url));
  EXPECT_FALSE(is_hdfs(parse_store_url("x", "s3://bucket")));
  const auto sentence = [](const std::string& text) {
    return sentence_of([&] { return parse_store_url("--train_dir", text); }, "it was taken");
  };
  EXPECT_THAT(sentence("hdfs:///run"), HasSubstr("names no NameNode"));
  EXPECT_THAT(sentence("webhdfs://user@host/x"), HasSubstr("HOST or HOST:PORT"));
  EXPECT_THAT(sentence("swebhdfs://host:0/x"), HasSubstr("HOST or HOST:PORT"));
  EXPECT_THAT(sentence("hdfs://host/a:b"), HasSubstr("colon in its path"));
}

}  // namespace
}  // namespace disttf::roles
