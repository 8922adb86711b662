// Reads files of named variables that other programs wrote: safetensors, and NumPy's .npz.
//
// Checks every length before allocating; from an archive it extracts no more than a variable needs.
// Pure: callable from any thread. Throws std::invalid_argument with one sentence that begins with
// the file's name.
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

  // disttf's metadata (model/export/model_facts.h); empty for files of other programs.
  [[nodiscard]] const std::map<std::string, std::string>& facts() const noexcept { return facts_; }
  // Whether the file is large enough for so many numbers, also if compressed.
  [[nodiscard]] bool can_hold(std::size_t numbers) const noexcept;
  // Reads all of the layout's variables; refuses a missing one or another shape. `parameters`:
  // layout.size() floats.
  void read(const math::ParameterLayout& layout, std::span<float> parameters) const;
  // Names of variables that are not in the layout.
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
  std::vector<std::string> names_;  // of the variables in the file
  std::map<std::string, std::string> facts_;
};

}  // namespace disttf::roles
