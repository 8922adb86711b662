// What the tests of roles/trainer/core/run_session.h share: a trainer of two ps in virtual time.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <string>

#include "roles/trainer/core/run_session.h"
#include "tests/roles/fake_ps.h"

namespace disttf::roles {

class RunSessionTest : public testing::Test {
 protected:
  using Outcome = RunSession::Outcome;
  static constexpr std::size_t kFloats = 4096;

  static Task task_of_trainer() {
    Task task;
    task.cluster.ps = {{.host = "ps0", .port = 1}, {.host = "ps1", .port = 1}};
    task.cluster.workers = {{.host = "w0", .port = 2}, {.host = "w1", .port = 3}};
    task.self = {.job = net::Job::kWorker, .index = 0};
    task.incarnation = 7;
    task.timeouts = {.start = std::chrono::seconds(300),
                     .peer = std::chrono::seconds(60),
                     .worker = std::chrono::seconds(20),
                     .heartbeat_timeout = std::chrono::seconds(10)};
    return task;
  }

  // Connects, and asks the hosts for their state.
  void begin_join() {
    session().begin_connect(world_.now());
    world_.go_on();
    session().prepare({.size = kFloats});
    session().begin_pull(world_.now());
  }
  // Connects and joins the state of the hosts: step 5 of generation 3.
  void join(const RunSession::Run& run = {.size = kFloats}) {
    for (const std::size_t range : {0U, 1U}) {
      world_.host(range).hold(5, 3);
    }
    session().begin_connect(world_.now());
    ASSERT_EQ(world_.go_on(), Outcome::kDone);
    session().prepare(run);
    session().begin_pull(world_.now());
    ASSERT_EQ(world_.go_on(), Outcome::kDone);
    ASSERT_EQ(session().reply().step, 5U);
    world_.heard();
    world_.dials();
  }
  // The same where each range has two hosts, of which the first is the primary.
  void join_with_replicas() {
    for (const std::size_t range : {0U, 1U}) {
      world_.host(range).welcome.replica_role = net::ReplicaRole::kPrimary;
      world_.host(range, 1).welcome = {.incarnation = 100 + range,
                                       .state = net::ShardState::kReady,
                                       .replica_role = net::ReplicaRole::kBackup,
                                       .generation = 3,
                                       .step = 5};
    }
    join({.size = kFloats});
  }
  // A chief has joined. While it sends the best evaluation of step 4, a new process replaces the
  // second ps, whose link has carried nothing yet.
  void lose_while_sending_best() {
    session().record_best({.step = 4, .loss = 0.5});
    session().lead();
    join();
    world_.host(1).is_mute = true;
    session().begin_send_best(world_.now());
    ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
    world_.host(1).restart(200);
  }
  void begin_push() { session().begin_push_pull(1, false, world_.now()); }
  void expect_failure(int code, const std::string& sentence) {
    ASSERT_EQ(session().outcome(), Outcome::kFailed);
    EXPECT_EQ(session().failure().exit_code(), code);
    EXPECT_THAT(session().failure().what(), testing::HasSubstr(sentence));
  }
  [[nodiscard]] RunSession& session() { return world_.session; }

  const Task task_ = task_of_trainer();
  TrainerWorld world_{task_};
};

}  // namespace disttf::roles
