// Measures the job on a machine with other load, and with more tasks than processors.
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"

namespace disttf::bench {
namespace {

// Threads that compute without pause.
class BusyLoops {
 public:
  explicit BusyLoops(int count) {
    for (int each = 0; each < count; ++each) {
      threads_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

struct Busy {
  std::string name;
  int loops = 0;
  std::string cluster;
  int part = 1;  // divides the number of steps
};
const std::array kBusy = {
    Busy{.name = "busy/1_loop", .loops = 1, .cluster = "--workers 2 --ps 1"},
    Busy{.name = "busy/2_loops", .loops = 2, .cluster = "--workers 2 --ps 1"},
    Busy{.name = "busy/4_loops", .loops = 4, .cluster = "--workers 2 --ps 1"},
    Busy{.name = "busy/8_workers_2_ps", .cluster = "--workers 8 --ps 2", .part = 4},
};

}  // namespace

void run_busy(const JobOptions& options, Reporter& reporter) {
  for (const Busy& busy : kBusy) {
    if (!options.wants(busy.name) || (options.quick && busy.loops != 1)) continue;
    const BusyLoops loops(busy.loops);
    run_pairs({.name = busy.name,
               .plain = busy.cluster + " --insecure --transport tcp",
               .with = busy.cluster + " --insecure --transport shm"},
              part_of(options, busy.part), reporter);
  }
}

}  // namespace disttf::bench
