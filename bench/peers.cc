// Compares the job with the same job in widely used frameworks, in turn.
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"

namespace disttf::bench {
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
