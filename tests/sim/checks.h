// Checks the invariants of a simulated run under every fault. Each method takes what its check has
// to compare.
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
#include "roles/trainer/core/stepper.h"
#include "run/run_config.h"
#include "tests/sim/oracles.h"
#include "tests/sim/witnesses.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// Identifies a push, whichever of its frames carries it.
struct PushName {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const PushName&, const PushName&) = default;
};

class Checks {
 public:
  Checks(World& world, const roles::RunConfig& config, std::size_t size, std::size_t ps);

  // Registers another configuration that a later chief may publish. Every gradient counts in it,
  // too.
  void expect_also(const roles::RunConfig& other) { oracle_.add(other, size_); }
  [[nodiscard]] bool may_differ() const noexcept { return oracle_.are_several(); }
  // A chief with this configuration sets the ps to a state of this generation.
  void began(net::Generation generation, const roles::RunConfig& config) {
    oracle_.began(generation, config.seed);
  }

  [[nodiscard]] math::Range range(std::size_t index) const;

  // --- the gradients
  // Where every gradient counts, the oracle's gradients are used. Otherwise each push has a
  // component of its own in every range, so the parameters are the set of the pushes that were
  // applied.
  // `components`: by range, of a push for these steps of the ranges' states. In a synchronous run
  // step and trainer determine the gradient, whichever process computes it. In an asynchronous run
  // each push has a different one.
  using Components = std::vector<std::size_t>;
  using Places = std::vector<std::pair<StateName, std::uint64_t>>;
  [[nodiscard]] Components take_components(std::size_t rank, const Places& places);
  // A trainer computes the gradient of the state at that step from the rows of `batch`. In a
  // synchronous run these rows depend on the step and the slot alone, whichever process computes
  // them and however often it was started.
  void rows_are_taken(const std::string& who, const roles::Stepper::Batch& batch,
                      std::uint64_t step, std::size_t rank);
  void fill_gradient(std::span<const float> parameters, std::uint64_t step, std::size_t slot,
                     const Components& components, std::span<float> gradient,
                     std::uint64_t seed = 1) const;

  // --- what a trainer receives
  // Parameters have arrived. Checks invariants 1, 2, 8, 9, 13.
  void parameters_came(const std::string& who, std::size_t range, const net::FrameHeader& header,
                       std::span<const std::byte> body);
  // A push has been answered and was not dropped.
  void push_acknowledged(std::size_t range, const StateName& state, std::size_t component,
                         const PushName& push);
  // A push has been answered and was dropped.
  void push_dropped(std::size_t range, const StateName& state, std::size_t component,
                    const PushName& push);

  // --- what a host of a range does
  // Called after each event; checks invariant 3. `process` distinguishes hosts and their processes.
  void host_is_at(const std::string& who, std::size_t range, std::uint64_t process,
                  net::Generation generation, std::uint64_t step);
  // A host answers a push with parameters of that step. Checks invariants 5 and 7. Replicas only.
  void host_acknowledges(const std::string& who, std::size_t range, const StateName& state,
                         net::ViewNumber view, std::uint64_t step);
  // Replicas only: a host answers a trainer with parameters of that step. `push`: set if the
  // request was a push.
  void host_answers(std::size_t range, const StateName& state, const net::View& view,
                    std::uint64_t step, const std::optional<PushName>& push);
  // Replicas only: a host has just received `view`, in which it is the primary, and has these
  // parameters of that step. If an earlier primary had continued alone, and every process that has
  // recorded that view or has received a later step is dead, the answers of that primary are lost
  // and no longer count.
  void host_goes_on(const std::string& who, std::size_t range, const StateName& state,
                    net::ViewNumber view, std::uint64_t step, std::span<const float> parameters);
  // A backup begins to serve the range with its state.
  void host_was_promoted(std::size_t range, const StateName& state, net::ViewNumber view,
                         std::uint64_t step);
  // A copy has made an update. Checks invariant 6. `view`: the newest that the host has received. A
  // replaced primary still makes steps until it receives the new view, and sends no answers for
  // them.
  void host_made_step(const std::string& who, std::size_t range, const StateName& state,
                      net::ViewNumber view, std::uint64_t step, std::span<const float> parameters,
                      bool is_copy);

  // The caller records there which process receives which view and which step.
  [[nodiscard]] Witnesses& witnesses() noexcept { return witnesses_; }

  // The chief has collected a snapshot. Checks invariant 10: it is the state of that step.
  void snapshot_collected(const std::string& who, std::uint64_t step,
                          std::span<const float> parameters);

  // An evaluator has assembled snapshot shards and scores them. They must be of one step of one
  // state, and of the run's.
  void snapshot_scored(const std::string& who, std::uint64_t step,
                       const std::vector<net::Generation>& generations, bool is_result,
                       std::span<const float> parameters);

  // --- the end
  // A trainer has printed this result. `states`: the states that it consists of, by range.
  void result(const std::string& who, bool is_chief, std::uint64_t step,
              const std::vector<StateName>& states, std::span<const float> parameters);
  // Returns the step of the result that the chief has printed, or nullopt if it has printed none.
  [[nodiscard]] std::optional<std::uint64_t> result_step() const noexcept { return result_step_; }
  // A task exits with 0. Checks invariant 18: the result is durable.
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
    std::uint64_t acknowledged = 0;  // the newest step with which a push was answered
    net::ViewNumber view = {};       // the newest in which a push was answered
    // The step at which a backup took over, by view. An unreachable backup may take over as well.
    std::map<net::ViewNumber, std::uint64_t> promoted_at;
    // By step: the parameters' sum at the primary of the newest view that has made the step.
    std::map<std::uint64_t, Made> made;
    std::map<std::pair<std::uint64_t, std::size_t>, std::size_t> components;  // by step and rank
    std::set<std::size_t> used;  // components of acknowledged pushes
    std::set<std::size_t> unused;
    std::map<std::size_t, PushName> pushes;  // by component: the first that was answered
    // Replicas only: the newest answer of each view, and the view in which each push was first
    // answered.
    std::map<net::ViewNumber, Answered> answered;
    std::map<PushName, net::ViewNumber> answered_in;
    // Views in which a step was answered that a later primary lacks although a live process had
    // recorded it.
    std::set<net::ViewNumber> remembered;
  };
  struct Host {
    net::Generation generation = 0;
    std::uint64_t step = 0;
  };

  [[nodiscard]] bool is_exact() const noexcept { return config_.every_gradient_counts(); }
  // Returns the last step of the run. (Without an oracle, early stopping may end the run at any
  // step.)
  [[nodiscard]] std::uint64_t last_step() {
    return oracle_ ? oracle_->last_step() : config_.train_steps;
  }
  // Returns whether the parameters are the oracle's of that step, from offset `begin` on. REQUIRES:
  // is_exact().
  [[nodiscard]] bool is_state(std::uint64_t step, std::size_t begin,
                              std::span<const float> parameters);

  World& world_;
  const roles::RunConfig config_;
  const std::size_t size_;
  const std::size_t ps_;
  Oracles oracle_;
  std::size_t next_component_ = 0;
  float applied_;  // the value of a component once its push was applied
  std::vector<std::map<StateName, State>> ranges_;
  Witnesses witnesses_;
  std::map<std::pair<std::uint64_t, std::size_t>, Host> hosts_;
  bool chief_has_printed_ = false;
  std::optional<std::uint64_t> result_;       // sum of the chief's parameters
  std::optional<std::uint64_t> result_step_;  // of the chief's result
};

}  // namespace disttf::sim
