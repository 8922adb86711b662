#include "net/wire/server_requests.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/frame.h"
#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

constexpr TaskId kPs0{.job = Job::kPs, .index = 0};
constexpr TaskId kPs1{.job = Job::kPs, .index = 1};
constexpr TaskId kWorker1{.job = Job::kWorker, .index = 1};

// The request of `disttf plus`.
ComputeRequest sum() {
  return {{.operation = Operation::kAdd, .task = kWorker1},
          {.operation = Operation::kNumber, .task = kPs0, .value = 10},
          {.operation = Operation::kNumber, .task = kPs1, .value = 32}};
}

// Decodes the bytes of sum() with one byte changed.
std::error_code changed(std::size_t at, std::uint8_t value) {
  std::vector<std::byte> bytes = encode(sum());
  bytes[at] = std::byte{value};
  ComputeRequest out;
  return decode(bytes, out);
}

TEST(ComputeRequest, HasTheBytesOfTheDocument) {
  const std::vector<std::byte> body = encode(sum());
  std::array<std::byte, kHeaderBytes> header{};
  encode_header({.kind = FrameKind::kCompute, .request_id = 1, .body_size = body.size()}, header);
  EXPECT_EQ(hex(header),
            "4454463107210000010000000000000030000000000000000000000000000000"
            "00000000000000000000000000000000000000000000000000000000d15ee3a3");
  EXPECT_EQ(hex(body),
            "0202000001000000000000000000000001010000000000000a00000000000000"
            "01010000010000002000000000000000");
}

TEST(ComputeRequest, IsReadBack) {
  const ComputeRequest asked = {{.operation = Operation::kAsk, .task = kPs0},
                                {.operation = Operation::kDescribe, .task = kPs1}};
  const ComputeRequest negative = {{.operation = Operation::kNumber,
                                    .task = kPs0,
                                    .value = std::numeric_limits<std::int64_t>::min()}};
  for (const ComputeRequest& request : {sum(), asked, negative}) {
    ComputeRequest out;
    ASSERT_FALSE(decode(encode(request), out));
    EXPECT_EQ(out, request);
  }
}

TEST(ComputeRequest, HasAllItsOperandsAndNoMore) {
  std::vector<std::byte> bytes = encode(sum());
  ComputeRequest out;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::span(bytes).first(size), out), WireError::kBadBody) << size;
  }
  const std::vector<std::byte> more = encode(ComputeRequest{{.task = kPs0}});
  bytes.insert(bytes.end(), more.begin(), more.end());
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody);
  EXPECT_EQ(out, ComputeRequest{}) << "a rejected body changed the output";
}

TEST(ComputeRequest, HasAtMost64Nodes) {
  ComputeRequest request(kMaxComputeNodes - 1, {.operation = Operation::kAsk, .task = kPs0});
  request.push_back({.operation = Operation::kNumber, .task = kPs0});
  ComputeRequest out;
  EXPECT_FALSE(decode(encode(request), out));
  request.insert(request.begin(), request.front());
  EXPECT_EQ(decode(encode(request), out), WireError::kBadBody);
}

TEST(ComputeRequest, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(changed(0, 0), WireError::kBadBody) << "operation";
  EXPECT_EQ(changed(0, 5), WireError::kBadBody) << "operation";
  EXPECT_EQ(changed(1, 0), WireError::kBadBody) << "job";
  EXPECT_EQ(changed(1, 5), WireError::kBadBody) << "job";
  EXPECT_EQ(changed(2, 1), WireError::kBadBody) << "reserved";
  EXPECT_EQ(changed(8, 1), WireError::kBadBody) << "an unused value";
}

TEST(ComputeRequest, KnowsWhereAnExpressionEnds) {
  EXPECT_EQ(expression_size(sum()), 3U);
  EXPECT_EQ(expression_size(std::span<const ComputeNode>(sum()).subspan(1)), 1U);
}

TEST(ComputeResult, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encode(ComputeResult{.value = 42, .text = "ok"})), "2a000000000000006f6b");
}

TEST(ComputeResult, IsReadBackSafeToShow) {
  ComputeResult out;
  ASSERT_FALSE(decode(encode(ComputeResult{.value = -1, .text = "two\nlines"}), out));
  EXPECT_EQ(out, (ComputeResult{.value = -1, .text = "two lines"}));
}

