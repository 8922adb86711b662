// Files of variables by their names, somebody else's: safetensors, and NumPy's .npz.
//
// Every length is checked before anything is allocated; of an archive no more comes out than a
// variable takes. Pure: callable from any thread. Throws std::invalid_argument with one sentence,
// which the file's name begins.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/safetensors.h"
#include "math/parameter_layout.h"

namespace disttf::roles {

class WeightsFile {
 public:
  enum class Kind : std::uint8_t { kNone, kSafetensors, kNpz };
  [[nodiscard]] static Kind kind_of(std::span<const std::uint8_t> bytes) noexcept;

  // Borrows both. REQUIRES: kind_of(bytes) is not kNone.
  WeightsFile(std::span<const std::uint8_t> bytes, const std::string& where);

  // As disttf writes them (roles/export/core/model_facts.h); none: it has not written it.
  [[nodiscard]] const std::map<std::string, std::string>& facts() const noexcept { return facts_; }
  // Whether it has bytes enough for so many numbers, however it is packed.
  [[nodiscard]] bool can_hold(std::size_t numbers) const noexcept;
  // All of the layout's, which must be there with their shapes. `parameters`: layout.size() floats.
  void read(const math::ParameterLayout& layout, std::span<float> parameters) const;
  // What is there besides.
  [[nodiscard]] std::vector<std::string> others(const math::ParameterLayout& layout) const;

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void open_safetensors();
  void open_npz();
  void read_facts();
  void check_shape(const math::Variable& variable, std::span<const std::uint64_t> shape) const;
  void read_safetensors(const math::Variable& variable, std::span<float> to) const;
  void read_npz(const math::Variable& variable, std::span<float> to) const;

  std::span<const std::uint8_t> bytes_;
  const std::string& where_;
  Kind kind_;
  data::SafetensorsHeader header_;  // of safetensors
  std::vector<std::string> names_;  // of the variables
  std::map<std::string, std::string> facts_;
};

}  // namespace disttf::roles
