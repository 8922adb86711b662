#include "math/layers/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

constexpr std::array<LayerField, 2> kBatchNormFields = {{
    {.name = "momentum",
     .about = "share of the running mean and variance that a step leaves as it is",
     .kind = LayerField::Kind::kFraction,
     .least = 0,
     .most = 1,
     .otherwise = "0.9"},
    {.name = "epsilon",
     .about = "added to the variance",
     .kind = LayerField::Kind::kFraction,
     .least = 1e-9,
     .most = 1,
     .otherwise = "1e-5"},
}};

class BatchNorm final : public Layer {
 public:
  BatchNorm(const Shape& input, float momentum, float epsilon)
      : Layer(input, input,
              {{.suffix = "gamma", .shape = {input.channels}, .initial = 1, .decays = false},
               {.suffix = "beta", .shape = {input.channels}, .decays = false},
               {.suffix = "mean", .shape = {input.channels}, .decays = false, .momentum = momentum},
               {.suffix = "variance",
                .shape = {input.channels},
                .initial = 1,
                .decays = false,
                .momentum = momentum}}),
        channels_(input.channels),
        positions_(input.height * input.width),
        epsilon_(epsilon) {}

  [[nodiscard]] LayerOperation operation() const noexcept override {
    return ChannelNormalization{.epsilon = epsilon_};
  }
  [[nodiscard]] std::uint64_t multiply_adds() const noexcept override { return output().size(); }
  [[nodiscard]] std::size_t kept_floats() const noexcept override { return 2 * channels_; }
  [[nodiscard]] std::size_t shared_floats() const noexcept override { return kShares * channels_; }
  // A variance needs at least two values per channel.
  [[nodiscard]] std::size_t least_rows() const noexcept override { return positions_ > 1 ? 1 : 2; }
  // One part: the sums over the batch are complete before this, and copying them needs no threads.
  [[nodiscard]] std::size_t gradient_rows() const noexcept override { return 1; }

