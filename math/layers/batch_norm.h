// batch_norm: normalises each channel to mean 0 and variance 1, over all positions of all rows of
// the batch, then scales and shifts it by trained values (S. Ioffe and C. Szegedy, "Batch
// normalization", ICML 2015). A channel is the last dimension: the channels of an image, or each
// single number.
//
//   out = gamma (in - mean) / sqrt(variance + epsilon) + beta
//
// with gamma, beta [channels]; they do not decay. In training, mean and variance are those of the
// micro-batch with n = rows * positions values per channel; the variance is the mean of squares,
// divided by n. In evaluation they are the running values, mean and variance [channels]. These are
// not trained: the ps averages the micro-batches' values like gradients and applies `momentum`
// (math/parameter_layout.h). The batches send the unbiased variance, divided by n - 1, as in
// PyTorch; so a micro-batch needs at least two values per channel. In both cases a channel takes
// one multiplication and one addition,
//   out = in * scale + shift,  scale = gamma / sqrt(variance + epsilon), shift = beta - mean scale
//
// Initial values: gamma 1, beta 0, running mean 0 and variance 1. Kept for the backward pass: only
// each row's sums; xhat, (in - mean) / sqrt(variance + epsilon), is recomputed. With d the gradient
// by the output, and sums over all n values of a channel:
//   by beta: sum(d);  by gamma: sum(d xhat)
//   by the input: scale (d - sum(d) / n - xhat sum(d xhat) / n)
//
// Order of the sums (math/kernels_table.h), for each channel separately: for a row its mean and its
// squared deviations, and in the backward pass d and d xhat, each over its positions in four
// chains. Then over the rows, from first to last; there the variance includes the deviation of a
// row's mean from the overall mean. So the bits depend only on the batch.
#pragma once

#include "math/layers/registry.h"

namespace disttf::math {

[[nodiscard]] const LayerType& batch_norm() noexcept;

}  // namespace disttf::math
