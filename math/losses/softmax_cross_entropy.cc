#include "math/losses/softmax_cross_entropy.h"

#include <cmath>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

constexpr LossType kSoftmaxLoss{
    .name = "softmax_cross_entropy",
    .differentiate =
        [](const LossPass& pass, float* outputs) noexcept {
          return pass.kernels->softmax_cross_entropy(outputs, pass.labels, pass.rows, pass.outputs,
                                                     pass.scale, pass.smoothing);
        },
    .of_guessing =
        [](std::size_t classes) noexcept { return std::log(static_cast<double>(classes)); }};

}  // namespace

const LossType& softmax_cross_entropy() noexcept { return kSoftmaxLoss; }

}  // namespace disttf::math
