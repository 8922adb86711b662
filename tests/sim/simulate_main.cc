// disttf_simulate: simulates clusters, one for each seed, until so many faults have happened.
//
//   disttf_simulate [--faults 100000] [--seed 1] [--jobs 2] [--until-violation]
//   disttf_simulate --replay SEED [--trace]
//   disttf_simulate --transcript FILE [--trace]: prints the file with the log of this build
//   disttf_simulate --large TRAINERS PS STEPS [--seed 1] [--trace]
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "math/denormals.h"
#include "tests/sim/scenario.h"
#include "tests/sim/transcript.h"

namespace disttf::sim {
namespace {

// One seed in so many is simulated twice, to check that both simulations are equal.
constexpr std::uint64_t kTwice = 20;
// After so many faults each mark must have been seen.
constexpr std::uint64_t kEnough = 50'000;
constexpr std::uint64_t kMostFailures = 8;  // per job

struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t faults = 0;
  std::uint64_t events = 0;
  std::uint64_t restarts = 0;
  std::uint64_t failures = 0;
  std::array<std::uint64_t, kMostFailures> failed{};
  double simulated_s = 0;
  std::array<std::uint64_t, kMarks> marks{};

  void add(const Totals& other) {
    seeds += other.seeds;
    faults += other.faults;
    events += other.events;
    restarts += other.restarts;
    for (std::size_t each = 0; each < other.failures && each < kMostFailures; ++each) {
      if (failures + each < kMostFailures) {
        failed.at(failures + each) = other.failed.at(each);
      }
    }
    failures += other.failures;
    simulated_s += other.simulated_s;
    for (std::size_t each = 0; each < kMarks; ++each) {
      marks.at(each) += other.marks.at(each);
    }
  }
};

// `at`: the seed being simulated, which the parent reports if this process crashes.
Totals search(std::uint64_t first, std::uint64_t stride, std::uint64_t faults,
              std::uint64_t most_failures, std::uint64_t& at) {
  Totals totals;
  for (std::uint64_t seed = first; totals.faults < faults && totals.failures < most_failures;
       seed += stride) {
    at = seed;
    const Scenario scenario = scenario_of(seed);
    const Outcome outcome = simulate(scenario);
    ++totals.seeds;
    totals.faults += outcome.faults;
    totals.events += outcome.events;
    totals.restarts += outcome.restarts;
    totals.simulated_s += std::chrono::duration<double>(outcome.simulated).count();
    for (std::size_t each = 0; each < kMarks; ++each) {
      totals.marks.at(each) += outcome.marks.at(each);
    }
    const bool differs = seed % kTwice == 0 && simulate(scenario).hash != outcome.hash;
    if (!outcome.violation.empty() || differs) {
      totals.failed.at(totals.failures++) = seed;
    }
  }
  return totals;
}

int replay(std::uint64_t seed, bool trace) {
  const Scenario scenario = scenario_of(seed);
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
              to_string(scenario).c_str());
  const Outcome outcome = simulate(scenario, trace);
  std::printf("%llu events, %llu faults, hash %016llx\n",
              static_cast<unsigned long long>(outcome.events),
              static_cast<unsigned long long>(outcome.faults),
              static_cast<unsigned long long>(outcome.hash));
  if (simulate(scenario).hash != outcome.hash) {
    std::puts("the same seed led to something else the second time");
    return 1;
  }
  if (outcome.violation.empty()) {
    std::puts("all promises were kept");
    return 0;
  }
  std::printf("VIOLATION: %s\n", outcome.violation.c_str());
  const Scenario least = shrunk(scenario);
  std::printf("%zu of its faults are enough:\n", least.faults.size());
  for (const Fault& fault : least.faults) {
    std::printf("  %s\n", to_string(fault, scenario.ps).c_str());
  }
  const Outcome again = simulate(least, trace);
  std::printf("VIOLATION: %s\n", again.violation.c_str());
  return 1;
}

int report(const Totals& totals, double seconds) {
  std::printf(
      "%llu seeds, %llu faults, %llu restarts, %.1f simulated hours, %llu events, "
      "%.0f events per second\n",
      static_cast<unsigned long long>(totals.seeds), static_cast<unsigned long long>(totals.faults),
      static_cast<unsigned long long>(totals.restarts), totals.simulated_s / 3600,
      static_cast<unsigned long long>(totals.events), static_cast<double>(totals.events) / seconds);
  bool unseen = false;
  for (std::size_t each = 0; each < kMarks; ++each) {
    const std::string name(name_of(static_cast<Mark>(each)));
    std::printf("  %-26s %llu\n", name.c_str(),
                static_cast<unsigned long long>(totals.marks.at(each)));
    unseen = unseen || totals.marks.at(each) == 0;
  }
  if (unseen && totals.faults >= kEnough) {
    std::puts("Something was expected to be seen and was not: see the marks above.");
  }
  std::printf("%llu violations\n", static_cast<unsigned long long>(totals.failures));
  for (std::size_t each = 0; each < totals.failures && each < kMostFailures; ++each) {
    const std::uint64_t seed = totals.failed.at(each);
    std::printf("  seed %llu: %s\n    disttf_simulate --replay %llu --trace\n",
                static_cast<unsigned long long>(seed),
                simulate(scenario_of(seed)).violation.c_str(),
                static_cast<unsigned long long>(seed));
  }
  return totals.failures != 0 || (unseen && totals.faults >= kEnough) ? 1 : 0;
}

