#include "main/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "main/verify/verified_program.h"
#include "main/verify/verify_report.h"
#include "math/program_layout.h"
#include "roles/trainer/shell/program_source.h"
#include "roles/trainer/shell/trainer.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/stop_signal.h"
#include "run/program/gradient_bits.h"

namespace disttf::roles {
namespace {

// The trainers of the run that WELCOME describes, or its micro-batches: the same rows either way.
constexpr std::size_t kVerifiedSlots = 2;
// The exit code that REFUSED asks for: one with which nothing else ends.
constexpr int kRefusedCode = 7;
// How long a program may take to notice the end of its socket.
constexpr std::chrono::seconds kEndOfSocket{10};
// More than ProgramSession's longest patience, so that its sentence comes first.
constexpr int kLimitTimes = 11;
// Of plain gradient descent; a step is never longer than this.
constexpr double kDescentLength = 0.1;

// A check has failed; the program can be asked further.
struct CheckFailed {
  std::string text;
};

// What a check needs was not found by those before it.
struct NotChecked {
  const char* why;
};

[[noreturn]] void fail_bits(const std::string& difference, const std::string& where) {
  throw CheckFailed{fmt::format(
      "{} (bits differ {}): the program is not deterministic; docs/own_program.md, Determinism",
      difference, where)};
}

// One process of the program, and the task's side of it.
class Subject {
 public:
  // Starts it. REQUIRES: `options` and `stop` outlive it.
  Subject(const VerifyOptions& options, StopSignal& stop, int child_signals, bool is_elastic,
          bool is_spare = false)
      : limit_(options.timeout * kLimitTimes),
        process_(options.program, options.cluster, kSelf, is_spare, limit_, child_signals),
        stop_(stop) {
    trainer_.task.cluster = options.cluster;
    trainer_.task.self = kSelf;
    trainer_.program_fd = process_.take_task_socket();
    trainer_.program_timeout = options.timeout;
    RunConfig& config = trainer_.config;
    config.batch_size = options.batch_size;
    config.seed = options.seed;
    config.train_steps = options.steps;
    config.trainers = kVerifiedSlots;
    if (is_elastic) {
      config.micro_batches = kVerifiedSlots;
      config.min_workers = 1;
    }
  }

  // Waits until it has told its variables.
  void join() { source_.emplace(trainer_, stop_); }
  // Sends WELCOME.
  void welcome() { source_->prepare(source_->complete(trainer_.config)); }
  // It gets the full time for its next answer.
  void allow() { process_.allow(limit_); }
  [[nodiscard]] ProgramSource& source() { return *source_; }
  [[nodiscard]] const math::ParameterLayout& layout() { return source_->layout(); }
  [[nodiscard]] const ProgramHello& hello() { return source_->link().hello(); }
  [[nodiscard]] VerifiedProgram& process() noexcept { return process_; }
  void close_socket() { source_.reset(); }

  // The gradient, whose values are finite.
  [[nodiscard]] std::vector<float> compute(const GradientSource::Batch& batch,
                                           std::span<const float> parameters) {
    allow();
    std::vector<float> gradient(layout().size());
    source_->load(batch);
    const float loss = source_->gradient(parameters, gradient, {}, stages_);
    if (!padding_) {
      padding_ = written_padding(layout(), source_->link().gradient());
    }
    if (!std::isfinite(loss)) {
      throw CheckFailed{fmt::format("the loss of step {} is {}", batch.step, loss)};
    }
    if (const auto found = not_finite(layout(), gradient)) {
      throw CheckFailed{fmt::format("the gradient of step {}: {}", batch.step, *found)};
    }
    return gradient;
  }
  // What it has written between two variables.
  [[nodiscard]] const std::optional<std::string>& padding() const noexcept { return padding_; }

  // Whether it can be asked further.
  [[nodiscard]] bool is_usable() const noexcept { return is_usable_; }
  // It cannot, because of this failure. Returns why, as a sentence.
  [[nodiscard]] std::string give_up(const Failure& failure) {
    is_usable_ = false;
    return failure.exit_code() == kLostPeers && process_.await_end(stop_, kEndOfSocket)
               ? "the program " + process_.end_text()
               : failure.what();
  }

 private:
  static constexpr net::TaskId kSelf{.job = net::Job::kWorker, .index = 0};

  std::chrono::seconds limit_;
  VerifiedProgram process_;
  StopSignal& stop_;
  TrainerOptions trainer_;
  std::optional<ProgramSource> source_;  // ends before the process
  StageClock stages_;
  std::optional<std::string> padding_;
  bool is_usable_ = true;
};

class Verification {
 public:
  explicit Verification(const VerifyOptions& options)
      : options_(options), last_(options.steps - 1), child_signals_(watch_child_signals()) {}

  int run() {
    check_alone();
    if (report_.variables != 0) {  // else there is no client
      check_second_process();
      check_slots();
      check_spare();
    }
    if (options_.as_json) {
      print_result(to_json(report_));
    }
    return report_.is_ok() ? kDone : kError;
  }

