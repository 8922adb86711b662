// All benchmarks, in the order in which they run: floors first, since others are divided by them.
//
//   memcpy/BYTES                    one copy of a parameter vector
//   products/MODEL                  the matrix products of one step of 100 images, one core
//   products_bf16/MODEL             the same, operands bfloat16        floor: products
//   gradient/MODEL                  Model::gradient                    floor: products
//   gradient_of_digits/MODEL        the same of images most of whose pixels are 0  floor: products
//   gradient_bf16/MODEL             the same, operands bfloat16        floor: products_bf16
//   optimizer/KIND                  one update of the 784-100-10 model floor: memcpy
//   raw_echo/BYTES                  loopback round trip between two processes, blocking sockets
//   push_pull/TRANSPORT/BYTES       1 worker, 1 real ps, sgd applied   floor: raw_echo
//   sum_by_rank/ARRIVALS/TRAINERS   one step of a ps, adam, mlp_100    floor:
//                                   sum_on_arrival/TRAINERS
//   scaling/WHAT/SIZE/TRANSPORT     the same step as the cluster grows floor: scaling/WHAT/SIZE/raw
//   job/MODE/CLUSTER                `disttf launch`: images/s and accuracy; floor: products on
//                                   both cores at once, as images/s
//   serve/FORM/CONNECTIONS          `disttf serve`, 784-100-10: requests/s, p50 and p99; floor: the
//                                   bare HTTP service that answers as many bytes
//   serve/infer                     the same answers without HTTP, one after the other, one core
//   slow_link/FORM                  seconds to 97 % over a cable of 100 Mbit/s; floor: f32
//   many_hosts/HOSTSxWORKERS        bytes that a step brings a ps over cables of 1 Gbit/s; floor:
//                                   each worker pushes its own gradient
//   versus/PEER/MODEL               the job                            floor: the same in the peer
//   versus/uvicorn/FORM/CONNECTIONS the service                        floor: onnxruntime behind
//                                   uvicorn, the same model
//   secret/exchange/BYTES/SIDE      one exchange with a ps over TLS    floor: the same over tcp;
//                                   beside both the cipher's own passes
//   secret/TRANSPORT/MODEL          the job with a secret; floor: the same without it
//   secret/outsider/MODEL           the job over TLS while one without the secret tries to get in;
//                                   floor: the same in peace
//   price/WHAT                      2 workers and 1 ps with it; floor: the same without it
//   busy/WHAT                       the job over shared memory beside busy loops, or with more
//                                   tasks than processors; floor: the same over tcp
//   start/CLUSTER                   seconds from `disttf launch` to the first step
//   end/CLUSTER                     from the last step to the end of its last process; floor of
//                                   both: as many processes that do nothing
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench/reporter.h"
#include "math/model_spec.h"

namespace disttf::bench {

void register_floors();
void register_parts();

struct JobOptions {
  std::string train_steps = "2000";
  std::string dataset = "auto";
  std::string data_dir = "./input_data";
  std::string python = "/usr/bin/python3";  // Debian's, to which its packages belong
  int repetitions = 5;
  bool quick = false;  // only whether it runs: the first points of each curve, one step each
  std::string filter;  // --benchmark_filter: a regular expression; empty: everything

  // Whether a figure of that name is asked for.
  [[nodiscard]] bool wants(const std::string& name) const;
};
// Alternates between the sides and adds their figures. Throws std::runtime_error when they differ
// in what they come to.
void run_sums(const JobOptions& options, Reporter& reporter);

// Alternates between both transports and the raw exchange of the same bytes. Throws
// std::runtime_error when a side does not come to what it should.
void run_push_pull(const JobOptions& options, Reporter& reporter);

// Steps of clusters of real ps and clients: 10^4 to 10^8 parameters, 1 to 8 ps, 1 to 64 workers.
// Alternates and throws as run_push_pull() does.
void run_scaling(const JobOptions& options, Reporter& reporter);

// What a secret costs: exchanges and jobs with one and without, in turn. Throws std::runtime_error
// where the weights of the two differ.
void run_secret(const JobOptions& options, Reporter& reporter);

// Runs the jobs, alternating between them, and adds their figures. Throws std::runtime_error when
// one does not end with a result.
void run_jobs(const JobOptions& options, Reporter& reporter);
// The same, with other work beside them.
void run_busy(const JobOptions& options, Reporter& reporter);
// Runs of a few steps, of 2 to 64 workers. Throws std::runtime_error when one makes none.
void run_start_end(const JobOptions& options, Reporter& reporter);

// Runs the same jobs in PyTorch and in TensorFlow, in turn with ours, where `python` has them and
// `data_dir` has MNIST; else says why not.
void run_peers(const JobOptions& options, Reporter& reporter);

// Asks `disttf serve` for a second at a time, in turn with its floor and, where `python` has
// onnxruntime and uvicorn (else it says why not), with these. Throws std::runtime_error where one
// does not answer.
void run_serving(const JobOptions& options, bool with_peers, Reporter& reporter);

// Trains over a slow cable, with float32 and with less, where network namespaces and tc can be had;
// else says why not.
void run_slow_link(const JobOptions& options, Reporter& reporter);
// Likewise, with many workers on each of several hosts; a tenth of the steps. Throws
// std::runtime_error where both ways print their weights and these differ.
void run_many_hosts(const JobOptions& options, Reporter& reporter);

// The models that several of them use: softmax, lenet and cnn as `--model` has them, and MLPs of so
// many hidden units.
inline constexpr std::array kBenchModels = {"softmax", "mlp_100", "mlp_1024", "lenet", "cnn"};
// REQUIRES: one of them.
[[nodiscard]] math::ModelSpec bench_model(const std::string& name);
inline constexpr std::size_t kBatch = 100;

}  // namespace disttf::bench
