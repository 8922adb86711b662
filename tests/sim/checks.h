// What must be true of a run, whatever fails: the invariants, each told what it needs to see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "math/parameter_layout.h"
#include "net/wire/frame.h"
#include "net/wire/replication.h"
#include "roles/run/run_config.h"
#include "roles/trainer/core/stepper.h"
#include "tests/sim/oracles.h"
#include "tests/sim/witnesses.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// The request of a process, whichever of its frames says it.
struct PushName {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const PushName&, const PushName&) = default;
};

class Checks {
 public:
  Checks(World& world, const roles::RunConfig& config, std::size_t size, std::size_t ps);

  // A chief may also come with this configuration, of which every gradient counts, too.
  void expect_also(const roles::RunConfig& other) { oracle_.add(other, size_); }
  [[nodiscard]] bool may_differ() const noexcept { return oracle_.are_several(); }
  // A chief with that configuration sets the ps to a state of this generation.
  void began(net::Generation generation, const roles::RunConfig& config) {
    oracle_.began(generation, config.seed);
  }

  [[nodiscard]] math::Range range(std::size_t index) const;

  // --- the gradients
  // Where every gradient counts: the oracle's. Else each push has a component of its own, in every
  // range, so that parameters are the set of the pushes that were applied.
  // `components`: by range, of a push for these steps of the ranges' states. Sync: a gradient is
  // what it is by step and trainer, whichever process computes it; async: each push is another one.
  using Components = std::vector<std::size_t>;
  using Places = std::vector<std::pair<StateName, std::uint64_t>>;
  [[nodiscard]] Components take_components(std::size_t rank, const Places& places);
  // A trainer computes the gradient of the state at that step from the rows of `batch`. Of a
  // synchronous run these depend on the step and the slot alone, whichever process computes them
  // and however often it was started.
  void rows_are_taken(const std::string& who, const roles::Stepper::Batch& batch,
                      std::uint64_t step, std::size_t rank);
  void fill_gradient(std::span<const float> parameters, std::uint64_t step, std::size_t slot,
                     const Components& components, std::span<float> gradient,
                     std::uint64_t seed = 1) const;

  // --- what a trainer hears
  // Parameters have come: invariants 1, 2, 8, 9, 13.
  void parameters_came(const std::string& who, std::size_t range, const net::FrameHeader& header,
                       std::span<const std::byte> body);
  // A push has been answered, and was not dropped.
  void push_acknowledged(std::size_t range, const StateName& state, std::size_t component,
                         const PushName& push);
  // It was.
  void push_dropped(std::size_t range, const StateName& state, std::size_t component,
                    const PushName& push);

  // --- what a host of a range does
  // After each event: invariant 3. `process`: tells hosts, and their processes, apart.
  void host_is_at(const std::string& who, std::size_t range, std::uint64_t process,
                  net::Generation generation, std::uint64_t step);
  // It answers a push with parameters of that step: invariants 5 and 7. Replicas only.
  void host_acknowledges(const std::string& who, std::size_t range, const StateName& state,
                         net::ViewNumber view, std::uint64_t step);
  // Replicas: it answers a trainer with parameters of that step. `push`: if it asked with one.
  void host_answers(std::size_t range, const StateName& state, const net::View& view,
                    std::uint64_t step, const std::optional<PushName>& push);
  // Replicas: in that view, of which it has just heard, it is the primary, with these parameters of
  // that step. Where a primary before it had gone on alone, and nobody is left who knows of that,
  // or who has seen what came of it, its answers were lost with all of them, and count no more.
  void host_goes_on(const std::string& who, std::size_t range, const StateName& state,
                    net::ViewNumber view, std::uint64_t step, std::span<const float> parameters);
  // It serves the range with the state that it had as a backup.
  void host_was_promoted(std::size_t range, const StateName& state, net::ViewNumber view,
                         std::uint64_t step);
  // A copy has made an update: invariant 6.
  // `view`: that it knows. A primary that was replaced makes steps still, until it hears of it, and
  // answers nobody with them.
  void host_made_step(const std::string& who, std::size_t range, const StateName& state,
                      net::ViewNumber view, std::uint64_t step, std::span<const float> parameters,
                      bool is_copy);

  // To be told who hears of which view and sees which step.
  [[nodiscard]] Witnesses& witnesses() noexcept { return witnesses_; }

  // The chief has brought home what it takes for the state of that step: invariant 10.
  void snapshot_collected(const std::string& who, std::uint64_t step,
                          std::span<const float> parameters);

  // An evaluator has put together what the ps hold, and scores it: it must be of one step of one
  // state, and of the run's.
  void cut_scored(const std::string& who, std::uint64_t step,
                  const std::vector<net::Generation>& generations, bool is_result,
                  std::span<const float> parameters);

  // --- the end
  // A trainer has printed this result.
  // `states`: which it is of, by range.
  void result(const std::string& who, bool is_chief, std::uint64_t step,
              const std::vector<StateName>& states, std::span<const float> parameters);
  // The step of the result that the chief has printed; nullopt: it has not.
  [[nodiscard]] std::optional<std::uint64_t> result_step() const noexcept { return result_step_; }
  // A task ends with 0: invariant 18, the result is durable.
  void task_is_done(const std::string& who);

 private:
  struct Made {
    net::ViewNumber view = {};
    std::uint64_t sum = 0;
  };
  struct Answered {
    bool in_pair = false;
    std::uint64_t step = 0;  // the newest
  };
  struct State {
    std::uint64_t acknowledged = 0;  // the newest step that a push was answered with
    net::ViewNumber view = {};       // the newest in which one was
    // At which step a backup took over, by view. (One that nobody speaks to any more may do so as
    // well.)
    std::map<net::ViewNumber, std::uint64_t> promoted_at;
    // By step: of the parameters of the primary of the newest view that has made it.
    std::map<std::uint64_t, Made> made;
    std::map<std::pair<std::uint64_t, std::size_t>, std::size_t> components;  // by step and rank
    std::set<std::size_t> used;  // components of pushes that were acknowledged
    std::set<std::size_t> unused;
    std::map<std::size_t, PushName> pushes;  // by component: the first that was answered
    // Replicas: what was answered in which view; a push for the first time.
    std::map<net::ViewNumber, Answered> answered;
    std::map<PushName, net::ViewNumber> answered_in;
    // In which more was answered than a primary after it has, though somebody knew better then.
    std::set<net::ViewNumber> remembered;
  };
  struct Host {
    net::Generation generation = 0;
    std::uint64_t step = 0;
  };

  [[nodiscard]] bool is_exact() const noexcept { return config_.every_gradient_counts(); }
  // No step is made after that. (Where the bits depend on time, an early end may be anywhere.)
  [[nodiscard]] std::uint64_t last_step() {
    return oracle_ ? oracle_->last_step() : config_.train_steps;
  }
  // Whether these are the oracle's of a step, from that float on. REQUIRES: is_exact().
  [[nodiscard]] bool is_state(std::uint64_t step, std::size_t begin,
                              std::span<const float> parameters);

  World& world_;
  const roles::RunConfig config_;
  const std::size_t size_;
  const std::size_t ps_;
  Oracles oracle_;
  std::size_t next_component_ = 0;
  float applied_;  // what a component is once its push was
  std::vector<std::map<StateName, State>> ranges_;
  Witnesses witnesses_;
  std::map<std::pair<std::uint64_t, std::size_t>, Host> hosts_;
  bool chief_has_printed_ = false;
  std::optional<std::uint64_t> result_;       // sum of the chief's
  std::optional<std::uint64_t> result_step_;  // of the chief's
};

}  // namespace disttf::sim
