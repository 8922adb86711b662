// The task that a certificate's name identifies.
#include "net/tls/spiffe_id.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::net {
namespace {

TEST(SpiffeIdTest, EndsWithATask) {
  const auto one = parse_spiffe_id("spiffe://example.org/mnist/worker/1");
  ASSERT_TRUE(one);
  EXPECT_EQ(*one, (SpiffeId{.run = "spiffe://example.org/mnist", .job = Job::kWorker, .index = 1}));
  const auto pod = parse_spiffe_id("spiffe://my-cluster.local/ns/ml/mnist-2-ps-10");
  ASSERT_TRUE(pod);
  EXPECT_EQ(
      *pod,
      (SpiffeId{.run = "spiffe://my-cluster.local/ns/ml/mnist-2", .job = Job::kPs, .index = 10}));
  const auto any = parse_spiffe_id("spiffe://d/evaluator");
  ASSERT_TRUE(any);
  EXPECT_EQ(*any, (SpiffeId{.run = "spiffe://d", .job = Job::kEvaluator, .index = {}}));
  EXPECT_EQ(parse_spiffe_id("spiffe://d/chief-0"),
            (SpiffeId{.run = "spiffe://d", .job = Job::kChief, .index = 0}));
}

TEST(SpiffeIdTest, NamesATaskOrAllOfAJob) {
  const SpiffeId one{.run = "r", .job = Job::kWorker, .index = 1};
  EXPECT_TRUE(one.names({.job = Job::kWorker, .index = 1}));
  EXPECT_FALSE(one.names({.job = Job::kWorker, .index = 0}));
  EXPECT_FALSE(one.names({.job = Job::kPs, .index = 1}));
  const SpiffeId any{.run = "r", .job = Job::kPs, .index = {}};
  EXPECT_TRUE(any.names({.job = Job::kPs, .index = 7}));
  EXPECT_FALSE(any.names({.job = Job::kChief, .index = 0}));
}

TEST(SpiffeIdTest, IsRefusedWhereItIsNone) {
  for (const std::string uri : {
           "",
           "spiffe:",
           "spiffe://",
           "spiffe:///worker/1",
           "spiffe://d",
           "spiffe://d/",
           "spiffe://d/mnist",
           "spiffe://d/mnist/1",
           "spiffe://d/1",
           "https://d/mnist/worker/1",
           "SPIFFE://d/mnist/worker/1",
           "spiffe://D/mnist/worker/1",
           "spiffe://user@d/mnist/worker/1",
           "spiffe://d:80/mnist/worker/1",
           "spiffe://d/mnist/worker/1/",
           "spiffe://d//worker/1",
           "spiffe://d/./worker/1",
           "spiffe://d/a/../worker/1",
           "spiffe://d/mnist/worker/1?x",
           "spiffe://d/mnist/worker/1#x",
           "spiffe://d/mn%69st/worker/1",
           "spiffe://d/mnist/worker/01",
           "spiffe://d/mnist/worker/-1",
           "spiffe://d/mnist/worker/1x",
           "spiffe://d/mnist/worker/1000000000",
           "spiffe://d/mnist/Worker/1",
           "spiffe://d/mnist/master/0",
           "spiffe://d/mnist/coworker/1",
           "spiffe://d/mnist/-worker-1",
           "spiffe://d/mnist--worker-1",
           "spiffe://d/mnist/worker--1",
           "spiffe://d/-worker-1",
           "spiffe://d/..-worker-1",
           "spiffe://d/a/.-worker-1",
           "worker-1",
       }) {
    EXPECT_FALSE(parse_spiffe_id(uri)) << uri;
  }
  const std::string end = "/worker/1";
  const std::string start = "spiffe://d/";
  const std::string longest =
      start + std::string(kMostSpiffeIdBytes - start.size() - end.size(), 'a') + end;
  EXPECT_TRUE(parse_spiffe_id(longest));
  EXPECT_FALSE(parse_spiffe_id("spiffe://d/a" + longest.substr(start.size())));
  EXPECT_FALSE(parse_spiffe_id(std::string("spiffe://d/a\0b/worker/1", 23)));
}

}  // namespace
}  // namespace disttf::net
