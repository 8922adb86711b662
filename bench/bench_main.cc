// disttf_bench: measures each figure beside its floor, a lower bound. bench/benchmarks.h lists
// them.
//
//   disttf_bench [--benchmark_filter=REGEX] [--repetitions=N] [--data_dir=DIR] [--dataset=NAME]
//                [--train_steps=N] [--no_jobs] [--python=PROGRAM] [--no_peers]
//                [--no_serving] [--no_slow_link] [--no_scaling] [--no_secret] [--secret] [--quick]
//                [--benchmark_list_tests]
//
// --benchmark_filter: runs figures whose names match, and those measured together with them (for
// scaling, the whole curve). --benchmark_list_tests: lists the single-threaded figures, runs
// nothing.
// --secret: measures only the cost of a secret.
// --quick: runs everything once and briefly, as a test; the figures mean nothing.
// Standard output: one JSON line for each figure. Standard error: the same for people.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "bench/benchmarks.h"
#include "math/large_copies.h"
#include "run/process/log.h"

namespace {

// Stores the value of a "--name=value" argument. Google Benchmark keeps its own arguments.
bool take(std::string_view argument, std::string_view name, std::string& value) {
  if (!argument.starts_with(name) || argument.size() <= name.size() ||
      argument[name.size()] != '=') {
    return false;
  }
  value = argument.substr(name.size() + 1);
  return true;
}

// This program links the C library dynamically, unlike disttf, so math/large_copies.h has no
// effect. It requests the same setting through GLIBC_TUNABLES and starts itself again. If
// GLIBC_TUNABLES is already set, it measures with that value.
void copy_as_disttf_does(char** argv) {
  constexpr const char* kTunables = "GLIBC_TUNABLES";
  constexpr const char* kNever = "glibc.cpu.x86_rep_movsb_threshold=0x7fffffffffffffff";
  if (!disttf::math::prefers_vectors()) return;
  const char* const set = getenv(kTunables);
  if (set == nullptr) {
    setenv(kTunables, kNever, 1);
    execv("/proc/self/exe", argv);
  }
  if (set == nullptr || std::string_view(set) == kNever) unsetenv(kTunables);  // for children
}

}  // namespace

int main(int argc, char** argv) {
  copy_as_disttf_does(argv);
  disttf::bench::JobOptions jobs;
  std::string repetitions = "5";
  bool with_jobs = true;
  bool with_peers = true;
  bool with_serving = true;
  bool with_slow_link = true;
  bool with_scaling = true;
  bool with_secret = true;
  bool only_secret = false;
  bool only_lists = false;
  std::vector<char*> rest;
  for (int each = 0; each < argc; ++each) {
    const std::string_view argument = argv[each];
    if (argument == "--no_jobs") {
      with_jobs = false;
    } else if (argument == "--no_peers") {
      with_peers = false;
    } else if (argument == "--no_serving") {
      with_serving = false;
    } else if (argument == "--no_slow_link") {
      with_slow_link = false;
    } else if (argument == "--no_scaling") {
      with_scaling = false;
    } else if (argument == "--no_secret") {
      with_secret = false;
    } else if (argument == "--secret") {
      only_secret = true;
    } else if (argument == "--quick") {
      jobs.quick = true;
    } else if (!take(argument, "--repetitions", repetitions) &&
               !take(argument, "--data_dir", jobs.data_dir) &&
               !take(argument, "--dataset", jobs.dataset) &&
               !take(argument, "--train_steps", jobs.train_steps) &&
               !take(argument, "--python", jobs.python)) {
      only_lists = only_lists || argument == "--benchmark_list_tests";
      static_cast<void>(take(argument, "--benchmark_filter", jobs.filter));
      rest.push_back(argv[each]);
    }
  }
  std::string no_time = "--benchmark_min_time=0";
  if (jobs.quick) {
    repetitions = "1";
    jobs.train_steps = "5";
    rest.push_back(no_time.data());
  }
  std::string google_repetitions = "--benchmark_repetitions=" + repetitions;
  rest.push_back(google_repetitions.data());
  int count = static_cast<int>(rest.size());
  disttf::roles::set_up_log(
      {.level = disttf::roles::LogLevel::kOff, .format = {}, .task = {}, .name_task = false});
  disttf::bench::register_floors();
  disttf::bench::register_parts();
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) {
    return 2;
  }
  try {
    jobs.repetitions = std::stoi(repetitions);
    disttf::bench::Reporter reporter;
    if (only_secret) {
      disttf::bench::run_secret(jobs, reporter);
      return 0;
    }
    benchmark::RunSpecifiedBenchmarks(&reporter);
    if (only_lists) {
      return 0;
    }
    disttf::bench::run_push_pull(jobs, reporter);
    disttf::bench::run_sums(jobs, reporter);
    disttf::bench::run_program(jobs, reporter);
    if (with_scaling) {
      disttf::bench::run_scaling(jobs, reporter);
    }
    if (with_secret) {
      disttf::bench::run_secret(jobs, reporter);
    }
    if (with_jobs) {
      disttf::bench::run_jobs(jobs, reporter);
      disttf::bench::run_busy(jobs, reporter);
      disttf::bench::run_start_end(jobs, reporter);
    }
    if (with_serving) {
      disttf::bench::run_serving(jobs, with_peers, reporter);
    }
    if (with_peers) {
      disttf::bench::run_peers(jobs, reporter);
    }
    if (with_slow_link) {
      disttf::bench::run_slow_link(jobs, reporter);
      disttf::bench::run_many_hosts(jobs, reporter);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "disttf_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
