// Checks that nothing is allocated inside a step. The linker redirects every call of an allocation
// function to the counting ones below (--wrap in CMakeLists.txt).
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <vector>

#include "bench/products.h"
#include "math/model.h"
#include "math/optimizer.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace {
// Not atomic, because these tests have one thread.
std::size_t allocations = 0;
}  // namespace

// The linker defines these names: --wrap=f turns calls of f into __wrap_f, and __real_f is f.
extern "C" {
void* __real_malloc(std::size_t size);
void* __real__Znwm(std::size_t size);
void* __real__Znam(std::size_t size);
void* __real__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment);
void* __real__ZnamSt11align_val_t(std::size_t size, std::align_val_t alignment);

void* __wrap_malloc(std::size_t size) {
  ++allocations;
  return __real_malloc(size);
}
void* __wrap__Znwm(std::size_t size) {
  ++allocations;
  return __real__Znwm(size);
}
void* __wrap__Znam(std::size_t size) {
  ++allocations;
  return __real__Znam(size);
}
void* __wrap__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  return __real__ZnwmSt11align_val_t(size, alignment);
}
void* __wrap__ZnamSt11align_val_t(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  return __real__ZnamSt11align_val_t(size, alignment);
}
}

namespace disttf::math {
namespace {

class Allocation : public IsaTest {
 protected:
  template <class Work>
  static std::size_t count(Work work) {
    const std::size_t before = allocations;
    work();
    return allocations - before;
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, Allocation, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(Allocation, IsSeenByTheCounter) {
  EXPECT_GT(count([] { const AlignedVector vector(100); }), 0U);
  EXPECT_GT(count([] { const Model model({}, 10, isa()); }), 0U);
}

TEST_P(Allocation, DoesNotHappenInAStep) {
  const ModelSpec spec{.hidden = {1024, 100}};
  const MadeUpImages images(200, spec.input.size(), spec.classes);
  const std::vector<std::uint32_t> rows = row_numbers(0, 200);
  Model model(spec, 200, isa());
  AlignedVector parameters = made_up_parameters(model.layout(), 0.1F);
  AlignedVector gradient(model.layout().size());
  Optimizer optimizer({}, parameters.size(), isa());
  EXPECT_EQ(count([&] {
              model.gradient(parameters.span(), images.set(), rows, gradient.span());
              add(gradient.span(), gradient.span(), gradient.span(), isa());
              optimizer.apply(parameters.span(), gradient.span(), 0.5F, 1);
            }),
            0U);
  EXPECT_EQ(count([&] { static_cast<void>(model.evaluate(parameters.span(), images.set())); }), 2U)
      << "its confusion matrix and its answers";
}

TEST_P(Allocation, DoesNotHappenInAStepOfConvolutions) {
  const ModelSpec spec{.kind = ModelKind::kCnn};
  const MadeUpImages images(10, spec.input.size(), spec.classes);
  const std::vector<std::uint32_t> rows = row_numbers(0, 10);
  Model model(spec, 10, isa());
  const AlignedVector parameters = made_up_parameters(model.layout(), 0.1F);
  AlignedVector gradient(model.layout().size());
  EXPECT_EQ(count([&] { model.gradient(parameters.span(), images.set(), rows, gradient.span()); }),
            0U);
  EXPECT_EQ(count([&] { static_cast<void>(model.evaluate(parameters.span(), images.set())); }), 2U)
      << "its confusion matrix and its answers";
}

TEST_P(Allocation, DoesNotHappenInAStepOfBatchNorm) {
  const ModelSpec spec{.input = {.height = 4, .width = 4, .channels = 3},
                       .layers = {{.type = "batch_norm", .name = {}, .fields = {}},
                                  {.type = "dense", .name = {}, .fields = {{"units", 10.0}}},
                                  {.type = "batch_norm", .name = {}, .fields = {}}}};
  const MadeUpImages images(10, spec.input.size(), spec.classes);
  const std::vector<std::uint32_t> rows = row_numbers(0, 10);
  Model model(spec, 10, isa());
  AlignedVector parameters = made_up_parameters(model.layout(), 0.1F);
  AlignedVector gradient(model.layout().size());
  const Range all{.begin = 0, .end = parameters.size()};
  Optimizer optimizer({.weight_decay = 0.1F}, parameters.size(), isa(), 1,
                      model.layout().decaying(all), model.layout().running(all));
  EXPECT_EQ(count([&] {
              model.gradient(parameters.span(), images.set(), rows, gradient.span());
              optimizer.apply(parameters.span(), gradient.span(), 0.5F, 1);
            }),
            0U);
  EXPECT_EQ(count([&] { static_cast<void>(model.evaluate(parameters.span(), images.set())); }), 2U)
      << "its confusion matrix and its answers";
}

TEST_P(Allocation, DoesNotHappenInTheBareProducts) {
  bench::StepProducts products({}, 100, isa());
  EXPECT_EQ(count([&] { products.run(); }), 0U);
  if (can_multiply(isa(), ComputeDtype::kBf16)) {
    bench::StepProducts bf16({}, 100, isa(), ComputeDtype::kBf16);
    EXPECT_EQ(count([&] { bf16.run(); }), 0U);
  }
}

// 784-100-10: forward 784x100 and 100x10; backward both again, and 100x10 for the hidden layer.
TEST(StepProducts, CountsTwoOperationsAMultiplyAdd) {
  const bench::StepProducts products({}, 50, Isa::kGeneric);
  EXPECT_EQ(products.operations(), 2.0 * 50 * (2 * 784 * 100 + 3 * 100 * 10));
}

}  // namespace
}  // namespace disttf::math
