// Measures, for many workers on each of many hosts, two ps on other hosts, and links of 1 Gbit/s
// between them, the bytes that a ps receives in a step: when the workers of a host push one sum,
// and when each worker pushes its own gradient.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"
#include "bench/network_spaces.h"

namespace disttf::bench {
namespace {

constexpr std::size_t kPs = 2;
constexpr const char* kRate = "1gbit";

// A host's name is also that of an interface, which may have at most 15 characters.
std::string ps_host(std::size_t number) { return "ps" + std::to_string(number); }
std::string worker_host(std::size_t number) { return "host" + std::to_string(number); }

std::vector<std::string> all_hosts(std::size_t hosts) {
  std::vector<std::string> names;
  for (std::size_t ps = 0; ps < kPs; ++ps) {
    names.push_back(ps_host(ps));
  }
  for (std::size_t host = 0; host < hosts; ++host) {
    names.push_back(worker_host(host));
  }
  return names;
}

struct ClusterRun {
  double bytes_into_ps = 0;    // per step and ps
  double bytes_out_of_ps = 0;  // per step and ps
  double images_per_second = 0;
  double accuracy = 0;
  std::string weights;
};

// Clusters run one after the other on the same hosts, with different ports: those of the previous
// cluster may be in TIME_WAIT for a minute.
class Cluster {
 public:
  Cluster(std::size_t hosts, std::size_t workers)
      : workers_(workers), hosts_(hosts), spaces_(all_hosts(hosts), kRate) {}

  ClusterRun run(const std::string& flags, const JobOptions& options) {
    first_port_ += 100;
    std::string command;
    for (std::size_t ps = 0; ps < kPs; ++ps) {
      command += task(ps_host(ps), "ps", ps, options) + " >/dev/null 2>&1 & ";
    }
    for (std::size_t worker = 1; worker < hosts_ * workers_; ++worker) {
      command += task(worker_host(worker / workers_), "worker", worker, options) + flags +
                 " >/dev/null 2>&1 & ";
    }
    command += task(worker_host(0), "worker", 0, options) + flags + " --print_weights_hash" +
               " --train_steps=" + options.train_steps + " 2>&1; code=$?; wait; exit $code";
    const double steps = kPs * std::stod(options.train_steps);
    const auto [in, out] = traffic();
    int exit_code = 0;
    const std::string output = output_of(command, &exit_code);
    const auto [in_after, out_after] = traffic();
    ClusterRun run;
    run.bytes_into_ps = (in_after - in) / steps;
    run.bytes_out_of_ps = (out_after - out) / steps;
    std::smatch found;
    if (exit_code != 0 ||
        !std::regex_search(output, found, std::regex(R"(\(([0-9]+) images/s\))"))) {
      throw std::runtime_error("a cluster on " + std::to_string(hosts_) +
                               " hosts printed no result:\n" + output);
    }
    run.images_per_second = std::stod(found[1]);
    if (std::regex_search(output, found, std::regex("Weights SHA-256: ([0-9a-f]+)"))) {
      run.weights = found[1];
    }
    if (std::regex_search(output, found, std::regex("accuracy: ([0-9.]+)"))) {
      run.accuracy = std::stod(found[1]);
    }
    return run;
  }

 private:
  [[nodiscard]] std::string task(const std::string& host, const std::string& job, std::size_t index,
                                 const JobOptions& options) const {
    std::string ps;
    for (std::size_t each = 0; each < kPs; ++each) {
      ps += (each == 0 ? "" : ",") + spaces_.address_of(ps_host(each)) + ":" +
            std::to_string(first_port_);
    }
    std::string workers;
    for (std::size_t each = 0; each < hosts_ * workers_; ++each) {
      workers += (each == 0 ? "" : ",") + spaces_.address_of(worker_host(each / workers_)) + ":" +
                 std::to_string(first_port_ + each % workers_);
    }
    return spaces_.at(host) + disttf_program() + " " + job +
           " --task_index=" + std::to_string(index) + " --ps_hosts=" + ps +
           " --worker_hosts=" + workers + " --insecure --dataset=" + options.dataset +
           " --data_dir=" + options.data_dir;
  }
  [[nodiscard]] std::pair<double, double> traffic() const {
    std::pair<double, double> bytes;
    for (std::size_t ps = 0; ps < kPs; ++ps) {
      bytes.first += spaces_.received_by(ps_host(ps));
      bytes.second += spaces_.sent_by(ps_host(ps));
    }
    return bytes;
  }

  const std::size_t workers_;  // per host
  const std::size_t hosts_;
  const NetworkSpaces spaces_;
  std::size_t first_port_ = 2000;
};

}  // namespace

void run_many_hosts(const JobOptions& options, Reporter& reporter) {
  const std::size_t each = options.quick ? 2 : 8;
  const std::string name = "many_hosts/" + std::to_string(each) + "x" + std::to_string(each);
  if (!options.wants(name)) {
    return;
  }
  std::optional<Cluster> cluster;
  try {
    cluster.emplace(each, each);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "no many_hosts: it needs network namespaces and tc: %s\n", error.what());
    return;
  }
  // Fewer steps, because tens of workers share a few processors.
  const JobOptions fewer = part_of(options, 10);
  std::array<std::vector<double>, 2> bytes;
  std::array<std::vector<double>, 2> rates;
  std::array<ClusterRun, 2> last;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (const std::size_t alone : {0U, 1U}) {
      last[alone] = cluster->run(alone != 0 ? " --transport=tcp" : "", fewer);
      bytes[alone].push_back(last[alone].bytes_into_ps);
      rates[alone].push_back(last[alone].images_per_second);
    }
    if (last[0].weights != last[1].weights) {
      throw std::runtime_error(name + ": the weights are " + last[0].weights +
                               ", and where each pushes its own " + last[1].weights);
    }
  }
  for (const std::size_t alone : {1U, 0U}) {
    reporter.add({.name = alone != 0 ? name + "/plain" : name,
                  .median = median(bytes[alone]),
                  .slowest = *std::ranges::max_element(bytes[alone]),
                  .unit = "bytes",
                  .floor = alone != 0 ? "" : name + "/plain",
                  .ratio = {},
                  .extras = {{"bytes_out_of_ps", last[alone].bytes_out_of_ps},
                             {"images_per_second", median(rates[alone])},
                             {"accuracy", last[alone].accuracy}}});
  }
}

}  // namespace disttf::bench
