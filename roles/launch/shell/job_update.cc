#include "roles/launch/shell/job_update.h"

#include <chrono>
#include <utility>
#include <vector>

namespace disttf::roles {
namespace {

using Clock = std::chrono::steady_clock;

std::string as_list(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) {
    text += (text.empty() ? "" : ", ") + sentence;
  }
  return text;
}

}  // namespace

JobUpdate::JobUpdate(asio::io_context& context, TaskProcesses& processes,
                     std::function<void(const std::string&)> say)
    : processes_(processes), say_(std::move(say)), timer_(context), roll_(processes.supervisor()) {}

std::string JobUpdate::begin(const LaunchOptions& wanted, const UpdatePlan& plan) {
  const std::string changes = as_list(plan.changes);
  if (plan.restarts) {
    restarts_all_ = true;
    processes_.restart_all(wanted, [this] { on_all_restarted(); });
    return changes + "; all tasks restart from the newest checkpoint in " +
           argument_value(wanted.task_arguments, "train_dir");
  }
  // Before the workers and the rolling restart, whose new processes read these options.
  processes_.set_options(wanted);
  std::string sentence = changes;
  if (plan.new_workers != 0) {
    processes_.add_workers(plan.new_workers);
    sentence += plan.new_workers == 1
                    ? "; 1 worker joins the run"
                    : "; " + std::to_string(plan.new_workers) + " workers join the run";
  }
  if (plan.rolls) {
    roll_.begin(Clock::now());
    act(std::nullopt);
    sentence += "; the tasks restart one after the other";
  }
  return sentence;
}

void JobUpdate::on_all_restarted() {
  restarts_all_ = false;
  // The run may have ended or been stopped meanwhile.
  if (processes_.may_start()) {
    say_("update: done");
  }
}

void JobUpdate::on_progress(const Progress& progress) {
  act(roll_.stepped(progress.step, Clock::now()));
}

void JobUpdate::on_change() {
  if (roll_.is_under_way()) {
    act(roll_.task_changed(Clock::now()));
  }
}

void JobUpdate::act(const std::optional<std::string>& sentence) {
  if (sentence) {
    say_(*sentence);
  }
  // The rolling update restarts tasks through the supervisor, whose effects are carried out here.
  processes_.act();
  if (!roll_.is_under_way()) {
    timer_.cancel();
    return;
  }
  // Also cancels the wait before it, whose handler then gets an error.
  timer_.expires_at(roll_.deadline());
  timer_.async_wait([this](const std::error_code& error) {
    if (!error) {  // else the deadline has changed, or is gone
      act(roll_.time(Clock::now()));
    }
  });
}

}  // namespace disttf::roles
