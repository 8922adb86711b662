// The whole job: the product itself, started as a user starts it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"
#include "math/products.h"

namespace disttf::bench {
namespace {

struct Job {
  const char* name;
  const char* arguments;
};
constexpr std::array kJobs = {
    Job{"job/sync/1_worker_1_ps", "--workers 1 --ps 1"},
    Job{"job/sync/2_workers_1_ps", "--workers 2 --ps 1"},
    Job{"job/async/2_workers_1_ps", "--workers 2 --ps 1 --sync_replicas=false"},
    Job{"job/softmax/2_workers_1_ps", "--workers 2 --ps 1 --model softmax"},
};

struct Result {
  double images_per_second = 0;
  double accuracy = 0;
};

std::string output_of(const std::string& command) {
  struct Close {
    void operator()(std::FILE* pipe) const noexcept { pclose(pipe); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(popen((command + " 2>&1").c_str(), "r"));
  if (!pipe) {
    throw std::runtime_error("cannot run " + command);
  }
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    output.append(buffer.data(), got);
  }
  return output;
}

Result run_job(const Job& job, const JobOptions& options) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = (self.parent_path().parent_path() / "disttf").string() + " launch " +
                              job.arguments + " --train_steps=" + options.train_steps +
                              " --dataset=" + options.dataset + " --data_dir=" + options.data_dir;
  const std::string output = output_of(command);
  std::smatch rate;
  std::smatch accuracy;
  if (!std::regex_search(output, rate,
                         std::regex(R"(elapsed time: [0-9.]+ s \(([0-9]+) images/s)")) ||
      !std::regex_search(output, accuracy, std::regex(R"(accuracy: ([0-9.]+))"))) {
    throw std::runtime_error(command + " printed no result:\n" + output);
  }
  return {.images_per_second = std::stod(rate[1]), .accuracy = std::stod(accuracy[1])};
}

// Images/s of the bare products on two cores at once: what no training on them can exceed.
double products_on_two_cores(const std::string& model) {
  constexpr std::chrono::milliseconds kDuration{500};
  const auto deadline = std::chrono::steady_clock::now() + kDuration;
  const auto work = [&](double& images) {
    math::ModelSpec spec;
    spec.hidden = hidden_units(model);
    spec.kind = spec.hidden.empty() ? math::ModelKind::kSoftmax : math::ModelKind::kMlp;
    math::StepProducts step(spec, kBatch, math::supported_isas().front());
    const auto begin = std::chrono::steady_clock::now();
    std::size_t steps = 0;
    for (; std::chrono::steady_clock::now() < deadline || steps == 0; ++steps) {
      step.run();
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    images = static_cast<double>(steps * kBatch) / elapsed.count();
  };
  std::array<double, 2> images{};
  std::thread other(work, std::ref(images[1]));
  work(images[0]);
  other.join();
  return images[0] + images[1];
}

}  // namespace

void run_jobs(const JobOptions& options, Reporter& reporter) {
  std::array<std::vector<double>, kJobs.size()> rates;
  std::array<double, kJobs.size()> accuracies{};
  std::vector<double> mlp_floors;
  std::vector<double> softmax_floors;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    mlp_floors.push_back(products_on_two_cores("mlp_100"));
    softmax_floors.push_back(products_on_two_cores("softmax"));
    for (std::size_t each = 0; each < kJobs.size(); ++each) {
      const Result result = run_job(kJobs[each], options);
      rates[each].push_back(result.images_per_second);
      accuracies[each] = result.accuracy;
    }
  }
  const auto figure = [](const std::string& name, const std::vector<double>& values) {
    return Figure{.name = name,
                  .median = median(values),
                  .slowest = *std::min_element(values.begin(), values.end()),
                  .unit = "images/s",
                  .floor = {},
                  .extras = {}};
  };
  reporter.add(figure("two_cores/products/mlp_100", mlp_floors));
  reporter.add(figure("two_cores/products/softmax", softmax_floors));
  for (std::size_t each = 0; each < kJobs.size(); ++each) {
    Figure job = figure(kJobs[each].name, rates[each]);
    const bool softmax = job.name.find("softmax") != std::string::npos;
    job.floor = softmax ? "two_cores/products/softmax" : "two_cores/products/mlp_100";
    job.extras["accuracy"] = accuracies[each];
    reporter.add(job);
  }
}

}  // namespace disttf::bench
