#include <unistd.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/echo_peer.h"
#include "math/aligned.h"
#include "math/model.h"
#include "math/optimizer.h"
#include "roles/ps_client.h"
#include "roles/run_config.h"
#include "roles/stop_signal.h"

namespace disttf::bench {
namespace {

math::ModelSpec spec_of(const std::string& model) {
  math::ModelSpec spec;
  spec.hidden = hidden_units(model);
  spec.kind = spec.hidden.empty() ? math::ModelKind::kSoftmax : math::ModelKind::kMlp;
  return spec;
}

void gradient(benchmark::State& state, const std::string& model_name) {
  math::Model model(spec_of(model_name), kBatch, math::supported_isas().front());
  math::AlignedVector parameters(model.layout().size());
  math::AlignedVector out(model.layout().size());
  model.initialize(1, parameters.span());
  constexpr std::size_t kRows = 1000;
  std::vector<std::uint8_t> images(kRows * 784);
  std::iota(images.begin(), images.end(), std::uint8_t{0});
  std::vector<std::uint8_t> labels(kRows);
  for (std::size_t row = 0; row < kRows; ++row) {
    labels[row] = static_cast<std::uint8_t>(row % 10);
  }
  std::vector<std::uint32_t> rows(kBatch);
  std::iota(rows.begin(), rows.end(), 0U);
  float loss = 0;
  for (auto _ : state) {
    loss =
        model.gradient(parameters.span(), {.images = images, .labels = labels}, rows, out.span());
  }
  if (!std::isfinite(loss)) {
    state.SkipWithError("the loss is not finite");
  }
  state.SetLabel("floor=products/" + model_name);
}

void optimizer(benchmark::State& state, math::OptimizerKind kind) {
  const std::size_t size = math::layout_of(spec_of("mlp_100")).size();
  math::AlignedVector parameters(size);
  const math::AlignedVector sum(size);
  math::Optimizer update({.kind = kind}, size, math::supported_isas().front());
  std::uint64_t step = 0;
  for (auto _ : state) {
    update.apply(parameters.span(), sum.span(), 0.5F, ++step);
  }
  state.SetLabel("floor=memcpy/318144");
}

// One worker's whole conversation with a ps in another process: push, apply, parameters back.
void push_pull(benchmark::State& state, std::size_t hidden, roles::Transport transport) {
  const Listening listening = listen_on_loopback();
  roles::Task task;
  task.cluster.ps = {{.host = "127.0.0.1", .port = listening.port}};
  task.cluster.workers = {{.host = "127.0.0.1", .port = 1}};  // never connected to
  task.incarnation = 1;
  task.transport = transport;
  roles::Task ps_task = task;
  ps_task.self = {.job = net::Job::kPs, .index = 0};
  ps_task.listen_fd = listening.fd;
  const Peer peer(start_ps(ps_task));
  close(listening.fd);
  task.self = {.job = net::Job::kWorker, .index = 0};
  const roles::StopSignal stop;
  roles::PsClient client(task, stop);
  static_cast<void>(client.connect());
  roles::RunConfig config;
  config.model.hidden = {hidden};
  config.optimizer.kind = math::OptimizerKind::kSgd;
  config.rate_decay = roles::RateDecay::kNone;
  config.isa = math::supported_isas().front();
  config.train_steps = std::uint64_t{1} << 50U;
  config.trainers = 1;
  const std::size_t size = math::layout_of(config.model).size();
  client.prepare({.size = size});
  client.lead(roles::to_json(config),
              [size] { return roles::TrainingState{.parameters = math::AlignedVector(size)}; });
  math::AlignedVector parameters(size);
  client.gradient().front() = 1.0F;
  roles::StepReply reply = client.pull(parameters.span());
  std::uint64_t pushes = 0;
  for (auto _ : state) {
    reply = client.push_pull(++pushes, parameters.span());
  }
  if (reply.step != pushes || !(reply.parameters.front() < 0)) {
    state.SkipWithError("the ps did not apply what was pushed");
  }
  state.SetLabel("floor=raw_echo/" + std::to_string(size > 1'000'000 ? 40'000'000 : 318144));
}

}  // namespace

void register_parts() {
  for (const char* model : {"softmax", "mlp_100", "mlp_1024"}) {
    benchmark::RegisterBenchmark((std::string("gradient/") + model).c_str(), &gradient, model)
        ->UseRealTime();
  }
  for (const auto kind : {math::OptimizerKind::kSgd, math::OptimizerKind::kMomentum,
                          math::OptimizerKind::kAdagrad, math::OptimizerKind::kAdam}) {
    benchmark::RegisterBenchmark(("optimizer/" + std::string(math::optimizer_name(kind))).c_str(),
                                 &optimizer, kind)
        ->UseRealTime();
  }
  for (const auto& [name, transport] : {std::pair("tcp", roles::Transport::kTcp),
                                        std::pair("shm", roles::Transport::kSharedMemory)}) {
    const auto register_one = [&](const char* bytes, std::size_t hidden) {
      benchmark::RegisterBenchmark((std::string("push_pull/") + name + "/" + bytes).c_str(),
                                   &push_pull, hidden, transport)
          ->UseRealTime();
    };
    register_one("318144", 100);
    register_one("40000000", 12578);  // 784-12578-10: 10.0 M parameters
  }
}

}  // namespace disttf::bench
