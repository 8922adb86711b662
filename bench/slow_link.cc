// Measures the gain of --wire_dtype and --compress on a slow link: two workers and a ps, a link of
// 100 Mbit/s in each direction between them, and the time until the test accuracy is 97 %.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"
#include "bench/network_spaces.h"

namespace disttf::bench {
namespace {

constexpr double kWanted = 0.97;
// An evaluation takes as long as one of the shortest steps. Every 20 steps it costs little, and
// gives the time at which 97 % was reached to a twentieth.
constexpr const char* kEvaluations = " --eval_every=20";

struct Form {
  const char* name;
  const char* flags;
};
constexpr std::array kForms = {
    Form{"slow_link/f32", ""},
    Form{"slow_link/bf16", " --wire_dtype=bf16"},
    Form{"slow_link/int8", " --wire_dtype=int8"},
    Form{"slow_link/int4", " --wire_dtype=int4"},
    Form{"slow_link/topk", " --compress=topk:0.01"},
    Form{"slow_link/topk_int8", " --compress=topk:0.05 --wire_dtype=int8"},
    Form{"slow_link/topk_int4", " --compress=topk:0.05 --wire_dtype=int4"},
};

struct Run {
  std::optional<double> seconds;  // from the start of the tasks to 97 %
  double step_ms = 0;
  double accuracy = 0;  // at the end
  double bytes_per_step = 0;
};

// Reads the chief's output line by line as it is printed.
void follow(const std::string& command, Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("cannot run " + command);
  }
  std::string output;
  std::array<char, 1024> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    const std::string text = line.data();
    output += text;
    std::smatch found;
    if (std::regex_search(text, found, std::regex(R"(accuracy[:=]? =? ?([0-9.]+))"))) {
      run.accuracy = std::stod(found[1]);
      if (run.accuracy >= kWanted && !run.seconds) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        run.seconds = passed.count();
      }
    }
    if (std::regex_search(text, found,
                          std::regex(R"(elapsed time: [0-9.]+ s \(([0-9]+) images)"))) {
      run.step_ms = 2000.0 * kBatch / std::stod(found[1]);
    }
  }
  if (pclose(pipe) != 0 || run.step_ms == 0) {
    throw std::runtime_error(command + " printed no result:\n" + output);
  }
}

// Returns the bytes that have crossed the link so far, in both directions.
double bytes_over(const NetworkSpaces& cable) {
  return cable.received_by("ps") + cable.sent_by("ps");
}

// Only the network is namespaced, so the transport must be given: the tasks would otherwise find
// that they can share memory.
Run run_form(const NetworkSpaces& cable, const Form& form, const JobOptions& options) {
  const std::string common = " --insecure --transport=tcp --ps_hosts=" + cable.address_of("ps") +
                             ":2222 --worker_hosts=" + cable.address_of("workers") + ":2223," +
                             cable.address_of("workers") + ":2224 --dataset=" + options.dataset +
                             " --data_dir=" + options.data_dir;
  const std::string program = disttf_program();
  const std::string command =
      cable.at("ps") + program + " ps" + common + " >/dev/null 2>&1 & " + cable.at("workers") +
      program + " worker --task_index=1" + common + " >/dev/null 2>&1 & " + cable.at("workers") +
      program + " worker --task_index=0" + common + kEvaluations +
      " --train_steps=" + options.train_steps + form.flags + " 2>&1; code=$?; wait; exit $code";
  Run run;
  const double before = bytes_over(cable);
  follow(command, run);
  run.bytes_per_step = (bytes_over(cable) - before) / std::stod(options.train_steps);
  return run;
}

}  // namespace

void run_slow_link(const JobOptions& options, Reporter& reporter) {
  if (std::ranges::none_of(kForms, [&](const Form& form) { return options.wants(form.name); })) {
    return;
  }
  std::optional<NetworkSpaces> cable;
  try {
    cable.emplace(std::vector<std::string>{"ps", "workers"}, "100mbit");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "no slow_link: it needs network namespaces and tc: %s\n", error.what());
    return;
  }
  std::array<std::vector<double>, kForms.size()> seconds;
  std::array<Run, kForms.size()> last;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (std::size_t each = 0; each < kForms.size(); ++each) {
      last[each] = run_form(*cable, kForms[each], options);
      if (last[each].seconds) {
        seconds[each].push_back(*last[each].seconds);
      }
    }
  }
  for (std::size_t each = 0; each < kForms.size(); ++each) {
    if (seconds[each].empty()) {
      std::fprintf(stderr, "%s: %.0f %% was not reached in %s steps\n", kForms[each].name,
                   100 * kWanted, options.train_steps.c_str());
      continue;
    }
    reporter.add({.name = kForms[each].name,
                  .median = median(seconds[each]),
                  .slowest = *std::ranges::max_element(seconds[each]),
                  .unit = "s",
                  .floor = each == 0 ? "" : kForms[0].name,
                  .ratio = {},
                  .extras = {{"accuracy", last[each].accuracy},
                             {"step_ms", last[each].step_ms},
                             {"bytes_per_step", last[each].bytes_per_step}}});
  }
}

}  // namespace disttf::bench
