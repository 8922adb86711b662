#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "data/digits_draw.h"
#include "math/aligned.h"
#include "math/model.h"
#include "math/optimizer.h"

namespace disttf::bench {
namespace {

// Measures the gradient for images with hardly any zero pixels, or for the built-in digits, which
// have mostly zero pixels.
void gradient(benchmark::State& state, const std::string& model_name, math::ComputeDtype dtype,
              bool of_digits) {
  math::Model model(bench_model(model_name), kBatch, math::supported_isas().front(), dtype);
  math::AlignedVector parameters(model.layout().size());
  math::AlignedVector out(model.layout().size());
  model.initialize(1, parameters.span());
  constexpr std::size_t kRows = 1000;
  std::vector<std::uint8_t> images(kRows * 784);
  std::iota(images.begin(), images.end(), std::uint8_t{0});
  std::vector<std::uint8_t> labels(kRows);
  for (std::size_t row = 0; row < kRows; ++row) {
    labels[row] = static_cast<std::uint8_t>(row % 10);
    if (of_digits) {
      data::draw_digit(labels[row], row,
                       std::span(images).subspan(row * 784).first<data::kDigitPixels>());
    }
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
  const char* floor =
      dtype == math::ComputeDtype::kF32 ? "floor=products/" : "floor=products_bf16/";
  state.SetLabel(floor + model_name);
}

// Measures loading a batch whose rows are spread over a set as large as MNIST, after a gradient;
// with `expects` the rows were prefetched before it.
void load(benchmark::State& state, bool expects) {
  constexpr std::size_t kRows = 55'000;
  constexpr std::size_t kApart = 31'607;  // coprime to kRows
  math::Model model(bench_model("mlp_100"), kBatch, math::supported_isas().front());
  math::AlignedVector parameters(model.layout().size());
  math::AlignedVector out(model.layout().size());
  model.initialize(1, parameters.span());
  const std::vector<std::uint8_t> images(kRows * 784, 1);
  const std::vector<std::uint8_t> labels(kRows, 1);
  const math::ImageSet set{.images = images, .labels = labels};
  std::vector<std::uint32_t> rows(kBatch);
  std::size_t row = 0;
  const auto draw = [&] {
    for (std::uint32_t& each : rows) {
      row = (row + kApart) % kRows;
      each = static_cast<std::uint32_t>(row);
    }
  };
  draw();
  model.load(set, rows);
  for (auto _ : state) {
    draw();
    if (expects) {
      model.expect(set, rows);
    }
    benchmark::DoNotOptimize(model.gradient_of_batch(parameters.span(), out.span()));
    const auto began = std::chrono::steady_clock::now();
    model.load(set, rows);
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  if (expects) {
    state.SetLabel("floor=load/anywhere");
  }
}

void optimizer(benchmark::State& state, math::OptimizerKind kind) {
  const std::size_t size = math::layout_of(bench_model("mlp_100")).size();
  math::AlignedVector parameters(size);
  const math::AlignedVector sum(size);
  math::Optimizer update({.kind = kind}, size, math::supported_isas().front());
  std::uint64_t step = 0;
  for (auto _ : state) {
    update.apply(parameters.span(), sum.span(), 0.5F, ++step);
  }
  state.SetLabel("floor=memcpy/318144");
}

}  // namespace

void register_parts() {
  for (const char* model : kBenchModels) {
    benchmark::RegisterBenchmark((std::string("gradient/") + model).c_str(), &gradient, model,
                                 math::ComputeDtype::kF32, /*of_digits=*/false)
        ->UseRealTime();
    benchmark::RegisterBenchmark((std::string("gradient_of_digits/") + model).c_str(), &gradient,
                                 model, math::ComputeDtype::kF32, /*of_digits=*/true)
        ->UseRealTime();
    if (math::can_multiply(math::supported_isas().front(), math::ComputeDtype::kBf16)) {
      benchmark::RegisterBenchmark((std::string("gradient_bf16/") + model).c_str(), &gradient,
                                   model, math::ComputeDtype::kBf16, /*of_digits=*/false)
          ->UseRealTime();
    }
  }
  // Setup takes most of the time, so the number of loads is fixed instead of running for half a
  // second.
  constexpr std::int64_t kLoads = 2000;
  benchmark::RegisterBenchmark("load/anywhere", &load, false)->UseManualTime()->Iterations(kLoads);
  benchmark::RegisterBenchmark("load/expected", &load, true)->UseManualTime()->Iterations(kLoads);
  for (const std::string_view name : math::optimizer_names()) {
    benchmark::RegisterBenchmark(("optimizer/" + std::string(name)).c_str(), &optimizer,
                                 *math::optimizer_from_name(name))
        ->UseRealTime();
  }
}

}  // namespace disttf::bench
