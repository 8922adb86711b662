// batch_norm: each channel is brought to mean 0 and variance 1, over all positions of all rows of
// the batch, and then scaled and shifted by what is trained (S. Ioffe and C. Szegedy, "Batch
// normalization", ICML 2015). A channel is the last dimension: of an image its channels, of plain
// numbers each one.
//
//   out = gamma (in - mean) / sqrt(variance + epsilon) + beta
//
// with gamma, beta [channels]; they do not decay. In training mean and variance are those of the
// micro-batch, of n = rows * positions values a channel; the variance is the mean of the squares,
// divided by n. When the model is evaluated they are the running values, mean and variance
// [channels], which are not trained: the ps makes them of what the micro-batches have had, averaged
// like gradients, with `momentum` (math/parameter_layout.h). Of the variance the batches bring the
// unbiased one, divided by n - 1, as in PyTorch; so a micro-batch has two values a channel or more.
// Whether in training or not, a channel is one multiplication and one addition,
//   out = in * scale + shift,  scale = gamma / sqrt(variance + epsilon), shift = beta - mean scale
//
// Initial values: gamma 1, beta 0, running mean 0 and variance 1. Kept for the way back: nothing of
// a row but its sums; xhat, (in - mean) / sqrt(variance + epsilon), is computed again. With d the
// loss by the output, and sums over all n values of a channel:
//   by beta: sum(d);  by gamma: sum(d xhat)
//   by the input: scale (d - sum(d) / n - xhat sum(d xhat) / n)
//
// Order of the sums (math/kernels_table.h), of each channel for itself: of a row its mean and the
// squares beside it, and on the way back d and d xhat, each over its positions in four chains; then
// over the rows, from the first to the last, where the variance takes in how far a row's mean lies
// from the mean of all. So the bits depend on the batch alone.
#pragma once

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] const LayerType& batch_norm() noexcept;

}  // namespace disttf::math