 private:
  // Runs a check of the process, and reports it. `body` returns what is well, or throws CheckFailed
  // or Failure.
  void check(const char* name, Subject& subject, const std::function<std::string()>& body) {
    using Result = VerifyCheck::Result;
    if (!subject.is_usable()) {
      return report({name, Result::kLeftOut, "this process of the program has failed before"});
    }
    try {
      report({name, Result::kOk, body()});
    } catch (const NotChecked& left_out) {
      report({name, Result::kLeftOut, left_out.why});
    } catch (const CheckFailed& failed) {
      report({name, Result::kFailed, failed.text});
    } catch (const Failure& failure) {
      stop_.throw_if_stopped();
      report({name, Result::kFailed, subject.give_up(failure)});
    }
  }
  void report(VerifyCheck found) {
    if (!options_.as_json) {
      print_result(to_text(found));
    }
    report_.checks.push_back(std::move(found));
  }
  void require_gradients() const {
    if (gradients_.size() != options_.steps) {
      throw NotChecked{"there are no gradients to compare with"};
    }
  }

  [[nodiscard]] Subject start(bool is_elastic = false, bool is_spare = false) {
    return {options_, stop_, child_signals_.number(), is_elastic, is_spare};
  }
  void join_again(Subject& subject);
  [[nodiscard]] std::string join_first(Subject& subject);
  [[nodiscard]] std::string descend(Subject& subject);
  [[nodiscard]] std::string compare(Subject& subject, std::uint64_t step, const std::string& where);
  [[nodiscard]] std::string evaluate(Subject& subject);
  [[nodiscard]] std::string await_code(Subject& subject, int expected, const char* after);
  [[nodiscard]] std::string close_socket(Subject& subject);
  void check_alone();
  void check_second_process();
  void check_slots();
  void check_spare();

