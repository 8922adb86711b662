#include "model/import/onnx_node.h"

#include <algorithm>
#include <stdexcept>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

// The longest operator name in a message: the file decides what it is.
constexpr std::size_t kMostListed = 64;

}  // namespace

void ChainNode::refuse(const std::string& why) const {
  throw std::invalid_argument(where_ + ": node " + net::quoted(node_.name) + " (" +
                              net::one_line(node_.type.substr(0, kMostListed)) + "): " + why);
}

void ChainNode::require(bool is_good, std::string_view attribute,
                        std::string_view supported) const {
  if (!is_good) {
    refuse(std::string(attribute) + " must be " + std::string(supported));
  }
}

void ChainNode::check() const {
  // Both are names of ONNX's own operators.
  if (!node_.domain.empty() && node_.domain != "ai.onnx") {
    refuse("operators of " + net::quoted(node_.domain) + " are not supported");
  }
  if (node_.outputs.empty()) {
    refuse("it has no output");
  }
}

const OnnxTensor& ChainNode::constant() const {
  const OnnxAttribute* const value = find("value");
  require(value != nullptr, "a constant", "the attribute value");
  return value->tensor;
}

void ChainNode::take_operands(const std::string& last, const OnnxConstants& constants) {
  bool has_last = false;
  for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
    const std::string& name = node_.inputs[i];
    const auto constant = constants.find(name);
    // Only the first occurrence: the others must be constants.
    // The chain's value is the first or second input of every supported operator.
    if (name == last && !has_last && i < 2) {
      has_last = true;
      is_first_ = i == 0;
    } else if (constant != constants.end()) {
      operands_.push_back(constant->second);
      // ONNX leaves the name of an omitted operand empty.
    } else if (name.empty()) {
      operands_.push_back(nullptr);
    } else {
      refuse("it takes " + net::quoted(name) +
             ", which is not a constant; must be a chain of nodes");
    }
  }
  if (!has_last) {
    refuse("it does not use the output of the node before; must be a chain of nodes");
  }
}

const OnnxTensor& ChainNode::floats(std::size_t index, const char* what, std::size_t rank) const {
  // The rank is checked here, so callers may index the sizes up to it.
  if (!has_operand(index) || operand(index).floats.empty() || operand(index).sizes.size() != rank) {
    refuse(std::string("its ") + what + " must be a constant of floats of " + std::to_string(rank) +
           (rank == 1 ? " size" : " sizes"));
  }
  return operand(index);
}

const OnnxAttribute* ChainNode::find(std::string_view name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

std::int64_t ChainNode::whole(std::string_view name, std::int64_t otherwise) const {
  const OnnxAttribute* const found = find(name);
  return found == nullptr ? otherwise : found->whole;
}

float ChainNode::number(std::string_view name, float otherwise) const {
  const OnnxAttribute* const found = find(name);
  return found == nullptr ? otherwise : found->number;
}

std::string ChainNode::text(std::string_view name, const std::string& otherwise) const {
  const OnnxAttribute* const found = find(name);
  return found == nullptr ? otherwise : found->text;
}

std::vector<std::int64_t> ChainNode::wholes(std::string_view name,
                                            const std::vector<std::int64_t>& otherwise) const {
  const OnnxAttribute* const found = find(name);
  return found == nullptr ? otherwise : found->wholes;
}

bool ChainNode::all_are(std::string_view name, std::int64_t value) const {
  return std::ranges::all_of(wholes(name, {}), [value](std::int64_t x) { return x == value; });
}

}  // namespace disttf::roles
