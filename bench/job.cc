// Measures the whole job: runs the product as a user does.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"
#include "bench/products.h"

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
    StepProducts step(bench_model(limit.model), limit.batch, math::supported_isas().front());
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

// Measures the time of a run outside of its steps: until the first step is applied, and after the
// last.

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kWorkers = {2, 16, 64};
constexpr int kStepsOfStart = 10;

double seconds_from(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct StartAndEnd {
  double first_step = 0;  // seconds from the start of the command
  double end = 0;         // seconds from the last step to the end of all its processes
};

// Runs ten steps; the chief logs the result of each.
StartAndEnd timed_launch(const std::string& command) {
  const Clock::time_point begin = Clock::now();
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("cannot run " + command);
  }
  StartAndEnd times;
  Clock::time_point last = begin;
  std::string output;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    output += line.data();
    if (std::string_view(line.data()).find("[worker:0]") != std::string_view::npos &&
        std::string_view(line.data()).find("(global step: ") != std::string_view::npos) {
      last = Clock::now();
      times.first_step = times.first_step == 0 ? seconds_from(begin) : times.first_step;
    }
  }
  const int status = pclose(pipe);
  times.end = seconds_from(last);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || times.first_step == 0) {
    throw std::runtime_error(command + " made no step:\n" + output);
  }
  return times;
}

// Starts that many processes of disttf that print their version and exit. Returns the time.
double run_processes(int count) {
  const std::string command = "for i in $(seq " + std::to_string(count) + "); do " +
                              disttf_program() + " --version & done; wait";
  const Clock::time_point begin = Clock::now();
  static_cast<void>(output_of(command));
  return seconds_from(begin);
}

}  // namespace

void run_start_end(const JobOptions& options, Reporter& reporter) {
  for (const int workers : kWorkers) {
    const std::string name = std::to_string(workers) + "_workers_1_ps";
    if ((!options.wants("start/" + name) && !options.wants("end/" + name)) ||
        (options.quick && workers != kWorkers.front())) {
      continue;
    }
    std::vector<double> starts;
    std::vector<double> ends;
    std::vector<double> processes;
    for (int each = 0; each < options.repetitions; ++each) {
      const StartAndEnd times = timed_launch(
          disttf_program() + " launch --ps 1 --workers " + std::to_string(workers) +
          " --train_steps " + std::to_string(kStepsOfStart) +
          " --log_every 1 --dataset=" + options.dataset + " --data_dir=" + options.data_dir);
      starts.push_back(times.first_step);
      ends.push_back(times.end);
      processes.push_back(run_processes(workers + 2));  // and the launch itself
    }
    const auto add = [&reporter](const std::string& figure, const std::vector<double>& seconds,
                                 const std::string& floor) {
      reporter.add({.name = figure,
                    .median = median(seconds),
                    .slowest = *std::ranges::max_element(seconds),
                    .unit = "s",
                    .floor = floor,
                    .ratio = {},
                    .extras = {}});
    };
    add("start/" + name + "/processes", processes, "");
    add("start/" + name, starts, "start/" + name + "/processes");
    add("end/" + name, ends, "start/" + name + "/processes");
  }
}

// Measures the job on a machine with other load, and with more tasks than processors.

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

// Compares the job with the same job in widely used frameworks, in turn.

