#include "roles/launch/shell/job_update.h"

#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>

#include "net/transport/as_tuple.h"
#include "net/transport/spawn.h"

namespace disttf::roles {
namespace {

using Clock = std::chrono::steady_clock;

// For one task to be back and the run to go on: its data has to be loaded, and perhaps a
// checkpoint.
constexpr std::chrono::seconds kPatience{60};

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) {
    text += (text.empty() ? "" : ", ") + sentence;
  }
  return text;
}

}  // namespace

JobUpdate::JobUpdate(asio::io_context& context, Supervisor& supervisor,
                     std::function<void(const std::string&)> say)
    : supervisor_(supervisor), say_(std::move(say)), wake_(context, Clock::time_point::max()) {}

std::string JobUpdate::begin(const LaunchOptions& wanted, const UpdatePlan& plan) {
  const std::string changes = joined(plan.changes);
  if (plan.restarts) {
    is_under_way_ = true;
    net::spawn(
        wake_.get_executor(), [this, wanted] { return restart_all(wanted); }, net::rethrow);
    return changes + "; all tasks start again from the newest checkpoint in " +
           argument_value(wanted.task_arguments, "train_dir");
  }
  supervisor_.set_options(wanted);
  std::string sentence = changes;
  if (plan.new_workers != 0) {
    supervisor_.add_workers(plan.new_workers);
    sentence += plan.new_workers == 1
                    ? "; 1 worker joins the run"
                    : "; " + std::to_string(plan.new_workers) + " workers join the run";
  }
  if (plan.rolls) {
    is_under_way_ = true;
    net::spawn(
        wake_.get_executor(), [this] { return roll(); }, net::rethrow);
    sentence += "; the tasks start again one after the other";
  }
  return sentence;
}

asio::awaitable<void> JobUpdate::restart_all(LaunchOptions wanted) {
  co_await supervisor_.restart_all(std::move(wanted));
  end();
}

// Whatever the update was.
void JobUpdate::end() {
  is_under_way_ = false;
  if (supervisor_.may_start()) {
    say_("update: done");
  }
}

asio::awaitable<void> JobUpdate::roll() {
  for (std::size_t each = 0; each < supervisor_.tasks().size(); ++each) {
    LocalTask& task = *supervisor_.tasks()[each];
    if (!supervisor_.may_start() || (task.pid < 0 && !task.waits)) {
      continue;
    }
    const std::uint64_t restarts = task.restarts;
    supervisor_.restart(task);
    if (!co_await comes_back(task, restarts)) {
      if (supervisor_.may_start()) {
        say_("update: the run has not gone on within " + std::to_string(kPatience.count()) +
             " s of the restart of " + task.name +
             "; the tasks after it get the new settings when they are started again");
      }
      is_under_way_ = false;
      co_return;
    }
  }
  end();
}

// True when the task's next process lives and the run has gone on with it. A synchronous step that
// was half made without the task may still be completed, and no more: after two it has taken part.
asio::awaitable<bool> JobUpdate::comes_back(const LocalTask& task, std::uint64_t restarts) {
  const Clock::time_point limit = Clock::now() + kPatience;
  first_step_.reset();
  while (supervisor_.may_start() && Clock::now() < limit) {
    const bool is_back = task.pid > 0 && task.restarts > restarts;
    if (!is_back) {
      first_step_.reset();
    } else if (first_step_ && last_step_ >= *first_step_ + 2) {
      co_return true;
    }
    wake_.expires_at(limit);
    co_await wake_.async_wait(net::kAsTuple);
  }
  co_return false;
}

void JobUpdate::on_progress(const Progress& progress) {
  last_step_ = progress.step;
  // A ps that was lost sets the run back.
  if (!first_step_ || progress.step < *first_step_) {
    first_step_ = progress.step;
  }
  wake_.cancel();
}

}  // namespace disttf::roles
