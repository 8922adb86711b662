// Gradients of a user's own program (docs/own_program.md), which runs beside this task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/sampler.h"
#include "math/aligned.h"
#include "math/parameter_layout.h"
#include "roles/trainer/shell/gradient_source.h"
#include "run/program/program_link.h"

namespace disttf::roles {

struct TrainerOptions;

class ProgramSource final : public GradientSource {
 public:
  // Waits until the program has told its variables. `options` must outlive the source. Throws
  // Failure.
  ProgramSource(const TrainerOptions& options, StopSignal& stop);
  // The program, if the run is not over for it, learns that this task has ended.
  ~ProgramSource() override = default;

  [[nodiscard]] RunConfig complete(const RunConfig& config) override;
  void adopt(const RunConfig& published) override;
  void begin_anew() override { link_.restart(); }
  void prepare(const RunConfig& config) override;
  [[nodiscard]] const math::ParameterLayout& layout() const override { return layout_; }
  void initialize(std::span<float> parameters) override;
  void load(const Batch& batch) override { batch_ = batch; }
  void expect(const Batch& /*batch*/) override {}
  float gradient(std::span<const float> parameters, std::span<float> gradient,
                 const math::Model::OnReady& on_ready, StageClock& stages) override;
  [[nodiscard]] std::span<const math::ToldNumber> numbers() const noexcept override {
    return numbers_;
  }
  [[nodiscard]] bool evaluates() const override { return is_chief_; }
  [[nodiscard]] SetEvaluations evaluate(std::uint64_t step,
                                        std::span<const float> parameters) override;
  [[nodiscard]] std::optional<Failure> judge(std::uint64_t step,
                                             const SetEvaluations& found) const override;
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::span<const std::string_view> class_names() const override { return {}; }
  [[nodiscard]] std::map<std::string, std::string> fingerprint() const override {
    return link_.hello().fingerprint;  // the first program's, which never changes
  }
  [[nodiscard]] BuiltInSource* built_in() noexcept override { return nullptr; }
  void end(std::uint64_t step, std::span<const float> parameters) override;

  [[nodiscard]] std::uint64_t programs() const noexcept override { return link_.programs(); }
  // The connection to the program, for checks of what it does.
  [[nodiscard]] ProgramLink& link() noexcept { return link_; }

 private:
  [[nodiscard]] const ProgramAnswer& compute();
  void check_again(std::span<const float> gradient);
  void check_stops(const math::Evaluation& found) const;
  void ask_initial();
  void copy_to_program(std::span<const float> parameters);
  void draw(std::uint64_t step, std::uint64_t slot, std::uint64_t count,
            std::span<std::uint32_t> rows);

  const TrainerOptions& options_;
  const bool is_chief_;
  ProgramLink link_;
  std::string name_;  // of the data
  math::ParameterLayout layout_;
  RunConfig config_;
  math::AlignedVector initial_;  // chief: the first parameters
  Batch batch_;
  std::optional<data::Sampler> sampler_;
  std::uint64_t sampled_rows_ = 0;  // the sampler's
  math::ToldNumbers numbers_;
  std::uint64_t differences_ = 0;  // gradients that were other bits when computed again
};

}  // namespace disttf::roles
