// A node of an ONNX file that is one of a chain: what it does with what the node before gives, and
// sentences that name it.
//
// Not thread-safe. Whatever is refused throws std::invalid_argument with one sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "roles/import/core/onnx_file.h"

namespace disttf::roles {

using OnnxConstants = std::map<std::string, const OnnxTensor*, std::less<>>;

class ChainNode {
 public:
  // Both are borrowed. `where`: the file's name, which begins sentences.
  ChainNode(const OnnxNode& node, const std::string& where) : node_(node), where_(where) {}

  [[nodiscard]] const std::string& type() const noexcept { return node_.type; }
  [[nodiscard]] const std::string& name() const noexcept { return node_.name; }
  // Its first output. REQUIRES: check().
  [[nodiscard]] const std::string& given() const noexcept { return node_.outputs.front(); }
  // What its second input is called; empty: there is none.
  [[nodiscard]] std::string constant_name() const {
    return node_.inputs.size() > 1 ? node_.inputs[1] : std::string();
  }

  [[noreturn]] void refuse(const std::string& why) const;
  // Refuses unless it is good: "group is not supported but as 1".
  void require(bool is_good, std::string_view attribute, std::string_view supported) const;

  // It gives something, and its operator is one of ONNX itself.
  void check() const;
  // Of a Constant.
  [[nodiscard]] const OnnxTensor& constant() const;

  // Its inputs but what the node before gives, `last`, which is one of the first two.
  void take_operands(const std::string& last, const OnnxConstants& constants);
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }  // `last` is, of its inputs
  [[nodiscard]] bool has_operand(std::size_t index) const noexcept {
    return index < operands_.size() && operands_[index] != nullptr;
  }
  // REQUIRES: has_operand(index).
  [[nodiscard]] const OnnxTensor& operand(std::size_t index) const { return *operands_[index]; }
  // The same of floats with so many sizes; refuses another. `what`: for the sentence, "weights".
  [[nodiscard]] const OnnxTensor& floats(std::size_t index, const char* what,
                                         std::size_t rank) const;

  // Attributes, and what they are where it has none of that name.
  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] float number(std::string_view name, float otherwise) const;
  [[nodiscard]] std::string text(std::string_view name, const std::string& otherwise) const;
  [[nodiscard]] std::vector<std::int64_t> wholes(std::string_view name,
                                                 const std::vector<std::int64_t>& otherwise) const;
  [[nodiscard]] bool all_are(std::string_view name, std::int64_t value) const;

 private:
  [[nodiscard]] const OnnxAttribute* find(std::string_view name) const;

  const OnnxNode& node_;
  const std::string& where_;
  std::vector<const OnnxTensor*> operands_;  // nullptr: left out
  bool is_first_ = false;
};

}  // namespace disttf::roles