namespace {

constexpr int kNotInstalled = 77;  // exit code of the programs in peers/

// Arguments of `disttf launch`, and of the peer's program.
struct Comparison {
  const char* name;
  const char* ours;
  const char* theirs;
  int part = 1;  // divides the number of steps of both
};

struct Framework {
  const char* name;
  const char* program;  // in peers/
  std::vector<Comparison> comparisons;
};

const std::array kPeers = {
    Framework{
        "versus/torch",
        "torch_mnist.py",
        {{"versus/torch_ddp_2/mlp_100", "--workers 2 --ps 1", "--ranks 2"},
         {"versus/torch_ddp_2/softmax", "--workers 2 --ps 1 --model softmax",
          "--ranks 2 --model softmax"},
         {"versus/torch_1_process/mlp_100", "--workers 1 --ps 1", "--threads 1"},
         {"versus/torch_1_process_2_threads/mlp_100", "--workers 1 --ps 1", "--threads 2"},
         {"versus/torch_ddp_2/mlp_1024", "--workers 2 --ps 1 --hidden_units 1024 --batch_size 128",
          "--ranks 2 --model mlp_1024 --batch_size 128"},
         // channels_last is the faster of PyTorch's two memory layouts here.
         {"versus/torch_ddp_2/lenet", "--workers 2 --ps 1 --model lenet",
          "--ranks 2 --model lenet --channels_last", 10},
         {"versus/torch_ddp_2/cnn", "--workers 2 --ps 1 --model cnn",
          "--ranks 2 --model cnn --channels_last", 4},
         {"versus/torch_ddp_2/small_cnn",
          "--workers 2 --ps 1 --model " DISTTF_SOURCE_DIR "/bench/peers/small_cnn.toml",
          "--ranks 2 --model small_cnn --channels_last", 2}}},
    Framework{"versus/tensorflow",
              "tensorflow_ps.py",
              {{"versus/tensorflow_ps/mlp_100", "--workers 2 --ps 1", "--workers 2"},
               {"versus/tensorflow_ps/softmax", "--workers 2 --ps 1 --model softmax",
                "--workers 2 --model softmax"},
               {"versus/tensorflow_ps_async/mlp_100", "--workers 2 --ps 1 --sync_replicas=false",
                "--workers 2 --async"}}},
};

std::string peer_command(const Framework& peer, const std::string& arguments,
                         const JobOptions& options) {
  return options.python + " " DISTTF_SOURCE_DIR "/bench/peers/" + peer.program +
         " --data_dir=" + options.data_dir + " --steps=" + options.train_steps + " " + arguments;
}

Result run_peer(const Framework& peer, const std::string& arguments, const JobOptions& options) {
  const std::string command = peer_command(peer, arguments, options);
  Result result;
  const std::string output = timed_output(command, result);
  const std::size_t begin = output.rfind("{\"images_per_second\"");
  if (begin == std::string::npos) {
    throw std::runtime_error(command + " printed no result:\n" + output);
  }
  const auto printed = nlohmann::json::parse(output.substr(begin));
  result.images_per_second = printed.at("images_per_second").get<double>();
  result.accuracy = printed.at("accuracy").get<double>();
  return result;
}

// Returns why the comparison is not possible; empty if it is.
std::string why_not(const Framework& peer, const JobOptions& options) {
  if (!std::filesystem::exists(options.data_dir + "/train-images-idx3-ubyte.gz")) {
    return "there is no MNIST in " + options.data_dir;
  }
  int exit_code = 0;
  const std::string output = output_of(peer_command(peer, "--help", options), &exit_code);
  if (exit_code == kNotInstalled) {
    return output.substr(0, output.find('\n'));
  }
  return exit_code == 0 ? "" : options.python + " cannot be run";
}

void compare(const Framework& peer, const Comparison& comparison, const JobOptions& options,
             Reporter& reporter) {
  const JobOptions part = part_of(options, comparison.part);
  Results ours;
  Results theirs;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    const bool ours_first = repetition % 2 == 0;
    for (const bool our_turn : {ours_first, !ours_first}) {
      if (our_turn) {
        ours.add(run_launch(comparison.ours, false, part));
      } else {
        theirs.add(run_peer(peer, comparison.theirs, part));
      }
    }
  }
  const std::string base = comparison.name + std::string("/theirs");
  reporter.add(theirs.figure(base, {}));
  Figure figure = ours.figure(comparison.name, base);
  figure.ratio = ratio_of_pairs(ours.rates, theirs.rates);
  reporter.add(figure);
}

}  // namespace

void run_peers(const JobOptions& options, Reporter& reporter) {
  for (const Framework& peer : kPeers) {
    if (const std::string why = why_not(peer, options); !why.empty()) {
      std::fprintf(stderr, "no %s: %s\n", peer.name, why.c_str());
      continue;
    }
    for (const Comparison& comparison : peer.comparisons) {
      if (!options.wants(comparison.name)) continue;
      compare(peer, comparison, options, reporter);
    }
  }
}

}  // namespace disttf::bench
