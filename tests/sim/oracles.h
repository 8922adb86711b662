// The oracle of each configuration that a chief of the run may publish. A generation belongs to the
// chief that made it, and so to one configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "net/wire/frame.h"
#include "run/run_config.h"
#include "tests/sim/workload.h"

namespace disttf::sim {

class Oracles {
 public:
  // The first configuration is the default. Their seeds distinguish them.
  void add(const roles::RunConfig& config, std::size_t size) {
    seeds_.push_back(config.seed);
    oracles_.push_back(std::make_unique<Oracle>(config, size));
  }
  // A chief with that seed sets the ps to a state of this generation.
  void began(net::Generation generation, std::uint64_t seed) {
    for (std::size_t each = 0; each < seeds_.size(); ++each) {
      if (seeds_[each] == seed) {
        of_[generation] = each;
      }
    }
  }
  // Selects the oracle of that state for `->`.
  void about(net::Generation generation) {
    const auto found = of_.find(generation);
    current_ = found == of_.end() ? 0 : found->second;
  }
  // Returns whether `holds` is true with any of the oracles selected for `->`.
  template <typename Holds>
  [[nodiscard]] bool any(Holds holds) {
    for (current_ = 0; current_ < oracles_.size(); ++current_) {
      if (holds()) {
        return true;
      }
    }
    current_ = 0;
    return false;
  }

  explicit operator bool() const noexcept { return !oracles_.empty(); }
  Oracle* operator->() const { return oracles_[current_].get(); }
  // Returns whether a chief may publish another configuration than the first.
  [[nodiscard]] bool are_several() const noexcept { return oracles_.size() > 1; }

 private:
  std::vector<std::uint64_t> seeds_;
  std::vector<std::unique_ptr<Oracle>> oracles_;
  std::map<net::Generation, std::size_t> of_;
  std::size_t current_ = 0;
};

}  // namespace disttf::sim
