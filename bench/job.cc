// Measures the whole job: runs the product as a user does.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"
#include "math/products.h"

namespace disttf::bench {
namespace {

// An upper bound: the matrix products of a model on two cores, in batches of that many images.
struct Limit {
  const char* model;
  std::size_t batch;
  const char* name;
};
constexpr Limit kMlp{"mlp_100", 100, "two_cores/products/mlp_100"};
constexpr Limit kWide{"mlp_1024", 128, "two_cores/products/mlp_1024"};
constexpr Limit kSoftmax{"softmax", 100, "two_cores/products/softmax"};
constexpr Limit kLenet{"lenet", 100, "two_cores/products/lenet"};
constexpr Limit kCnn{"cnn", 100, "two_cores/products/cnn"};
constexpr std::array kLimits = {kMlp, kWide, kSoftmax, kLenet, kCnn};

struct Job {
  const char* name;
  const char* arguments;
  Limit limit;
  int part = 1;  // divides the number of steps
};
constexpr std::array kJobs = {
    Job{"job/sync/1_worker_1_ps", "--workers 1 --ps 1", kMlp},
    Job{"job/sync/2_workers_1_ps", "--workers 2 --ps 1", kMlp},
    Job{"job/sync/2_workers_1_ps/tcp", "--workers 2 --ps 1 --transport tcp --insecure", kMlp},
    Job{"job/async/2_workers_1_ps", "--workers 2 --ps 1 --sync_replicas=false", kMlp},
    Job{"job/softmax/2_workers_1_ps", "--workers 2 --ps 1 --model softmax", kSoftmax},
    Job{"job/mlp_1024/2_workers_1_ps", "--workers 2 --ps 1 --hidden_units 1024 --batch_size 128",
        kWide},
    Job{"job/lenet/2_workers_1_ps", "--workers 2 --ps 1 --model lenet", kLenet, 10},
    Job{"job/cnn/2_workers_1_ps", "--workers 2 --ps 1 --model cnn", kCnn, 4},
};
// The cost of fault tolerance, or of telemetry: compares `plain` with `plain` and `more` flags, in
// turn. All jobs make steps of 200 images.
struct Price {
  const char* name;
  std::string plain;
  std::string more;
  bool saves = false;
};
// These jobs send frames without encryption; secret/elastic measures the cost of encryption.
const std::string kPlain1 = "--workers 2 --ps 1 --insecure";
const std::string kPlain2 = "--workers 2 --ps 2 --insecure";
const std::array kPrices = {
    Price{"price/checkpoints", "--workers 2 --ps 1", " --save_steps 100", true},
    Price{"price/elastic_2x100", kPlain1, " --min_workers 1 --micro_batches 2"},
    Price{"price/elastic_4x50", kPlain1, " --min_workers 1 --micro_batches 4 --batch_size 50"},
    Price{"price/replicas/sync", kPlain2, " --ps_replicas 2"},
    Price{
        "price/seen", "--workers 2 --ps 1",
        " --page --page_port {page_port} --metrics_port 0 --log_dir {scratch} --summary_every 100"},
    Price{"price/replicas/async", kPlain2 + " --sync_replicas=false", " --ps_replicas 2"},
};

// Returns the images/s of the bare products on two cores at once: the upper bound of training on
// them.
double products_on_two_cores(const Limit& limit) {
  constexpr std::chrono::milliseconds kDuration{500};
  const auto deadline = std::chrono::steady_clock::now() + kDuration;
  const auto work = [&](double& images) {
    math::StepProducts step(bench_model(limit.model), limit.batch, math::supported_isas().front());
    const auto begin = std::chrono::steady_clock::now();
    std::size_t steps = 0;
    for (; std::chrono::steady_clock::now() < deadline || steps == 0; ++steps) {
      step.run();
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    images = static_cast<double>(steps * limit.batch) / elapsed.count();
  };
  std::array<double, 2> images{};
  std::thread other(work, std::ref(images[1]));
  work(images[0]);
  other.join();
  return images[0] + images[1];
}

// A quick run leaves out jobs with convolutions: they spend most of their time on scoring the test
// set.
bool is_wanted(const Job& job, const JobOptions& options) {
  return options.wants(job.name) && !(options.quick && job.part > 1);
}

// A limit is wanted if a wanted job has it as its floor.
bool is_wanted(const Limit& limit, const JobOptions& options) {
  return std::ranges::any_of(kJobs, [&](const Job& job) {
    return std::string_view(job.limit.name) == limit.name && is_wanted(job, options);
  });
}

Figure floor_figure(const std::string& name, const std::vector<double>& values) {
  return {.name = name,
          .median = median(values),
          .slowest = *std::ranges::min_element(values),
          .unit = "images/s",
          .floor = {},
          .ratio = {},
          .extras = {}};
}

}  // namespace

void run_jobs(const JobOptions& options, Reporter& reporter) {
  std::array<Results, kJobs.size()> results;
  std::array<std::vector<double>, kLimits.size()> limits;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (std::size_t each = 0; each < kLimits.size(); ++each) {
      if (is_wanted(kLimits[each], options)) {
        limits[each].push_back(products_on_two_cores(kLimits[each]));
      }
    }
    for (std::size_t each = 0; each < kJobs.size(); ++each) {
      if (!is_wanted(kJobs[each], options)) continue;
      results[each].add(
          run_launch(kJobs[each].arguments, false, part_of(options, kJobs[each].part)));
    }
  }
  for (std::size_t each = 0; each < kLimits.size(); ++each) {
    if (limits[each].empty()) continue;
    reporter.add(floor_figure(kLimits[each].name, limits[each]));
  }
  for (std::size_t each = 0; each < kJobs.size(); ++each) {
    if (!is_wanted(kJobs[each], options)) continue;
    reporter.add(results[each].figure(kJobs[each].name, kJobs[each].limit.name));
  }
  for (const Price& price : kPrices) {
    if (!options.wants(price.name)) continue;
    run_pairs({.name = price.name,
               .plain = price.plain,
               .with = price.plain + price.more,
               .saves = price.saves},
              options, reporter);
  }
}

}  // namespace disttf::bench
