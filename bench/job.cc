// The whole job: the product itself, started as a user starts it.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"
#include "math/products.h"

namespace disttf::bench {
namespace {

constexpr const char* kMlpProducts = "two_cores/products/mlp_100";
constexpr const char* kSoftmaxProducts = "two_cores/products/softmax";

struct Job {
  const char* name;
  const char* arguments;
  const char* floor;
};
constexpr std::array kJobs = {
    Job{"job/sync/1_worker_1_ps", "--workers 1 --ps 1", kMlpProducts},
    Job{"job/sync/2_workers_1_ps", "--workers 2 --ps 1", kMlpProducts},
    Job{"job/sync/2_workers_1_ps/tcp", "--workers 2 --ps 1 --transport tcp", kMlpProducts},
    Job{"job/async/2_workers_1_ps", "--workers 2 --ps 1 --sync_replicas=false", kMlpProducts},
    Job{"job/softmax/2_workers_1_ps", "--workers 2 --ps 1 --model softmax", kSoftmaxProducts},
};
// What fault tolerance costs: `plain`, and with `more` flags. The two run in turn the first and the
// second. All make steps of 200 images.
struct Price {
  const char* name;
  std::string plain;
  std::string more;
  bool saves = false;
};
const std::array kPrices = {
    Price{"price/checkpoints", "--workers 2 --ps 1", " --save_steps 100", true},
    Price{"price/elastic_2x100", "--workers 2 --ps 1", " --min_workers 1 --micro_batches 2"},
    Price{"price/elastic_4x50", "--workers 2 --ps 1",
          " --min_workers 1 --micro_batches 4 --batch_size 50"},
    Price{"price/replicas/sync", "--workers 2 --ps 2", " --ps_replicas 2"},
    Price{"price/replicas/async", "--workers 2 --ps 2 --sync_replicas=false", " --ps_replicas 2"},
};

struct Result {
  double images_per_second = 0;  // of the training alone, as the chief logs it
  double accuracy = 0;
  double wall_seconds = 0;  // from the start of `disttf launch` to its end
  double cpu_seconds = 0;   // of all its processes together
};

// A directory of its own in $TMPDIR or /tmp, removed with what is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "disttf-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot create " + pattern);
    }
    path_ = pattern;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
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

// Of those that have ended, and of theirs.
double cpu_seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// `saves`: into a --train_dir that is empty at the start.
Result run_job(const std::string& arguments, bool saves, const JobOptions& options) {
  const ScratchDirectory scratch;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = (self.parent_path().parent_path() / "disttf").string() + " launch " +
                              arguments + " --train_steps=" + options.train_steps +
                              " --dataset=" + options.dataset + " --data_dir=" + options.data_dir +
                              (saves ? " --train_dir=" + scratch.path() : "");
  const double cpu_before = cpu_seconds_of_children();
  const auto begin = std::chrono::steady_clock::now();
  const std::string output = output_of(command);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::smatch rate;
  std::smatch accuracy;
  if (!std::regex_search(output, rate,
                         std::regex(R"(elapsed time: [0-9.]+ s \(([0-9]+) images/s)")) ||
      !std::regex_search(output, accuracy, std::regex(R"(accuracy: ([0-9.]+))"))) {
    throw std::runtime_error(command + " printed no result:\n" + output);
  }
  return {.images_per_second = std::stod(rate[1]),
          .accuracy = std::stod(accuracy[1]),
          .wall_seconds = wall.count(),
          .cpu_seconds = cpu_seconds_of_children() - cpu_before};
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

// The results of one job, by repetition.
struct Results {
  std::vector<double> rates;
  std::vector<double> walls;
  std::vector<double> cpus;
  double accuracy = 0;

  void add(const Result& result) {
    rates.push_back(result.images_per_second);
    walls.push_back(result.wall_seconds);
    cpus.push_back(result.cpu_seconds);
    accuracy = result.accuracy;
  }
  [[nodiscard]] Figure figure(const std::string& name, const std::string& floor) const {
    return {.name = name,
            .median = median(rates),
            .slowest = *std::ranges::min_element(rates),
            .unit = "images/s",
            .floor = floor,
            .ratio = {},
            .extras = {{"accuracy", accuracy}, {"wall_s", median(walls)}, {"cpu_s", median(cpus)}}};
  }
};

Figure floor_figure(const std::string& name, const std::vector<double>& values) {
  return {.name = name,
          .median = median(values),
          .slowest = *std::ranges::min_element(values),
          .unit = "images/s",
          .floor = {},
          .ratio = {},
          .extras = {}};
}

double ratio_of_pairs(const std::vector<double>& with, const std::vector<double>& without) {
  std::vector<double> ratios(with.size());
  std::ranges::transform(with, without, ratios.begin(), std::divides<>());
  return median(ratios);
}

void run_price(const Price& price, const JobOptions& options, Reporter& reporter) {
  Results with;
  Results without;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    const bool plain_first = repetition % 2 == 0;
    for (const bool plain : {plain_first, !plain_first}) {
      (plain ? without : with)
          .add(run_job(price.plain + (plain ? "" : price.more), price.saves && !plain, options));
    }
  }
  const std::string base = std::string(price.name) + "/plain";
  reporter.add(without.figure(base, {}));
  Figure figure = with.figure(price.name, base);
  figure.ratio = ratio_of_pairs(with.rates, without.rates);
  figure.extras["wall_ratio"] = ratio_of_pairs(with.walls, without.walls);
  figure.extras["cpu_ratio"] = ratio_of_pairs(with.cpus, without.cpus);
  reporter.add(figure);
}

}  // namespace

void run_jobs(const JobOptions& options, Reporter& reporter) {
  std::array<Results, kJobs.size()> results;
  std::vector<double> mlp_floors;
  std::vector<double> softmax_floors;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    mlp_floors.push_back(products_on_two_cores("mlp_100"));
    softmax_floors.push_back(products_on_two_cores("softmax"));
    for (std::size_t each = 0; each < kJobs.size(); ++each) {
      results[each].add(run_job(kJobs[each].arguments, false, options));
    }
  }
  reporter.add(floor_figure(kMlpProducts, mlp_floors));
  reporter.add(floor_figure(kSoftmaxProducts, softmax_floors));
  for (std::size_t each = 0; each < kJobs.size(); ++each) {
    reporter.add(results[each].figure(kJobs[each].name, kJobs[each].floor));
  }
  for (const Price& price : kPrices) {
    run_price(price, options, reporter);
  }
}

}  // namespace disttf::bench