  void measure_rows(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      // Mean and squared deviations of each image alone: a large mean cannot cancel small
      // deviations, as it would in a difference of sums of squares.
      float* const moments = pass.kept + row * kept_floats();
      pass.kernels->channel_moments(pass.input + row * input().size(), moments, moments + channels_,
                                    positions_, channels_);
    }
  }

  void measure_batch(const LayerPass& pass) const noexcept override {
    // Evaluation uses the running statistics, so a result does not depend on the other rows of the
    // batch.
    if (pass.draws == nullptr) {
      scale_by(pass, pass.variables[kMean], pass.variables[kVariance]);
      return;
    }
    float* const means = share(pass, kMeans);
    float* const unbiased = share(pass, kUnbiased);
    float* const variances = share(pass, kBiased);
    // Merges the rows' moments in the order of the batch, so the result does not depend on threads.
    pass.kernels->merge_moments(pass.kept, means, unbiased, pass.rows.count(), positions_,
                                channels_);
    const float values = values_of(pass);
    for (std::size_t c = 0; c < channels_; ++c) {
      const float squares = unbiased[c];
      // Training normalizes with the biased variance; the running statistic stores the unbiased
      // one, as PyTorch does.
      variances[c] = squares / values;
      unbiased[c] = squares / (values - 1.0F);
    }
    scale_by(pass, means, variances);
  }

  void forward(const LayerPass& pass) const noexcept override {
    const std::size_t first = pass.rows.begin * input().size();
    // (x - mean) * scale + beta as x * scale + shift: one multiply-add a number.
    pass.kernels->scale_channels(pass.input + first, share(pass, kScales), share(pass, kShifts),
                                 pass.output + first, pass.rows.count() * positions_, channels_);
  }

  void measure_rows_back(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      const std::size_t first = row * input().size();
      // The moments in `kept` were merged before forward(), so their memory is free for these sums.
      float* const sums = pass.kept + row * kept_floats();
      pass.kernels->channel_delta_sums(pass.input + first, pass.output_delta + first,
                                       share(pass, kMeans), share(pass, kInverses), sums,
                                       sums + channels_, positions_, channels_);
    }
  }

  void measure_batch_back(const LayerPass& pass) const noexcept override {
    float* const by_beta = share(pass, kByBeta);
    const float* const by_gamma = share(pass, kByGamma);  // adjacent, as in a row
    pass.kernels->column_sums(pass.kept, by_beta, pass.rows.count(), 2 * channels_);
    const float values = values_of(pass);
    for (std::size_t c = 0; c < channels_; ++c) {
      // With x' = (x - mean) * inverse the gradient by x is scale * (delta - mean(delta) - x' *
      // mean(delta * x')) (Ioffe and Szegedy, Batch normalization, 2015). kSlopes holds inverse *
      // mean(delta * x').
      share(pass, kDeltas)[c] = by_beta[c] / values;
      share(pass, kSlopes)[c] = share(pass, kInverses)[c] * (by_gamma[c] / values);
    }
  }

  void backward(const LayerPass& pass) const noexcept override {
    const std::size_t first = pass.rows.begin * input().size();
    pass.kernels->batch_norm_backward(pass.input + first, pass.output_delta + first,
                                      {.means = share(pass, kMeans),
                                       .scales = share(pass, kScales),
                                       .shared = share(pass, kDeltas),
                                       .slopes = share(pass, kSlopes)},
                                      pass.input_delta + first, pass.rows.count() * positions_,
                                      channels_);
  }

  void gradient(const LayerPass& pass, Rows /*part*/,
                std::span<float* const> gradients) const noexcept override {
    std::copy_n(share(pass, kByGamma), channels_, gradients[kGamma]);
    std::copy_n(share(pass, kByBeta), channels_, gradients[kBeta]);
    // The positions of running statistics in the gradient carry the batch's statistics, which the
    // optimizer averages.
    std::copy_n(share(pass, kMeans), channels_, gradients[kMean]);
    std::copy_n(share(pass, kUnbiased), channels_, gradients[kVariance]);
  }

 private:
  enum VariableNumber : std::uint8_t { kGamma, kBeta, kMean, kVariance };
  // The shared values, each [channels].
  enum Share : std::uint8_t {
    kMeans,
    kBiased,
    kUnbiased,
    kInverses,  // 1 / sqrt(variance + epsilon)
    kScales,
    kShifts,
    kByBeta,
    kByGamma,
    kDeltas,  // mean of the output's deltas
    kSlopes,
    kShares
  };

  [[nodiscard]] float* share(const LayerPass& pass, Share number) const noexcept {
    return pass.shared + number * channels_;
  }
  // Values per channel.
  [[nodiscard]] float values_of(const LayerPass& pass) const noexcept {
    return static_cast<float>(pass.rows.count() * positions_);
  }

  void scale_by(const LayerPass& pass, const float* means, const float* variances) const noexcept {
    for (std::size_t c = 0; c < channels_; ++c) {
      const float inverse = 1.0F / std::sqrt(variances[c] + epsilon_);
      const float scale = pass.variables[kGamma][c] * inverse;
      share(pass, kInverses)[c] = inverse;
      share(pass, kScales)[c] = scale;
      share(pass, kShifts)[c] = pass.variables[kBeta][c] - means[c] * scale;
    }
  }

  std::size_t channels_;
  std::size_t positions_;
  float epsilon_;
};

std::unique_ptr<const Layer> make_batch_norm(const LayerFields& fields, const Shape& input) {
  return std::make_unique<BatchNorm>(input, static_cast<float>(fields.fraction("momentum")),
                                     static_cast<float>(fields.fraction("epsilon")));
}

std::optional<LayerValues> batch_norm_for(const LayerOperation& operation) {
  const auto* const of = std::get_if<ChannelNormalization>(&operation);
  if (of == nullptr) {
    return std::nullopt;
  }
  return LayerValues{{"epsilon", double{of->epsilon}}};
}

constexpr LayerType kBatchNorm{
    .name = "batch_norm",
    .about = "each channel at mean 0 and variance 1, then scaled and shifted",
    .fields = kBatchNormFields,
    .make = &make_batch_norm,
    .fields_for = &batch_norm_for};

}  // namespace

const LayerType& batch_norm() noexcept { return kBatchNorm; }

}  // namespace disttf::math
