// A node of an ONNX file as part of a chain: how it uses the output of the node before, and error
// messages that name it.
//
// Not thread-safe. Unsupported nodes throw std::invalid_argument with one sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/import/onnx_file.h"

namespace disttf::roles {

using OnnxConstants = std::map<std::string, const OnnxTensor*, std::less<>>;

class ChainNode {
 public:
  // Borrows both. `where`: the file's name, with which sentences begin.
  ChainNode(const OnnxNode& node, const std::string& where) : node_(node), where_(where) {}

  [[nodiscard]] const std::string& type() const noexcept { return node_.type; }
  [[nodiscard]] const std::string& name() const noexcept { return node_.name; }
  // Its first output. REQUIRES: check().
  [[nodiscard]] const std::string& given() const noexcept { return node_.outputs.front(); }
  // Name of its second input; empty: it has only one.
  [[nodiscard]] std::string constant_name() const {
    return node_.inputs.size() > 1 ? node_.inputs[1] : std::string();
  }

  [[noreturn]] void refuse(const std::string& why) const;
  // Refuses the node if `is_good` is false: "group is not supported but as 1".
  void require(bool is_good, std::string_view attribute, std::string_view supported) const;

  // Refuses a node without outputs or with an operator that is not ONNX's own.
  void check() const;
  // The value of a Constant node.
  [[nodiscard]] const OnnxTensor& constant() const;

  // Records its constant inputs. `last`, the output of the node before, must be one of the first
  // two.
  void take_operands(const std::string& last, const OnnxConstants& constants);
  [[nodiscard]] bool is_first() const noexcept { return is_first_; }  // whether input 0 is `last`
  [[nodiscard]] bool has_operand(std::size_t index) const noexcept {
    return index < operands_.size() && operands_[index] != nullptr;
  }
  // REQUIRES: has_operand(index).
  [[nodiscard]] const OnnxTensor& operand(std::size_t index) const { return *operands_[index]; }
  // The operand; refuses any but floats of this rank. `what`: for the message, "weights".
  [[nodiscard]] const OnnxTensor& floats(std::size_t index, const char* what,
                                         std::size_t rank) const;

  // Attributes; `otherwise` where the node has none of that name.
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
  std::vector<const OnnxTensor*> operands_;  // nullptr: omitted
  bool is_first_ = false;
};

}  // namespace disttf::roles
