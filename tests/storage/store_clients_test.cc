// The clients of stores, against a server that answers as a test says.
#include <gmock/gmock.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "net/waiting/interrupt.h"
#include "storage/store/core/store_error.h"
#include "storage/store/shell/aws_credentials.h"
#include "storage/store/shell/gcs_store.h"
#include "storage/store/shell/parts_under_way.h"
#include "storage/store/shell/s3_store.h"
#include "storage/store/shell/store_environment.h"
#include "tests/support/mirror_server.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using test_support::MirrorConnection;
using test_support::MirrorRequest;
using test_support::MirrorServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> methods_of(const MirrorServer& server) {
  std::vector<std::string> methods;
  for (const MirrorRequest& request : server.requests()) methods.push_back(request.method);
  return methods;
}

// ------------------------------------------------------------------------------------- S3

StoreEnvironment s3_at(const MirrorServer& server) {
  return {.variables = {{"AWS_ACCESS_KEY_ID", "AKIDTEST"},
                        {"AWS_SECRET_ACCESS_KEY", "a secret of the test"},
                        {"AWS_ENDPOINT_URL", server.url("")}},
          .proxy = {}};
}

// As S3 answers a request for what is missing: the body says what, and HEAD has none.
test_support::Handler missing(const std::string& code) {
  return [code](const MirrorRequest& request, const MirrorConnection& connection) {
    connection.respond("404 Not Found",
                       request.method == "HEAD" ? "" : "<Error><Code>" + code + "</Code></Error>");
  };
}

TEST(S3StoreTest, FindsNoObjectInABucketThatIsMissing) {
  const MirrorServer server(missing("NoSuchBucket"));
  const StoreEnvironment environment = s3_at(server);
  S3Store store("bucket", environment);
  const auto error = thrown<std::system_error>([&] { return store.find("a"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), StoreError::kNoBucket);
  EXPECT_THAT(error->what(), HasSubstr("s3://bucket/a"));
}

TEST(S3StoreTest, AsksOnceWhetherTheBucketIsThere) {
  const MirrorServer server(missing("NoSuchKey"));
  const StoreEnvironment environment = s3_at(server);
  S3Store store("bucket", environment);
  EXPECT_FALSE(store.find("a"));
  EXPECT_FALSE(store.find("b"));
  EXPECT_THAT(methods_of(server), ElementsAre("HEAD", "GET", "HEAD"));
}

// ------------------------------------------------------------------------ Amazon's credentials

TEST(AwsCredentialsTest, AreAskedOverHttpOnThisHostAlone) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.respond("200 OK",
                       R"({"AccessKeyId": "AKIDTEST", "SecretAccessKey": "a secret of the test"})");
  });
  const net::Interrupt interrupt;
  const auto key_from = [&](const std::string& name, const std::string& value) {
    const StoreEnvironment environment{.variables = {{name, value},
                                                     {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "t"},
                                                     {"AWS_EC2_METADATA_DISABLED", "true"}},
                                       .proxy = {}};
    return AwsCredentials(environment, "us-east-1", interrupt).get().key_id;
  };
  const std::string full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  // The kernel takes this address for this host, but it is not a loopback address.
  EXPECT_THROW(key_from(full, server.url("/", "0.0.0.0")), std::invalid_argument);
  // Another text than a path would continue the host's name.
  EXPECT_THROW(key_from("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", ".example.org/"),
               std::invalid_argument);
  EXPECT_THAT(server.requests(), IsEmpty());
  EXPECT_EQ(key_from(full, server.url("/")), "AKIDTEST");
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests().front().header("authorization"), "t");
}

// ------------------------------------------------------------------------------------- GCS

StoreEnvironment gcs_at(const MirrorServer& server) {
  return {.variables = {{"STORAGE_EMULATOR_HOST", server.url("")}}, .proxy = {}};
}

TEST(GcsStoreTest, ACopyWithoutProgressEnds) {
  std::atomic<int> requests = 0;
  const MirrorServer server([&](const MirrorRequest&, const MirrorConnection& connection) {
    // The copy that goes on regardless ends here, too.
    connection.respond("200 OK", std::string(R"({"done": )") +
                                     (++requests == 20 ? "true" : "false") +
                                     R"(, "rewriteToken": "t", "totalBytesRewritten": "7"})");
  });
  const StoreEnvironment environment = gcs_at(server);
  GcsStore store("bucket", environment);
  const auto error = thrown<std::system_error>([&] { store.copy("a", "b"); });
  ASSERT_TRUE(error) << "it has ended after " << requests << " requests";
  EXPECT_EQ(error->code(), StoreError::kBadAnswer);
  EXPECT_EQ(requests, 4) << "the first one has copied 7 bytes";
}

TEST(GcsStoreTest, ACopyOfManyRequestsGoesOn) {
  std::atomic<int> requests = 0;
  const MirrorServer server([&](const MirrorRequest&, const MirrorConnection& connection) {
    const int number = ++requests;
    connection.respond("200 OK", std::string(R"({"done": )") + (number == 9 ? "true" : "false") +
                                     R"(, "rewriteToken": "t", "totalBytesRewritten": ")" +
                                     std::to_string(number) + "\"}");
  });
  const StoreEnvironment environment = gcs_at(server);
  GcsStore("bucket", environment).copy("a", "b");
  EXPECT_EQ(requests, 9);
}

// ----------------------------------------------------------------------------- parts of objects

// The store may have a part whose answer was lost: all that were sent are to be removed.
TEST(PartsUnderWayTest, CountPartsThatHaveFailed) {
  PartsUnderWay parts([](std::size_t number, std::span<const std::byte>) -> std::string {
    if (number == 1) throw std::runtime_error("part 1");
    return "tag";
  });
  for (int i = 0; i < 3; ++i) parts.add({});
  EXPECT_THROW(static_cast<void>(parts.finish()), std::runtime_error);
  EXPECT_EQ(parts.count(), 3U);
}

}  // namespace
}  // namespace disttf::roles
