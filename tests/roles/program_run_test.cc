// A user's program on the ps: its configuration may be long, and its variables are updated as the
// configuration says.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "tests/roles/range_replica_fixture.h"
#include "tests/roles/run_session_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameKind;

// With SGD and rate 1. The vector: w at 0, mean at 16, frozen at 32, scale at 48.
RunConfig program_run(std::size_t more_variables = 0) {
  RunConfig config = small_run();
  config.model.variables = {{.name = "w", .shape = {2, 3}},
                            {.name = "mean", .shape = {3}, .decays = false, .momentum = 0.75F},
                            {.name = "frozen", .shape = {4}, .rate_factor = 0},
                            {.name = "scale", .shape = {}, .rate_factor = 0.5F}};
  for (std::size_t i = 0; i < more_variables; ++i) {
    config.model.variables.push_back(
        {.name = "layers." + std::to_string(i) + ".weight", .shape = {1}});
  }
  return config;
}

Bytes bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> floats_of(const Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class ProgramRun : public RangeReplicaTest {
 protected:
  void begin(const RunConfig& config) {
    chief_ = host_.connect(0, 7);
    other_ = host_.connect(1, 8);
    published_ = to_json(config);
    size_of_run_ = math::layout_of(config.model).size();
    ASSERT_TRUE(
        host_.say(chief_, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published_))));
    expect(host_, chief_, FrameKind::kAck);
    ASSERT_TRUE(host_.say(chief_, {.kind = FrameKind::kRestore, .generation = 1},
                          bytes_of(std::vector<float>(size_of_run_, 8))));
    expect(host_, chief_, FrameKind::kAck);
  }
  // Both push the same. Returns the parameters after the step.
  std::vector<float> parameters_after(float gradient) {
    const Bytes pushed = bytes_of(std::vector<float>(size_of_run_, gradient));
    EXPECT_TRUE(host_.say(chief_, push(0), pushed));
    EXPECT_TRUE(host_.say(other_, push(0), pushed));
    const auto frame = host_.take(other_);
    EXPECT_TRUE(frame && frame->header.kind == FrameKind::kParameters);
    return frame ? floats_of(frame->body) : std::vector<float>();
  }

  ConnectionId chief_ = 0;
  ConnectionId other_ = 0;
  std::string published_;
  std::size_t size_of_run_ = 0;
};

TEST_F(ProgramRun, UpdatesEachVariableByItsOwnRule) {
  begin(program_run());
  const std::vector<float> after = parameters_after(4);
  ASSERT_EQ(after.size(), 64U);
  EXPECT_EQ(after[5], 4) << "the rate is 1";
  EXPECT_EQ(after[18], 7) << "3/4 of 8 and 1/4 of 4: a running statistic";
  EXPECT_EQ(after[35], 8) << "it never changes";
  EXPECT_EQ(after[48], 6) << "half of the rate";
}

TEST_F(ProgramRun, WithThousandsOfVariablesIsPublishedAndPassedOn) {
  begin(program_run(5000));
  ASSERT_GT(published_.size(), net::kMaxControlBodyBytes);
  ASSERT_TRUE(host_.say(other_, {.kind = FrameKind::kGetConfig}));
  const auto frame = host_.take(other_);
  ASSERT_TRUE(frame && frame->header.kind == FrameKind::kConfig);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(frame->body.data()), frame->body.size()),
            published_);
  EXPECT_EQ(parameters_after(4).size(), 64U + 5000 * 16);
}

TEST_F(ProgramRun, OfOtherVariablesIsRefusedWithTheFirstOne) {
  begin(program_run());
  RunConfig other = program_run();
  other.model.variables[2].shape = {5};
  const ConnectionId next = host_.connect(0, 9);
  const std::string published = to_json(other);
  EXPECT_FALSE(host_.say(next, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published))));
  EXPECT_THAT(host_.refused().at(next),
              testing::HasSubstr("variable 3 is frozen [5], rate factor 0, the earlier run's is "
                                 "frozen [4], rate factor 0"));
}

// The bytes for which there is memory, if a peer claims the longest configuration and sends it
// slowly.
TEST_F(RangeReplicaTest, TakesMemoryForAConfigurationAsItArrives) {
  const ConnectionId chief = host_.connect(0, 7);
  BodyPlan plan = host_.begin(chief, {.kind = FrameKind::kPublish}, net::kMaxConfigBodyBytes);
  std::size_t have = 0;
  while (have < net::kMaxConfigBodyBytes) {
    ASSERT_EQ(plan.next, BodyPlan::Next::kInto);
    ASSERT_EQ(plan.places.size(), 1U);
    const std::size_t piece = plan.places[0].size();
    EXPECT_LE(piece, std::max(net::kMaxControlBodyBytes, have));
    EXPECT_FALSE(host_.core.run_to_begin(chief)) << "it is not there yet";
    have += piece;
    plan = host_.core.body(chief, host_.now());
  }
  EXPECT_EQ(have, net::kMaxConfigBodyBytes);
  EXPECT_EQ(plan.next, BodyPlan::Next::kStop) << "zeros are no configuration";
}

TEST_F(RangeReplicaTest, RefusesAConfigurationThatIsTooLong) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId worker = host_.connect(1, 8);
  host_.begin(chief, {.kind = FrameKind::kPublish}, net::kMaxConfigBodyBytes + 1);
  EXPECT_THAT(host_.refused().at(chief), testing::HasSubstr("at most 16 MiB"));
  host_.begin(worker, {.kind = FrameKind::kPublish}, 100);
  EXPECT_THAT(host_.refused().at(worker), testing::HasSubstr("only the chief"));
}

// The backup gets the configuration, and then the state.
class PairsOfAProgram : public PairedHosts {
 protected:
  [[nodiscard]] RunConfig run() const override {
    RunConfig config = program_run(5000);
    config.ps_replicas = 2;
    return config;
  }
};

TEST_F(PairsOfAProgram, HaveTheSameConfiguration) {
  carry();
  EXPECT_EQ(second_.core.state().config_json(), to_json(run()));
  EXPECT_TRUE(second_.core.host().is_backup());
}

// ---- The trainer's side

class RunSessionText : public RunSessionTest {
 protected:
  // A ps answers GET_CONFIG or STATUS with a header of so many bytes. Returns whether they are
  // read.
  bool takes(FrameKind answer, std::size_t bytes) {
    world_.host(0).hold(5, 3);
    world_.host(1).hold(5, 3);
    session().begin_connect(world_.now());
    EXPECT_EQ(world_.go_on(), Outcome::kDone);
    world_.host(0).is_mute = true;
    if (answer == FrameKind::kConfig) {
      session().begin_get_config(world_.now());
    } else {
      session().begin_status(0, world_.now());
    }
    EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
    world_.say(0, {.kind = answer, .request_id = world_.last_id(0), .body_size = bytes});
    return world_.go_on() == Outcome::kDone && session().has_text();
  }
};

TEST_F(RunSessionText, MayBeALongConfiguration) {
  EXPECT_TRUE(takes(FrameKind::kConfig, net::kMaxConfigBodyBytes));
}
TEST_F(RunSessionText, IsNoLongerThanAnyConfiguration) {
  EXPECT_FALSE(takes(FrameKind::kConfig, net::kMaxConfigBodyBytes + 1));
}
TEST_F(RunSessionText, OfTheStatusIsShort) {
  EXPECT_FALSE(takes(FrameKind::kStatusReply, net::kMaxControlBodyBytes + 1));
}

}  // namespace
}  // namespace disttf::roles
