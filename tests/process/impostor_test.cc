// A peer that follows the protocol and knows the cluster, but sends false data, to a ps without
// another run, because without authentication it could take a real worker's place. Every false
// message is rejected with a sentence, the connection is closed, and the ps's state is unchanged.
#include "tests/process/impostor.h"

#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

#include "data/digits.h"
#include "data/mnist.h"
#include "math/model.h"
#include "net/wire/codec.h"
#include "net/wire/snapshot_messages.h"
#include "net/wire/sparse_gradient.h"
#include "run/run_config.h"
#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"
#include "tests/process/scripted_run.h"

namespace disttf::test_process {
namespace {

using net::FrameHeader;
using net::FrameKind;
using net::Job;

class Impostor : public ImpostorFixture {
 protected:
  // Pushes a gradient of ones, which is the first and makes a step.
  [[nodiscard]] Bytes parameters_after_a_push() const {
    Bytes parameters;
    EXPECT_EQ(reply_to(connect(),
                       frame({.kind = FrameKind::kPushPull, .sequence = 1, .generation = 1},
                             gradient_bytes()),
                       parameters),
              FrameKind::kParameters);
    return parameters;
  }
};

TEST_F(Impostor, PublishesSomethingElseThanJson) {
  expect_refused(connect(), frame({.kind = FrameKind::kPublish}, bytes_of("{{{{")),
                 "the published configuration is not a JSON object");
}

TEST_F(Impostor, PublishesJsonOfADifferentShape) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"[]", "is not a JSON object"},
      {"null", "is not a JSON object"},
      {"{}", "lacks --dataset"},
      {R"({"dataset":7})", "--dataset: 7 is not a string"},
      {R"({"dataset":{"a":[1]}})", "--dataset: a nested value is not a string"}};
  for (const auto& [json, sentence] : cases) {
    expect_refused(connect(), frame({.kind = FrameKind::kPublish}, bytes_of(json)), sentence);
  }
}

TEST_F(Impostor, PublishesDeeplyNestedJson) {
  expect_refused(connect(), frame({.kind = FrameKind::kPublish}, bytes_of(std::string(60000, '['))),
                 "the published configuration");
}

TEST_F(Impostor, PublishesAConfigurationThatIsTooLarge) {
  Bytes request = frame({.kind = FrameKind::kPublish}, Bytes(net::kMaxConfigBodyBytes + 1));
  request.resize(net::kHeaderBytes);  // what is claimed decides
  expect_refused(connect(), request, "of at most 16 MiB");
}

TEST_F(Impostor, PublishesAModelThatIsTooLarge) {
  config_.model.kind = math::ModelKind::kMlp;
  config_.model.hidden = {1'000'000, 1'000'000};
  expect_refused(connect(), publish(), "hidden_units");
}

