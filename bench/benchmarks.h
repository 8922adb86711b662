// All benchmarks, in the order in which they run: floors first, because other figures are divided
// by them.
//
//   memcpy/BYTES                    one copy of a parameter vector
//   products/MODEL                  the matrix products of one step of 100 images, one core
//   products_bf16/MODEL             the same, operands bfloat16        floor: products
//   gradient/MODEL                  Model::gradient                    floor: products
//   gradient_of_digits/MODEL        the same for images with mostly zero pixels    floor: products
//   gradient_bf16/MODEL             the same, operands bfloat16        floor: products_bf16
//   optimizer/KIND                  one update of the 784-100-10 model floor: memcpy
//   raw_echo/BYTES                  loopback round trip between two processes, blocking sockets
//   push_pull/TRANSPORT/BYTES       1 worker, 1 real ps, sgd applied   floor: raw_echo
//   sum_by_rank/ARRIVALS/TRAINERS   one step of a ps, adam, mlp_100    floor:
//                                   sum_on_arrival/TRAINERS
//   program/hand_over/FLOATS        a step of a user's own program beyond its computing of 300 us,
//                                   both copies included; floor: the same packets alone
//   scaling/WHAT/SIZE/TRANSPORT     the same step as the cluster grows floor: scaling/WHAT/SIZE/raw
//   job/MODE/CLUSTER                `disttf launch`: images/s and accuracy; floor: products on
//                                   both cores at once, as images/s
//   serve/FORM/CONNECTIONS          `disttf serve`, 784-100-10: requests/s, p50 and p99; floor: a
//                                   bare HTTP service that answers with as many bytes
//   serve/infer                     the same answers without HTTP, one after the other, one core
//   slow_link/FORM                  seconds to 97 % over a link of 100 Mbit/s; floor: f32
//   many_hosts/HOSTSxWORKERS        bytes that a ps receives in a step, over links of 1 Gbit/s;
//                                   floor: each worker pushes its own gradient
//   versus/PEER/MODEL               the job                            floor: the same in the peer
//   versus/uvicorn/FORM/CONNECTIONS the service                        floor: onnxruntime behind
//                                   uvicorn, the same model
//   secret/exchange/BYTES/SIDE      one exchange with a ps over TLS    floor: the same over tcp;
//                                   also reported: the cipher's own passes
//   secret/TRANSPORT/MODEL          the job with a secret; floor: the same without it
//   secret/outsider/MODEL           the job over TLS during an attack without the secret;
//                                   floor: the same without an attack
//   price/WHAT                      2 workers and 1 ps with a feature; floor: the same without it
//   busy/WHAT                       the job over shared memory beside busy loops, or with more
//                                   tasks than processors; floor: the same over tcp
//   start/CLUSTER                   seconds from `disttf launch` to the first step
//   end/CLUSTER                     seconds from the last step to the end of the last process;
//                                   floor of both: as many processes that do nothing
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
  std::string python = "/usr/bin/python3";  // Debian's, which sees Debian's packages
  int repetitions = 5;
  bool quick = false;  // a test only: the first points of each curve, one step each
  std::string filter;  // --benchmark_filter: a regular expression; empty: everything

  // Returns whether the filter matches the name.
  [[nodiscard]] bool wants(const std::string& name) const;
};
// Measures the sides in turn and adds their figures. Throws std::runtime_error if their results
// differ.
void run_sums(const JobOptions& options, Reporter& reporter);

// Measures the exchange between a task and a user's own program, and its floor, in turn.
void run_program(const JobOptions& options, Reporter& reporter);

// Measures both transports and the raw exchange of the same bytes in turn. Throws
// std::runtime_error if a side's result is wrong.
void run_push_pull(const JobOptions& options, Reporter& reporter);

// Measures steps of clusters of real ps and clients: 10^4 to 10^8 parameters, 1 to 8 ps, 1 to 64
// workers. Measures in turn and throws like run_push_pull().
void run_scaling(const JobOptions& options, Reporter& reporter);

// Measures the cost of a secret: exchanges and jobs with and without one, in turn. Throws
// std::runtime_error if their weights differ.
void run_secret(const JobOptions& options, Reporter& reporter);

// Runs the jobs in turn and adds their figures. Throws std::runtime_error if a job ends without a
// result.
void run_jobs(const JobOptions& options, Reporter& reporter);
// Runs jobs beside other load on the machine. Adds figures and throws like run_jobs().
void run_busy(const JobOptions& options, Reporter& reporter);
// Measures runs of a few steps with 2 to 64 workers. Throws std::runtime_error if a run makes no
// step.
void run_start_end(const JobOptions& options, Reporter& reporter);

// Runs the same jobs in PyTorch and in TensorFlow, in turn with disttf's, if `python` has them and
// `data_dir` has MNIST; otherwise prints why not.
void run_peers(const JobOptions& options, Reporter& reporter);

// Sends requests to `disttf serve` for a second at a time, in turn with its floor and, if `python`
// has onnxruntime and uvicorn (otherwise prints why not), with these. Throws std::runtime_error if
// a server does not answer.
void run_serving(const JobOptions& options, bool with_peers, Reporter& reporter);

// Trains over a slow link, with float32 and with fewer bytes, if network namespaces and tc are
// available; otherwise prints why not.
void run_slow_link(const JobOptions& options, Reporter& reporter);
// Trains with many workers on each of several hosts, under the same conditions, with a tenth of the
// steps. Throws std::runtime_error if both forms print their weights and these differ.
void run_many_hosts(const JobOptions& options, Reporter& reporter);

// Models that several benchmarks use: softmax, lenet and cnn as in `--model`, and MLPs with the
// given number of hidden units.
inline constexpr std::array kBenchModels = {"softmax", "mlp_100", "mlp_1024", "lenet", "cnn"};
// REQUIRES: `name` is one of kBenchModels.
[[nodiscard]] math::ModelSpec bench_model(const std::string& name);
inline constexpr std::size_t kBatch = 100;

}  // namespace disttf::bench
