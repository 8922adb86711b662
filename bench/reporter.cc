#include "bench/reporter.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "main/version.h"
#include "math/kernels.h"

namespace disttf::bench {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

#ifdef NDEBUG
constexpr bool kOptimized = true;
#else
constexpr bool kOptimized = false;
#endif

std::string floor_in(const std::string& label) {
  constexpr std::string_view kKey = "floor=";
  return label.starts_with(kKey) ? label.substr(kKey.size()) : std::string();
}

// Returns a name such as "push_pull/318144", without Google Benchmark's suffixes.
std::string name_of(const benchmark::BenchmarkReporter::Run& run) {
  const auto& name = run.run_name;
  return name.args.empty() ? name.function_name : name.function_name + "/" + name.args;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool Reporter::ReportContext(const Context& context) {
  nlohmann::ordered_json line = {
      {"version", std::string(kVersion)},
      {"cpus", context.cpu_info.num_cpus},
      {"mhz", context.cpu_info.cycles_per_second / kMicrosecondsPerSecond},
      {"load", context.cpu_info.load_avg},
      {"isa", std::string(math::isa_name(math::supported_isas().front()))},
      {"optimized", kOptimized}};
  std::printf("%s\n", line.dump().c_str());
  if (!kOptimized) {
    std::fputs("This build is not optimised: its figures mean nothing.\n", stderr);
  }
  return true;
}

void Reporter::ReportRuns(const std::vector<Run>& runs) {
  Figure figure;
  std::vector<double> times;
  for (const Run& run : runs) {
    if (run.error_occurred) {
      std::fprintf(stderr, "%s: %s\n", run.benchmark_name().c_str(), run.error_message.c_str());
      return;
    }
    if (run.run_type == Run::RT_Iteration && run.iterations > 0) {
      times.push_back(run.real_accumulated_time / static_cast<double>(run.iterations) *
                      kMicrosecondsPerSecond);
      figure.name = name_of(run);
      figure.floor = floor_in(run.report_label);
      for (const auto& [name, counter] : run.counters) {
        figure.extras[name] = counter.value;
      }
    }
  }
  if (times.empty()) {
    return;
  }
  figure.unit = "us";
  figure.median = median(times);
  figure.slowest = *std::max_element(times.begin(), times.end());
  add(figure);
}

void Reporter::add(const Figure& figure) {
  nlohmann::ordered_json line = {{"name", figure.name},
                                 {"median", figure.median},
                                 {"slowest", figure.slowest},
                                 {"unit", figure.unit}};
  std::string beside;
  if (const auto floor = figures_.find(figure.floor); floor != figures_.end()) {
    const double ratio = figure.ratio.value_or(figure.median / floor->second.median);
    line["floor"] = figure.floor;
    line["ratio"] = ratio;
    beside = "  " + std::to_string(ratio).substr(0, 5) + " x " + figure.floor;
  }
  for (const auto& [name, value] : figure.extras) {
    line[name] = value;
  }
  std::fprintf(stderr, "%-40s %12.2f %s%s\n", figure.name.c_str(), figure.median,
               figure.unit.c_str(), beside.c_str());
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  figures_[figure.name] = figure;
}

}  // namespace disttf::bench
