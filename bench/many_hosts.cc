// Measures, for many workers on each of many hosts, two ps on other hosts, and links of 1 Gbit/s
// between them, the bytes that a ps receives in a step: when the workers of a host push one sum,
// and when each worker pushes its own gradient.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"

namespace disttf::bench {

// Hosts for a benchmark: network namespaces, each with a link to a bridge in a namespace of its
// own. Needs root, `ip` and `tc`. The namespaces are removed with the object. Those of a killed run
// are removed when a process test creates its own.
class NetworkSpaces {
 public:
  // `rate`: of each link in each direction, in tc's format ("100mbit"); its queue holds half a
  // second. Throws std::runtime_error if this process may not create namespaces.
  NetworkSpaces(std::vector<std::string> hosts, const std::string& rate);
  ~NetworkSpaces() { remove(); }
  NetworkSpaces(const NetworkSpaces&) = delete;
  NetworkSpaces& operator=(const NetworkSpaces&) = delete;

  // The prefix of a shell command that runs on the host: "ip netns exec NAME ".
  [[nodiscard]] std::string at(const std::string& host) const;
  [[nodiscard]] std::string address_of(const std::string& host) const;
  // Bytes that the host has received and sent so far, headers of all layers included.
  [[nodiscard]] double received_by(const std::string& host) const;
  [[nodiscard]] double sent_by(const std::string& host) const;

 private:
  [[nodiscard]] std::string space_of(const std::string& host) const;
  [[nodiscard]] double counted(const std::string& host, const std::string& counter) const;
  void connect(const std::string& host, const std::string& rate) const;
  void remove() const noexcept;

  const std::vector<std::string> hosts_;
};

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

// Measures the gain of --wire_dtype and --compress on a slow link: two workers and a ps, a link of
// 100 Mbit/s in each direction between them, and the time until the test accuracy is 97 %.

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

namespace {

constexpr const char* kSwitch = "switch";

void must(const std::string& command) {
  int exit_code = 0;
  const std::string output = output_of(command, &exit_code);
  if (exit_code != 0) {
    throw std::runtime_error(command + ": " + output.substr(0, output.find('\n')));
  }
}

}  // namespace

NetworkSpaces::NetworkSpaces(std::vector<std::string> hosts, const std::string& rate)
    : hosts_(std::move(hosts)) {
  try {
    must("ip netns add " + space_of(kSwitch));
    must("ip -n " + space_of(kSwitch) + " link add br0 type bridge");
    must("ip -n " + space_of(kSwitch) + " link set br0 up");
    for (const std::string& host : hosts_) {
      connect(host, rate);
    }
  } catch (const std::exception&) {
    remove();
    throw;
  }
}

void NetworkSpaces::connect(const std::string& host, const std::string& rate) const {
  const std::string space = space_of(host);
  const std::string center = space_of(kSwitch);
  must("ip netns add " + space);
  must("ip -n " + center + " link add " + host + " type veth peer name eth0 netns " + space);
  must("ip -n " + center + " link set " + host + " master br0 up");
  must("ip -n " + space + " link set lo up");
  must("ip -n " + space + " address add " + address_of(host) + "/24 dev eth0");
  must("ip -n " + space + " link set eth0 up");
  const std::string shape = " root tbf rate " + rate + " burst 256kb latency 500ms";
  must("tc -n " + space + " qdisc add dev eth0" + shape);
  must("tc -n " + center + " qdisc add dev " + host + shape);
}

std::string NetworkSpaces::space_of(const std::string& host) const {
  return "disttf-" + std::to_string(getpid()) + "-" + host;
}

std::string NetworkSpaces::at(const std::string& host) const {
  return "ip netns exec " + space_of(host) + " ";
}

std::string NetworkSpaces::address_of(const std::string& host) const {
  const auto number = std::ranges::find(hosts_, host) - hosts_.begin();
  return "10.98.0." + std::to_string(number + 1);
}

double NetworkSpaces::received_by(const std::string& host) const {
  return counted(host, "rx_bytes");
}

double NetworkSpaces::sent_by(const std::string& host) const { return counted(host, "tx_bytes"); }

double NetworkSpaces::counted(const std::string& host, const std::string& counter) const {
  return std::stod(output_of(at(host) + "cat /sys/class/net/eth0/statistics/" + counter));
}

void NetworkSpaces::remove() const noexcept {
  std::vector<std::string> all = hosts_;
  all.emplace_back(kSwitch);
  for (const std::string& host : all) {
    try {
      static_cast<void>(output_of("ip netns del " + space_of(host)));
    } catch (const std::exception&) {  // no shell could be started: nothing more can be done
    }
  }
}

}  // namespace disttf::bench
