// Measures one worker's exchange with a ps in another process: push, apply, parameters back.
#include <array>
#include <string>

#include "bench/benchmarks.h"
#include "bench/exchange.h"
#include "bench/sides.h"

namespace disttf::bench {

void run_push_pull(const JobOptions& options, Reporter& reporter) {
  constexpr int kRoundsPerRepetition = 4;
  // The smallest parameter vector: two variables, each aligned to 64 bytes.
  const math::ModelSpec smallest{
      .kind = math::ModelKind::kSoftmax, .input = {}, .hidden = {}, .classes = 2};
  const std::array points = {std::pair("128", smallest),
                             std::pair("318144", bench_model("mlp_100")),
                             std::pair("40000000", model_of(10'000'000))};
  for (const auto& [bytes, model] : points) {
    const std::string floor = std::string("raw_echo/") + bytes;
    if (!options.wants(floor) && !options.wants(std::string("push_pull/tcp/") + bytes) &&
        !options.wants(std::string("push_pull/shm/") + bytes)) {
      continue;
    }
    const int rounds = options.repetitions * (options.quick ? 1 : kRoundsPerRepetition);
    for (const Side& side : measure_sides({.model = model}, rounds, options.quick)) {
      const std::string name = "push_pull/" + side.name + "/" + bytes;
      reporter.add(side.figure(side.to_raw.empty() ? floor : name, floor));
    }
  }
}

}  // namespace disttf::bench
