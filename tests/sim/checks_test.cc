// What the checkers hold against a run whose primary had gone on alone and was lost: everything
// that was answered, unless nobody is left who knows.
#include "tests/sim/checks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace disttf::sim {
namespace {

// Processes.
constexpr std::uint64_t kPrimary = 1;  // goes on alone
constexpr std::uint64_t kBackup = 2;   // has not heard of it
constexpr std::uint64_t kWorker = 3;   // is answered
constexpr std::uint64_t kChief = 10;   // lets it go on
constexpr std::uint64_t kNextChief = 11;
constexpr std::initializer_list<std::uint64_t> kWhoKnow = {kPrimary, kWorker, kChief};

constexpr StateName kState{.lineage = 100, .generation = 1};
constexpr net::View kPair{.number = {.chief = kChief, .count = 2}, .primary = 0, .paired = true};
constexpr net::View kAlone{.number = {.chief = kChief, .count = 3}, .primary = 0};

// Range 0 of two: a push is answered by the pair, and then another one by the primary alone.
class Story {
 public:
  explicit Story(bool sync = false) : is_sync_(sync) {
    Scenario scenario = plain_scenario(1);
    scenario.ps = 2;
    scenario.trainers = 1;
    scenario.config.train_steps = 10;
    scenario.config.ps_replicas = 2;
    scenario.config.sync_replicas = sync;
    complete(scenario);
    size_ = scenario.size;
    checks_.emplace(world_, scenario.config, size_, 2);
    tell(kChief, kPair.number, {kPrimary, kBackup});
    answer(kPair, 1, {kPrimary, kBackup, kWorker});
    tell(kChief, kAlone.number, {kPrimary});
    answer(kAlone, 2, {kPrimary, kWorker});
  }

  void tell(std::uint64_t chief, net::ViewNumber view, std::initializer_list<std::uint64_t> hosts) {
    checks_->witnesses().tells(chief, 0, view);
    for (const std::uint64_t host : hosts) {
      hear(host, view);
    }
  }
  void hear(std::uint64_t process, net::ViewNumber view) {
    checks_->witnesses().hears(process, 0, view);
  }
  void lose(std::initializer_list<std::uint64_t> processes) {
    for (const std::uint64_t process : processes) {
      checks_->witnesses().has_gone(process);
    }
  }
  // The next chief has heard of the pair, and the backup serves the range, with so many pushes.
  void go_on_without_them(net::ViewNumber view = {.chief = kNextChief, .count = 3},
                          std::uint64_t step = 1) {
    hear(kNextChief, kPair.number);
    tell(kNextChief, view, {kBackup});
    checks_->host_was_promoted(0, kState, view, step);
    checks_->host_goes_on("ps 1", 0, kState, view, step, parameters_of(step));
    if (is_sync_) {
      checks_->host_acknowledges("ps 1", 0, kState, view, step);
    }
    result_ = step;
  }
  // What is held against it at the end.
  [[nodiscard]] std::string violation() {
    if (!is_sync_) {
      checks_->result("worker 0", /*is_chief=*/true, result_, {kState, {}}, parameters_of(result_));
    }
    return world_.violation();
  }

 private:
  // Push number `step`, with parameters of that step.
  void answer(const net::View& view, std::uint64_t step,
              std::initializer_list<std::uint64_t> who_see_it) {
    const PushName push{.incarnation = kWorker, .sequence = step};
    checks_->host_answers(0, kState, view, step, push);
    if (is_sync_) {
      checks_->host_acknowledges("ps 0", 0, kState, view.number, step);
    }
    checks_->push_acknowledged(0, kState, step, push);
    for (const std::uint64_t process : who_see_it) {
      checks_->witnesses().has_seen(process, 0, kState, step);
    }
  }
  // Asynchronous training with sgd of rate 1: each push is a component.
  [[nodiscard]] std::vector<float> parameters_of(std::uint64_t step) const {
    std::vector<float> parameters(size_);
    for (std::uint64_t each = 1; each <= step; ++each) {
      parameters[each] = -1;
    }
    return parameters;
  }

  const bool is_sync_;
  World world_{1, false};
  std::size_t size_ = 0;
  std::uint64_t result_ = 0;  // the pushes in it
  std::optional<Checks> checks_;
};

TEST(LostAnswers, CountNoMoreOnceNobodyIsLeftWhoKnows) {
  for (const bool sync : {false, true}) {
    Story story(sync);
    story.lose(kWhoKnow);
    story.go_on_without_them();
    EXPECT_EQ(story.violation(), "");
  }
}

TEST(LostAnswers, CountWhereOneProcessIsLeftThatKnows) {
  for (const bool sync : {false, true}) {
    for (const std::uint64_t survivor : kWhoKnow) {
      Story story(sync);
      for (const std::uint64_t each : kWhoKnow) {
        if (each != survivor) {
          story.lose({each});
        }
      }
      story.go_on_without_them();
      EXPECT_NE(story.violation(), "") << survivor;
    }
  }
}

// Too late.
TEST(LostAnswers, CountWhereWhoKnewIsLostAfterwards) {
  Story story;
  story.lose({kPrimary, kChief});
  story.go_on_without_them();
  story.lose({kWorker});
  story.go_on_without_them({.chief = kNextChief, .count = 4});
  EXPECT_NE(story.violation(), "");
}

// Or who was told by one that does, in a view of its own.
TEST(LostAnswers, CountWhereSomebodyHasHeardOfWhatAnotherChiefMadeOfThem) {
  constexpr std::uint64_t kBetween = 12;
  for (const bool has_heard : {false, true}) {
    Story story;
    if (has_heard) {
      story.hear(kBetween, kAlone.number);
    }
    story.tell(kBetween, {.chief = kBetween, .count = 3}, {kBackup});
    story.lose(kWhoKnow);
    story.lose({kBetween});
    story.go_on_without_them();
    EXPECT_EQ(story.violation() != "", has_heard);
  }
}

// A host that was frozen hears of a view that was before them: nobody has chosen it since.
TEST(LostAnswers, CountWhereAnOlderViewIsHeardOfLate) {
  Story story;
  story.lose(kWhoKnow);
  story.go_on_without_them(kPair.number);
  EXPECT_NE(story.violation(), "");
}

TEST(LostAnswers, CountWhereThePairGaveThem) {
  for (const bool sync : {false, true}) {
    Story story(sync);
    story.lose(kWhoKnow);
    story.go_on_without_them({.chief = kNextChief, .count = 3}, /*step=*/0);
    EXPECT_NE(story.violation(), "");
  }
}

}  // namespace
}  // namespace disttf::sim
