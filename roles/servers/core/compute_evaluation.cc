#include "roles/servers/core/compute_evaluation.h"

#include <utility>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

using Nodes = std::span<const net::ComputeNode>;
using Outcome = std::variant<net::ComputeResult, net::Refusal, AskServer>;

class Evaluation {
 public:
  Evaluation(const Task& task, const std::string& version,
             std::span<const net::ComputeResult> answers)
      : task_(task), version_(version), answers_(answers) {}

  Outcome compute(Nodes nodes) {
    const net::ComputeNode& node = nodes.front();
    // The whole subexpression goes to its task, which computes or forwards the parts below it.
    if (node.task != task_.self) {
      return ask(node.task, nodes.first(net::expression_size(nodes)));
    }
    switch (node.operation) {
      case net::Operation::kAdd:
        return add(nodes.subspan(1));
      case net::Operation::kAsk:
        // kAsk only names the task that evaluates its operand.
        return compute(nodes.subspan(1));
      case net::Operation::kDescribe:
        return net::ComputeResult{.text = version_};
      default:
        return net::ComputeResult{.value = node.value};
    }
  }

  [[nodiscard]] std::vector<std::int64_t> take_sums() { return std::move(sums_); }

 private:
  Outcome ask(const net::TaskId& other, Nodes part) {
    if (other.index >= task_.cluster.tasks_of(other.job).size()) {
      return net::Refusal{.exit_code = kUsage,
                          .sentence = "there is no " + net::to_string(other) +
                                      " in the cluster of " + describe(task_.cluster, task_.self)};
    }
    // The first missing answer ends this evaluation; the caller asks for it and evaluates again.
    if (answers_.empty()) {
      return AskServer{.task = other, .part = part};
    }
    const net::ComputeResult answer = answers_.front();
    answers_ = answers_.subspan(1);
    return answer;
  }

  Outcome add(Nodes operands) {
    // Unsigned, because the operands come from a peer and signed overflow is undefined.
    std::uint64_t sum = 0;
    for (int each = 0; each < 2; ++each) {
      Outcome outcome = compute(operands);
      const auto* const result = std::get_if<net::ComputeResult>(&outcome);
      if (result == nullptr) {
        return outcome;
      }
      sum += static_cast<std::uint64_t>(result->value);
      operands = operands.subspan(net::expression_size(operands));
    }
    sums_.push_back(static_cast<std::int64_t>(sum));
    return net::ComputeResult{.value = sums_.back()};
  }

  const Task& task_;
  const std::string& version_;
  std::span<const net::ComputeResult> answers_;  // not used yet
  std::vector<std::int64_t> sums_;
};

}  // namespace

ComputeStep evaluate(Nodes request, const Task& task, const std::string& version,
                     std::span<const net::ComputeResult> answers) {
  Evaluation evaluation(task, version, answers);
  Outcome outcome = evaluation.compute(request);
  return {.outcome = std::move(outcome), .sums = evaluation.take_sums()};
}

}  // namespace disttf::roles