int replay_file(const std::string& path, bool trace) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  try {
    const std::string now = replay_transcript(parse_transcript(text.str()), trace);
    std::fputs(now.c_str(), stdout);
    return file && now == text.str() ? 0 : 1;
  } catch (const std::invalid_argument& wrong) {
    std::puts(wrong.what());
    return 2;
  }
}

// Simulates each job's seeds in a process of its own.
int search_in_parallel(std::uint64_t faults, std::uint64_t seed, std::uint64_t jobs,
                       std::uint64_t most_failures) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<int> pipes;
  void* const shared = ::mmap(nullptr, jobs * sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  const std::span<std::uint64_t> at(static_cast<std::uint64_t*>(shared), jobs);
  for (std::uint64_t job = 0; job < jobs; ++job) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
      std::perror("pipe");
      return 1;
    }
    const ::pid_t child = ::fork();
    if (child < 0) {
      std::perror("fork");
      return 1;
    }
    if (child == 0) {
      const Totals totals =
          search(seed + job, jobs, (faults + jobs - 1) / jobs, most_failures, at[job]);
      const bool written = ::write(ends[1], &totals, sizeof(totals)) == sizeof(totals);
      std::_Exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    pipes.push_back(ends[0]);
  }
  Totals all;
  std::vector<std::uint64_t> crashed_at;
  for (std::uint64_t job = 0; job < jobs; ++job) {
    Totals totals;
    if (::read(pipes[job], &totals, sizeof(totals)) == sizeof(totals)) {
      all.add(totals);
    } else {
      crashed_at.push_back(at[job]);
    }
    ::close(pipes[job]);
  }
  while (::wait(nullptr) > 0) {
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const int code = report(all, elapsed.count());
  for (const std::uint64_t each : crashed_at) {
    std::printf(
        "A job has crashed, and what it did before is not counted:\n"
        "    disttf_simulate --replay %llu\n",
        static_cast<unsigned long long>(each));
  }
  return crashed_at.empty() ? code : 1;
}

int run_large(std::uint64_t seed, std::size_t trainers, std::size_t ps, std::uint64_t steps,
              bool trace) {
  const auto begin = std::chrono::steady_clock::now();
  const Scenario scenario = large_scenario(seed, trainers, ps, steps);
  const Outcome outcome = simulate(scenario, trace);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %llu events, %llu faults, %.1f simulated seconds, hash %016llx, %.1f s; %s\n",
              to_string(scenario).c_str(), static_cast<unsigned long long>(outcome.events),
              static_cast<unsigned long long>(outcome.faults),
              std::chrono::duration<double>(outcome.simulated).count(),
              static_cast<unsigned long long>(outcome.hash), elapsed.count(),
              outcome.violation.empty() ? "all promises were kept" : outcome.violation.c_str());
  return outcome.violation.empty() ? 0 : 1;
}

}  // namespace
}  // namespace disttf::sim

int main(int argc, char** argv) {
  using namespace disttf::sim;
  disttf::math::flush_denormals();
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  std::uint64_t faults = 100'000;
  std::uint64_t seed = 1;
  std::uint64_t jobs = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  std::uint64_t replayed = 0;
  std::uint64_t most_failures = kMostFailures;
  bool trace = false;
  std::vector<std::uint64_t> large;
  std::string transcript;
  const auto number = [&](std::size_t at) -> std::uint64_t {
    return at < arguments.size() ? std::strtoull(arguments[at].data(), nullptr, 10) : 0;
  };
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at] == "--trace") {
      trace = true;
    } else if (arguments[at] == "--faults") {
      faults = number(++at);
    } else if (arguments[at] == "--seed") {
      seed = number(++at);
    } else if (arguments[at] == "--jobs") {
      jobs = std::max<std::uint64_t>(number(++at), 1);
    } else if (arguments[at] == "--until-violation") {
      most_failures = 1;
    } else if (arguments[at] == "--replay") {
      replayed = number(++at);
    } else if (arguments[at] == "--transcript" && at + 1 < arguments.size()) {
      transcript = arguments[++at];
    } else if (arguments[at] == "--large") {
      large = {number(at + 1), number(at + 2), number(at + 3)};
      at += 3;
    } else {
      std::printf("unknown argument %s\n", argv[at + 1]);
      return 2;
    }
  }
  if (!transcript.empty()) {
    return replay_file(transcript, trace);
  }
  if (!large.empty()) {
    return run_large(seed, large[0], large[1], large[2], trace);
  }
  return replayed != 0 ? replay(replayed, trace)
                       : search_in_parallel(faults, seed, jobs, most_failures);
}