  const VerifyOptions& options_;
  const std::uint64_t last_;  // step
  data::FileDescriptor child_signals_;
  StopSignal stop_;  // after SIGCHLD is blocked: it has a thread
  VerifyReport report_;
  // Of the first process.
  ProgramHello hello_;
  math::ParameterLayout layout_;
  // By step, of slot 0. A check needs those of all steps.
  std::vector<std::vector<float>> parameters_;
  std::vector<std::vector<float>> gradients_;
};

std::string Verification::join_first(Subject& subject) {
  subject.join();
  hello_ = subject.hello();
  layout_ = subject.layout();
  report_.client = hello_.client;
  report_.fingerprint.assign(hello_.fingerprint.begin(), hello_.fingerprint.end());
  report_.variables = layout_.variables().size();
  report_.parameters = layout_.parameter_count();
  return facts_text(report_);
}

// A further process tells the same.
void Verification::join_again(Subject& subject) {
  subject.join();
  if (const auto why = math::layout_difference(subject.layout(), layout_, "the first process's")) {
    throw CheckFailed{"another process has other variables: " + *why};
  }
  if (subject.hello().data != hello_.data) {
    throw CheckFailed{fmt::format("another process has other data: {}, the first one's is {}",
                                  subject.hello().data, hello_.data)};
  }
  if (subject.hello().rows != hello_.rows) {
    throw CheckFailed{
        fmt::format("another process has another number of rows: {}, the first one's "
                    "is {}",
                    rows_text(subject.hello().rows), rows_text(hello_.rows))};
  }
  if (const auto why = fingerprint_difference(subject.hello().fingerprint, hello_.fingerprint);
      !why.empty()) {
    throw CheckFailed{"another process has another fingerprint: " + why};
  }
}

// The steps; between two of them the parameters move, so that the gradients differ.
std::string Verification::descend(Subject& subject) {
  for (std::uint64_t step = 0; step <= last_; ++step) {
    gradients_.push_back(subject.compute({.step = step, .slot = 0}, parameters_.back()));
    if (step == last_) {
      break;
    }
    const std::vector<float>& gradient = gradients_.back();
    double squares = 0;
    for (const float value : gradient) {
      squares += static_cast<double>(value) * value;
    }
    const double rate = kDescentLength / std::max(1.0, std::sqrt(squares));
    std::vector<float> next = parameters_.back();
    for (const math::Variable& variable : layout_.variables()) {
      for (std::size_t at = variable.offset; at < variable.offset + variable.size; ++at) {
        const double value = next[at];
        next[at] = static_cast<float>(
            variable.momentum ? *variable.momentum * value + (1 - *variable.momentum) * gradient[at]
                              : value - rate * variable.rate_factor * gradient[at]);
      }
    }
    parameters_.push_back(std::move(next));
  }
  return fmt::format("finite losses and gradients of {} steps", options_.steps);
}

// Computes slot 0 of the step once more.
std::string Verification::compare(Subject& subject, std::uint64_t step, const std::string& where) {
  require_gradients();
  const std::vector<float> found = subject.compute({.step = step, .slot = 0}, parameters_.at(step));
  if (const auto difference = bit_difference(layout_, gradients_.at(step), found)) {
    fail_bits(*difference, where);
  }
  return "bit-identical";
}

std::string Verification::evaluate(Subject& subject) {
  if (!hello_.evaluates) {
    return "the program has no evaluation function, which is optional";
  }
  subject.allow();
  const math::Evaluation found =
      subject.source().evaluate(options_.steps, parameters_.back()).validation;
  std::vector<std::string> numbers;
  if (!std::isnan(found.loss)) {
    numbers.push_back(fmt::format("loss {:.6g}", found.loss));
  }
  if (found.told_accuracy) {
    numbers.push_back(fmt::format("accuracy {:.6g}", *found.told_accuracy));
  }
  for (const auto& [name, value] : found.told) {
    numbers.push_back(fmt::format("{} {:.6g}", name, value));
  }
  if (numbers.empty()) {
    throw CheckFailed{"EVALUATION has no numbers, and HELLO says that the program evaluates"};
  }
  if (gradients_.size() != options_.steps) {
    return fmt::format("{}", fmt::join(numbers, ", "));
  }
  static_cast<void>(compare(subject, last_, fmt::format("in step {} after an evaluation", last_)));
  return fmt::format("{}; then step {} is bit-identical", fmt::join(numbers, ", "), last_);
}

std::string Verification::await_code(Subject& subject, int expected, const char* after) {
  subject.process().allow(std::chrono::seconds(0));
  const auto ending = subject.process().await_end(stop_, options_.end_timeout);
  if (!ending) {
    throw CheckFailed{
        fmt::format("the program has not exited {} s after {} "
                    "(--program_end_timeout_secs)",
                    options_.end_timeout.count(), after)};
  }
  if (ending->signal != 0 || ending->exit_code != expected) {
    throw CheckFailed{fmt::format("the program {}; after {} it exits with {}",
                                  subject.process().end_text(), after, expected)};
  }
  return fmt::format("exits with {}", expected);
}

std::string Verification::close_socket(Subject& subject) {
  subject.close_socket();
  if (!subject.process().await_end(stop_, kEndOfSocket)) {
    throw CheckFailed{
        fmt::format("the program lives {} s after the end of its socket", kEndOfSocket.count())};
  }
  return "exits by itself";
}

// What one process does.
void Verification::check_alone() {
  Subject subject = start();
  check("variables", subject, [&] { return join_first(subject); });
  check("initial values", subject, [&]() -> std::string {
    subject.welcome();
    subject.allow();
    std::vector<float> initial(layout_.size());
    subject.source().initialize(initial);
    parameters_.push_back(std::move(initial));
    return "finite";
  });
  check("steps", subject, [&] { return descend(subject); });
  check("same step again", subject,
        [&] { return compare(subject, last_, fmt::format("in step {}, computed again", last_)); });
  check("steps going back", subject, [&] {
    return compare(subject, 0, fmt::format("in step 0, computed after step {}", last_));
  });
  check("evaluation", subject, [&] { return evaluate(subject); });
  check("padding", subject, [&]() -> std::string {
    if (subject.padding()) {
      throw CheckFailed{"what lies between two variables stays 0 in the gradient's memory: " +
                        *subject.padding()};
    }
    return "what lies between two variables stays 0";
  });
  check("end", subject, [&] {
    subject.source().end(options_.steps, parameters_.back());
    return await_code(subject, kDone, "END");
  });
}

// A process that was started anew computes the same, and is refused then.
void Verification::check_second_process() {
  Subject subject = start();
  check("second process", subject, [&]() -> std::string {
    join_again(subject);
    subject.welcome();
    require_gradients();
    for (std::uint64_t step = 0; step <= last_; ++step) {
      static_cast<void>(compare(subject, step, fmt::format("in step {}", step)));
    }
    return fmt::format("{} steps are bit-identical", options_.steps);
  });
  check("refusal", subject, [&] {
    subject.source().link().refuse(kRefusedCode, "disttf verify checks how the program is refused");
    return await_code(subject, kRefusedCode, "REFUSED with this number");
  });
}

// An elastic run asks for several batches of one step. This process begins with the last one, as a
// program that takes over begins where the run is.
void Verification::check_slots() {
  Subject subject = start(/*is_elastic=*/true);
  check("several slots", subject, [&] {
    join_again(subject);
    subject.welcome();
    require_gradients();
    static_cast<void>(
        subject.compute({.step = last_, .slot = kVerifiedSlots - 1}, parameters_.at(last_)));
    return compare(subject, last_,
                   fmt::format("in step {}, computed after another slot of it", last_));
  });
  check("closed socket", subject, [&] { return close_socket(subject); });
}

void Verification::check_spare() {
  Subject subject = start(/*is_elastic=*/false, /*is_spare=*/true);
  check("closed socket of a spare", subject, [&] {
    join_again(subject);
    return close_socket(subject);
  });
}

}  // namespace

int run_verify(const VerifyOptions& options) { return Verification(options).run(); }

}  // namespace disttf::roles