TEST(ComputeResult, RejectsWhatIsTooShortOrTooLong) {
  ComputeResult out;
  EXPECT_EQ(decode(std::vector<std::byte>(7), out), WireError::kBadBody);
  EXPECT_EQ(decode(std::vector<std::byte>(9 + kMaxResultTextBytes), out), WireError::kBadBody);
  EXPECT_EQ(out, ComputeResult{});
  const ComputeResult longest{.text = std::string(kMaxResultTextBytes + 1, 'x')};
  EXPECT_EQ(encode(longest).size(), 8 + kMaxResultTextBytes);
}

RunTaskRequest example() {
  return {.start = std::chrono::seconds(300),
          .peer = std::chrono::seconds(60),
          .worker = std::chrono::seconds(61),
          .heartbeat_timeout = std::chrono::seconds(10),
          .data = 3};
}

// Decodes the example's bytes with one byte changed.
std::error_code changed_run(std::size_t at, std::uint8_t value) {
  std::vector<std::byte> bytes = encode(example());
  bytes.at(at) = std::byte{value};
  RunTaskRequest out;
  return decode(bytes, out);
}

TEST(RunTaskRequest, HasTheBytesOfTheDocument) {
  const std::vector<std::byte> body = encode(example());
  EXPECT_EQ(hex(body), "2c0100003c0000003d0000000a00000003000000");
}

TEST(RunTaskRequest, IsReadBack) {
  RunTaskRequest out;
  ASSERT_FALSE(decode(encode(example()), out));
  EXPECT_EQ(out, example());
}

TEST(RunTaskRequest, RejectsTimeoutsThatAreNoneOrTooLong) {
  for (const std::size_t at : {0U, 4U, 8U, 12U}) {
    EXPECT_EQ(changed_run(at + 3, 1), WireError::kBadBody) << "more than a day, at " << at;
    RunTaskRequest none = example();
    (at == 0   ? none.start
     : at == 4 ? none.peer
     : at == 8 ? none.worker
               : none.heartbeat_timeout) = {};
    RunTaskRequest out;
    EXPECT_EQ(decode(encode(none), out), WireError::kBadBody) << "0, at " << at;
  }
}

TEST(RunTaskRequest, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(changed_run(16, 0), WireError::kBadBody) << "data set";
  EXPECT_EQ(changed_run(17, 1), WireError::kBadBody) << "reserved";
  EXPECT_EQ(changed_run(19, 1), WireError::kBadBody) << "reserved";
}

TEST(RunTaskRequest, HasNothingButItsNumbers) {
  std::vector<std::byte> bytes = encode(example());
  RunTaskRequest out;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::span(bytes).first(size), out), WireError::kBadBody) << size;
  }
  bytes.push_back(std::byte{'x'});
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody);
  EXPECT_EQ(out, RunTaskRequest{}) << "a rejected body changed the output";
}

TEST(RunTaskRequest, IsOfAClusterWithTheDriverAsItsChief) {
  Cluster servers;
  servers.ps = {{"a", 1}};
  servers.workers = {{"b", 1}, {"c", 1}};
  const Cluster run = driven(servers);
  EXPECT_EQ(run.trainer(0), (TaskId{.job = Job::kChief, .index = 0}));
  EXPECT_EQ(run.trainer_count(), 3U);
  EXPECT_EQ(run.ps, servers.ps);
  EXPECT_EQ(run.workers, servers.workers);
  EXPECT_NE(hash_of(run), hash_of(servers));
}

TEST(TaskEnd, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encode(TaskEnd{.exit_code = 3, .last_line = "no"})), "03000000000000006e6f");
}

TEST(TaskEnd, IsReadBackSafeToShow) {
  TaskEnd out;
  ASSERT_FALSE(decode(encode(TaskEnd{.signal = 9, .last_line = "two\nlines"}), out));
  EXPECT_EQ(out, (TaskEnd{.signal = 9, .last_line = "two lines"}));
}

TEST(TaskEnd, RejectsWhatIsTooShortOrTooLongOrNoEnd) {
  TaskEnd out;
  EXPECT_EQ(decode(std::vector<std::byte>(7), out), WireError::kBadBody);
  EXPECT_EQ(decode(std::vector<std::byte>(9 + kMaxLastLineBytes), out), WireError::kBadBody);
  std::vector<std::byte> bytes(8);
  bytes[1] = std::byte{1};
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody) << "exit code 256";
  bytes[1] = {};
  bytes[4] = std::byte{65};
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody) << "signal 65";
  EXPECT_EQ(out, TaskEnd{});
  const TaskEnd longest{.last_line = std::string(kMaxLastLineBytes + 1, 'x')};
  EXPECT_EQ(encode(longest).size(), 8 + kMaxLastLineBytes);
}

}  // namespace
}  // namespace disttf::net
