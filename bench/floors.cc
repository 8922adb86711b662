#include <sched.h>

#include <atomic>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/products.h"

namespace disttf::bench {
namespace {

void copy_memory(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
}

// Like copy_memory(), with a destination that begins 16 bytes behind the source within a page, as
// malloc's mappings do behind shared memory.
void copy_memory_apart(benchmark::State& state) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kApart = 16;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<char> memory(2 * bytes + 4 * kPage, 1);
  void* place = memory.data();
  std::size_t space = memory.size();
  auto* const from = static_cast<char*>(std::align(kPage, bytes, place, space));
  char* const to = from + (bytes + kPage - 1) / kPage * kPage + kApart;
  for (auto _ : state) {
    std::memcpy(to, from, bytes);
    benchmark::DoNotOptimize(to);
    benchmark::ClobberMemory();
  }
  state.SetLabel("floor=memcpy/" + std::to_string(bytes));
}

// Returns the first two processors that this process may run on; empty if there is only one.
std::vector<std::size_t> two_processors() {
  cpu_set_t all;
  std::vector<std::size_t> two;
  if (::sched_getaffinity(0, sizeof all, &all) == 0) {
    for (std::size_t each = 0; each < CPU_SETSIZE && two.size() < 2; ++each) {
      if (CPU_ISSET(each, &all)) two.push_back(each);
    }
  }
  return two.size() == 2 ? two : std::vector<std::size_t>();
}

// Pins only this thread.
void stay_on(std::size_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  static_cast<void>(::sched_setaffinity(0, sizeof one, &one));
}

// Passes one cache line from one processor to another and back.
void pass_line(benchmark::State& state) {
  cpu_set_t before;
  const std::vector<std::size_t> processors = two_processors();
  if (processors.empty() || ::sched_getaffinity(0, sizeof before, &before) != 0) {
    state.SkipWithError("this process may run on only one processor");
    return;
  }
  constexpr int kEnd = -1;
  alignas(64) std::atomic<int> line{0};  // 1: the other thread's turn
  std::thread other([&] {
    stay_on(processors[1]);
    for (int seen = line; seen != kEnd; seen = line) {
      if (seen == 1) line = 0;
    }
  });
  stay_on(processors[0]);
  for (auto _ : state) {
    line = 1;
    while (line != 0) {
    }
  }
  line = kEnd;
  other.join();
  static_cast<void>(::sched_setaffinity(0, sizeof before, &before));
}

void products(benchmark::State& state, const std::string& model, math::ComputeDtype dtype) {
  StepProducts step(bench_model(model), kBatch, math::supported_isas().front(), dtype);
  for (auto _ : state) {
    step.run();
  }
  if (dtype != math::ComputeDtype::kF32) {
    state.SetLabel("floor=products/" + model);
  }
  state.counters["gflops"] =
      benchmark::Counter(step.operations() * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

math::ModelSpec bench_model(const std::string& name) {
  constexpr std::string_view kMlp = "mlp_";
  math::ModelSpec spec;
  if (name.starts_with(kMlp)) {
    spec.hidden = {std::stoul(name.substr(kMlp.size()))};
  } else {
    spec.kind = math::model_from_name(name).value();
    spec.hidden.clear();
  }
  return spec;
}

void register_floors() {
  for (const long bytes : {318144L, 40'000'000L}) {
    benchmark::RegisterBenchmark("memcpy", &copy_memory)->Arg(bytes)->UseRealTime();
    benchmark::RegisterBenchmark("memcpy_apart", &copy_memory_apart)->Arg(bytes)->UseRealTime();
  }
  benchmark::RegisterBenchmark("cache_line", &pass_line)->UseRealTime();
  for (const char* model : kBenchModels) {
    benchmark::RegisterBenchmark((std::string("products/") + model).c_str(), &products, model,
                                 math::ComputeDtype::kF32)
        ->UseRealTime();
    if (math::can_multiply(math::supported_isas().front(), math::ComputeDtype::kBf16)) {
      benchmark::RegisterBenchmark((std::string("products_bf16/") + model).c_str(), &products,
                                   model, math::ComputeDtype::kBf16)
          ->UseRealTime();
    }
  }
}

}  // namespace disttf::bench