// The ps allocates none of the memory before it has checked that there is enough.
TEST_F(Impostor, PublishesAModelForWhichThereIsNoMemory) {
  const rlimit limit{.rlim_cur = std::size_t{1} << 30U, .rlim_max = std::size_t{1} << 30U};
  ASSERT_EQ(prlimit(ps_->pid(), RLIMIT_AS, &limit, nullptr), 0);
  config_.model.kind = math::ModelKind::kMlp;
  config_.model.hidden = {30'000, 4'000};
  expect_refused(connect(), publish(), " MiB are available");
  std::ifstream status("/proc/" + std::to_string(ps_->pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      EXPECT_LT(std::stoul(line.substr(6)), 200'000U) << "KiB, at most";
    }
  }
}

// Another thread makes the shard; the ps then continues with the connection.
TEST_F(Impostor, PublishesALargeModelAndIsAnswered) {
  config_.model.kind = math::ModelKind::kMlp;
  config_.model.hidden = {5'000};
  size_ = math::layout_of(config_.model).size();
  start_run();
  expect_parameters_unchanged();
}

TEST_F(Impostor, PublishesBatchesThatAreTooLargeForTheModel) {
  config_.model.kind = math::ModelKind::kMlp;
  config_.model.hidden = {math::kMaxUnits};
  config_.batch_size = roles::kMaxBatchSize;
  expect_refused(connect(), publish(),
                 "--batch_size: 1048576 is not from 1 to 16284 with --hidden_units 65536");
}

TEST_F(Impostor, PublishesAnotherNumberOfTrainers) {
  config_.trainers = 5000;
  expect_refused(connect(), publish(), "the chief counts 5000 trainers");
}

TEST_F(Impostor, PushesBeforeThereAreParameters) {
  expect_fenced(frame({.kind = FrameKind::kPushPull, .generation = 1}, Bytes(4)));
}

TEST_F(Impostor, RestoresBeforePublishing) {
  expect_refused(connect(), frame({.kind = FrameKind::kRestore, .generation = 1}, Bytes(4)),
                 "after it has published");
}

TEST_F(Impostor, PublishesAnotherConfigurationDuringTheRun) {
  start_run();
  config_.seed = 2;
  expect_refused(connect(), publish(), "a run with another configuration is under way");
  expect_parameters_unchanged();
}

TEST_F(Impostor, RestoresDuringTheRun) {
  start_run();
  expect_fenced(frame({.kind = FrameKind::kRestore, .generation = 1}, gradient_bytes()));
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesAnotherRange) {
  start_run();
  expect_refused(
      connect(),
      frame({.kind = FrameKind::kPushPull, .range_begin = 16, .generation = 1}, gradient_bytes()),
      "is not the range of ps 0");
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesAnotherSize) {
  start_run();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, size_ * 4 - 4, size_ * 4 + 4}) {
    expect_refused(connect(), frame({.kind = FrameKind::kPushPull, .generation = 1}, Bytes(bytes)),
                   "is not the range of ps 0");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, AnnouncesATensorLargerThanMemory) {
  start_run();
  const RawPeer peer = connect();
  Bytes header(net::kHeaderBytes);
  net::encode_header(
      {.kind = FrameKind::kPushPull, .body_size = std::uint64_t{1} << 62U, .generation = 1},
      std::span(header).first<net::kHeaderBytes>());
  expect_refused(peer, header, "is not the range of ps 0");
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesForAFutureStep) {
  start_run();
  expect_refused(
      connect(),
      frame({.kind = FrameKind::kPushPull, .step = 7, .generation = 1}, gradient_bytes()),
      "a gradient for step 7 came while the parameters are at step 0");
  expect_parameters_unchanged();
}

// One value that is not a number would spread to all parameters in the step after the next.
TEST_F(Impostor, PushesValuesThatAreNoNumbers) {
  start_run();
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Bytes gradient = gradient_bytes();
    std::memcpy(gradient.data() + 5 * sizeof value, &value, sizeof value);
    expect_refused(
        connect(), frame({.kind = FrameKind::kPushPull, .generation = 1}, gradient),
        "the gradient for step 0 has non-finite values, 1 of " + std::to_string(size_) + ": ");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesALongerGradientThanTheRunAllows) {
  config_.max_gradient_norm = 2;
  start_run();
  expect_refused(connect(),
                 frame({.kind = FrameKind::kPushPull, .generation = 1}, gradient_bytes()),
                 "has a norm of 88.6341 here, --max_gradient_norm is 2");
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesWhatIsBadWhereThatIsCounted) {
  config_.max_gradient_norm = 2;
  config_.rejected_gradients = roles::RejectedGradients::kCount;
  start_run();
  const Bytes parameters = parameters_after_a_push();
  EXPECT_NE(parameters, Bytes(size_ * sizeof(float)));
  EXPECT_TRUE(says(*ps_, "the gradient for step 0 has a norm of .*; it is used"));
}

TEST_F(Impostor, PushesForAnotherGeneration) {
  start_run();
  expect_fenced(frame({.kind = FrameKind::kPushPull, .generation = 9}, gradient_bytes()));
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesInAnotherFormThanTheRuns) {
  start_run();
  for (const std::uint16_t flags :
       {net::kFlagBf16, net::kFlagSparse, net::kFlagInt8, net::kFlagInt4}) {
    expect_refused(
        connect(),
        frame({.kind = FrameKind::kPushPull, .flags = flags, .generation = 1}, gradient_bytes()),
        "a gradient in another form than --wire_dtype and --compress");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesAnotherSizeOfBfloat16) {
  config_.wire_dtype = roles::WireDtype::kBf16;
  start_run();
  expect_refused(connect(),
                 frame({.kind = FrameKind::kPushPull, .generation = 1}, gradient_bytes()),
                 "a gradient in another form");
  for (const std::size_t bytes : {std::size_t{0}, size_ * 2 - 2, size_ * 2 + 2, size_ * 4}) {
    expect_refused(connect(),
                   frame({.kind = FrameKind::kPushPull, .flags = net::kFlagBf16, .generation = 1},
                         Bytes(bytes)),
                   "is not one of the range of ps 0");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesAnotherSizeOfBlocks) {
  config_.wire_dtype = roles::WireDtype::kInt8;
  start_run();
  for (const std::size_t bytes : {std::size_t{0}, size_, size_ + size_ / 16 + 1, size_ * 4}) {
    expect_refused(connect(),
                   frame({.kind = FrameKind::kPushPull, .flags = net::kFlagInt8, .generation = 1},
                         Bytes(bytes)),
                   "is not one of the range of ps 0");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, PushesComponentsThatTheRangeCannotHave) {
  config_.top_k = 0.01F;
  start_run();
  const auto push = [](const Bytes& body) {
    return frame({.kind = FrameKind::kPushPull, .flags = net::kFlagSparse, .generation = 1}, body);
  };
  const std::size_t most = size_ / 100 + 1;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{7}, std::size_t{12}, 8 * most + 8, size_ * 4}) {
    expect_refused(connect(), push(Bytes(bytes)), "is not one of the range of ps 0");
  }
  std::vector<float> gradient(size_);
  gradient[5] = 1;
  gradient[size_ - 1] = 2;
  Bytes body;
  net::encode_sparse(gradient, false, body);
  Bytes beyond = body;
  net::store_le(static_cast<std::uint32_t>(size_), std::span(beyond).subspan(4));
  Bytes back = body;
  net::store_le(std::uint32_t{5}, std::span(back).subspan(4));
  Bytes zero = body;
  net::store_le(std::uint32_t{0}, std::span(zero).subspan(8));
  for (const Bytes& lie : {beyond, back, zero}) {
    expect_refused(connect(), push(lie), "components are not ascending ones of the range of ps 0");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, HangsUpInTheMiddleOfAGradient) {
  start_run();
  {
    const RawPeer peer = connect();
    Bytes half = frame({.kind = FrameKind::kPushPull, .generation = 1}, gradient_bytes());
    half.resize(half.size() / 2);
    peer.write(half);
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, SendsRepliesAsRequests) {
  start_run();
  for (const FrameKind kind : {FrameKind::kHello, FrameKind::kWelcome, FrameKind::kRefused,
                               FrameKind::kParameters, FrameKind::kAck, FrameKind::kStatusReply}) {
    expect_refused(connect(), frame({.kind = kind}), "is not allowed from this task now");
    expect_refused(connect(), frame({.kind = kind}, Bytes(100)), "no body here");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, AsksForTheWritingOfAnotherRange) {
  start_run();
  for (const net::WriteSnapshotShard& shard_file :
       {net::WriteSnapshotShard{.shard = 1, .shards = 2},
        net::WriteSnapshotShard{.shard = 0, .shards = 2},
        net::WriteSnapshotShard{.shard = 5, .shards = 1}}) {
    expect_refused(
        connect(net::ChannelPurpose::kState),
        frame({.kind = FrameKind::kWriteSnapshotShard, .generation = 1}, net::encode(shard_file)),
        "writes its own range only");
  }
  expect_parameters_unchanged();
}

TEST_F(Impostor, AsksForTheWritingOfASnapshotShardWithAnotherBody) {
  start_run();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{15}, std::size_t{17}}) {
    expect_refused(connect(net::ChannelPurpose::kState),
                   frame({.kind = FrameKind::kWriteSnapshotShard, .generation = 1}, Bytes(bytes)),
                   "has a body of 16 bytes");
  }
  expect_refused(
      connect(),
      frame({.kind = FrameKind::kWriteSnapshotShard}, net::encode(net::WriteSnapshotShard{})),
      "no body here");
}

TEST_F(Impostor, AsksForTheWritingOfASnapshotShardThatIsNotThere) {
  start_run();
  const RawPeer peer = connect(net::ChannelPurpose::kState);
  const auto write = [](std::uint64_t sequence, net::Generation generation) {
    return frame(
        {.kind = FrameKind::kWriteSnapshotShard, .sequence = sequence, .generation = generation},
        net::encode(net::WriteSnapshotShard{}));
  };
  expect_ack(peer, write(0, 1));
  Bytes body;
  ASSERT_EQ(reply_to(peer,
                     frame({.kind = FrameKind::kFindSnapshotShard,
                            .flags = net::kFlagSnapshot,
                            .generation = 1}),
                     body),
            FrameKind::kSnapshotShard);
  EXPECT_TRUE(body.empty());
  expect_ack(peer, write(0, 2));
  expect_ack(peer, write(9, 1));
  EXPECT_EQ(reply_to(peer, write(0, 1), body), FrameKind::kNotWritten);
  const std::string sentence(reinterpret_cast<const char*>(body.data()), body.size());
  EXPECT_THAT(sentence, ::testing::HasSubstr("without --train_dir"));
}

TEST_F(Impostor, HonestPushIsApplied) {
  start_run();
  const Bytes parameters = parameters_after_a_push();
  EXPECT_NE(parameters, Bytes(size_ * sizeof(float))) << "the push had no effect";
}

// A worker would read beyond its images.
TEST_F(Impostor, PublishesAModelOfLargerImagesToAWorker) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  Process& ps = run_task(cluster, Job::kPs, 0);
  ASSERT_TRUE(says(ps, "Started server"));
  config_.trainers = 2;
  const data::FileSet& dataset = has_mnist() ? data::mnist() : data::digits();
  config_.dataset = dataset.name;
  config_.data_checksum = dataset.checksum;
  config_.model.input = {.channels = 1000};
  start_run(connect_to(cluster));
  Process& worker = run_task(cluster, Job::kWorker, 1);
  EXPECT_TRUE(exits(worker, kExitError));
  EXPECT_TRUE(says(worker,
                   "the chief published what this version cannot use: --inputs: 1000 is not "
                   "28x28x1, the shape of an example"));
  ps.send(SIGKILL);
}

// Only the chief may send these.
class ImpostorOfAWorker : public ProcessTest {};

TEST_F(ImpostorOfAWorker, PublishesOrShutsDown) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  Process& ps = run_task(cluster, Job::kPs, 0);
  ASSERT_TRUE(says(ps, "Started server"));
  for (const FrameKind kind : {FrameKind::kPublish, FrameKind::kShutdown, FrameKind::kRestore}) {
    const RawPeer peer(cluster.tasks().ps.front().port);
    peer.write(hello_frame({.cluster = net::hash_of(cluster.tasks()),
                            .from = {.job = Job::kWorker, .index = 1},
                            .to = {.job = Job::kPs, .index = 0},
                            .purpose = net::ChannelPurpose::kStep,
                            .incarnation = 77}));
    peer.write(frame({.kind = kind}));
    bool timed_out = false;
    EXPECT_TRUE(refusal_in(peer.read_to_end(kPatience, timed_out)).has_value());
    EXPECT_FALSE(timed_out);
  }
  ps.send(SIGTERM);
  EXPECT_TRUE(exits(ps, kExitTerminated));
}

// A client that connects while the ps still reports the failure must find the next ps.
TEST_F(Impostor, FindsThePortClosedOnceTheRunHasFailed) {
  const RawPeer peer = connect();
  ps_->send(SIGINT);
  FrameHeader header;
  Bytes body;
  ASSERT_TRUE(peer.read_frame(header, body, kPatience));
  EXPECT_EQ(header.kind, FrameKind::kRefused);
  EXPECT_THROW(RawPeer(cluster_.tasks().ps.front().port), std::system_error);
  EXPECT_TRUE(exits(*ps_, kExitInterrupted));
}

}  // namespace
}  // namespace disttf::test_process
