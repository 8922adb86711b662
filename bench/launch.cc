#include "bench/launch.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace disttf::bench {
namespace {

// CPU time of the children that have ended, and of their children.
double cpu_seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void replace(std::string& text, std::string_view from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "disttf-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("cannot create " + pattern);
  }
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string output_of(const std::string& command, int* exit_code) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("cannot run " + command);
  }
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  if (exit_code != nullptr) {
    *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  return output;
}

std::string timed_output(const std::string& command, Result& result) {
  const double cpu_before = cpu_seconds_of_children();
  const auto begin = std::chrono::steady_clock::now();
  std::string output = output_of(command);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  result.wall_seconds = wall.count();
  result.cpu_seconds = cpu_seconds_of_children() - cpu_before;
  return output;
}

std::string disttf_program() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return (self.parent_path().parent_path() / "disttf").string();
}

bool JobOptions::wants(const std::string& name) const {
  return filter.empty() || std::regex_search(name, std::regex(filter));
}

JobOptions part_of(JobOptions options, int part) {
  options.train_steps = std::to_string(std::max(1, std::stoi(options.train_steps) / part));
  return options;
}

Result run_launch(const std::string& wanted, bool saves, const JobOptions& options) {
  const ScratchDirectory scratch;
  std::string arguments = wanted;
  replace(arguments, "{scratch}", scratch.path());
  std::optional<PageReader> reader;
  if (arguments.find("{page_port}") != std::string::npos) {
    reader.emplace();
    replace(arguments, "{page_port}", std::to_string(reader->port()));
  }
  const std::string command = disttf_program() + " launch " + arguments +
                              " --train_steps=" + options.train_steps +
                              " --dataset=" + options.dataset + " --data_dir=" + options.data_dir +
                              (saves ? " --train_dir=" + scratch.path() : "");
  Result result;
  const std::string output = timed_output(command, result);
  std::smatch rate;
  std::smatch accuracy;
  if (!std::regex_search(output, rate,
                         std::regex(R"(elapsed time: [0-9.]+ s \(([0-9]+) images/s)")) ||
      !std::regex_search(output, accuracy, std::regex(R"(accuracy: ([0-9.]+))"))) {
    throw std::runtime_error(command + " printed no result:\n" + output);
  }
  // Without a reader the figure would not include the cost of the page.
  if (reader && reader->bytes() == 0) {
    throw std::runtime_error(command + ": its page could not be read");
  }
  result.images_per_second = std::stod(rate[1]);
  result.accuracy = std::stod(accuracy[1]);
  std::smatch weights;
  if (std::regex_search(output, weights, std::regex("Weights SHA-256: ([0-9a-f]+)"))) {
    result.weights = weights[1];
  }
  return result;
}

void Results::add(const Result& result) {
  rates.push_back(result.images_per_second);
  walls.push_back(result.wall_seconds);
  cpus.push_back(result.cpu_seconds);
  accuracy = result.accuracy;
}

Figure Results::figure(const std::string& name, const std::string& floor) const {
  return {.name = name,
          .median = median(rates),
          .slowest = *std::ranges::min_element(rates),
          .unit = "images/s",
          .floor = floor,
          .ratio = {},
          .extras = {{"accuracy", accuracy}, {"wall_s", median(walls)}, {"cpu_s", median(cpus)}}};
}

void run_pairs(const Pair& pair, const JobOptions& options, Reporter& reporter) {
  Results with;
  Results without;
  std::string weights;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    // Alternating the order cancels drift of the machine's speed.
    const bool plain_first = repetition % 2 == 0;
    for (const bool plain : {plain_first, !plain_first}) {
      const Result result =
          run_launch(plain ? pair.plain : pair.with, pair.saves && !plain, options);
      if (weights.empty()) weights = result.weights;
      if (result.weights != weights) {
        throw std::runtime_error(pair.name + ": the weights are " + result.weights + " and " +
                                 weights);
      }
      (plain ? without : with).add(result);
    }
  }
  const std::string base = pair.name + "/plain";
  reporter.add(without.figure(base, {}));
  Figure figure = with.figure(pair.name, base);
  figure.ratio = ratio_of_pairs(with.rates, without.rates);
  figure.extras["wall_ratio"] = ratio_of_pairs(with.walls, without.walls);
  figure.extras["cpu_ratio"] = ratio_of_pairs(with.cpus, without.cpus);
  reporter.add(figure);
}

double ratio_of_pairs(const std::vector<double>& with, const std::vector<double>& without) {
  std::vector<double> ratios(with.size());
  std::ranges::transform(with, without, ratios.begin(), std::divides<>());
  return median(ratios);
}

namespace {

using asio::ip::tcp;

const tcp::endpoint kAnyPort(asio::ip::address_v4::loopback(), 0);

std::uint16_t free_port() {
  asio::io_context context;
  return tcp::acceptor(context, kAnyPort).local_endpoint().port();
}

}  // namespace

PageReader::PageReader() : port_(free_port()), thread_([this] { read(); }) {}

PageReader::~PageReader() {
  ends_ = true;
  thread_.join();  // the run, and so its stream, has ended
}

void PageReader::read() {
  constexpr std::chrono::milliseconds kAgain{20};
  while (!ends_ && !read_once()) {
    std::this_thread::sleep_for(kAgain);
  }
}

bool PageReader::read_once() {
  asio::io_context context;
  tcp::socket socket(context);
  std::error_code error;
  socket.connect({asio::ip::address_v4::loopback(), port_}, error);
  if (error) {
    return false;
  }
  const std::string request =
      "GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
      "\r\nAccept: text/event-stream\r\n\r\n";
  asio::write(socket, asio::buffer(request), error);
  std::array<char, 65536> buffer{};
  while (!error) {
    bytes_ += socket.read_some(asio::buffer(buffer), error);
  }
  return true;
}

}  // namespace disttf::bench
