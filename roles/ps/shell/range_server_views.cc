#include <algorithm>
#include <array>
#include <string>

#include "roles/process/log.h"
#include "roles/ps/shell/ps_process.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

}  // namespace

// The chief tells here what this host is to be, and is told what it is.
asio::awaitable<void> RangeServer::serve_view(Connection connection) {
  if (view_channel_) {
    view_channel_->close();  // of a chief that was lost
  }
  view_channel_ = connection;
  send_report();
  while (connection->is_open()) {
    FrameHeader header;
    if (co_await connection->read_header(header, task_.timeouts.silence)) {
      break;
    }
    if (header.kind == FrameKind::kHeartbeat && header.body_size == 0) {
      continue;
    }
    if (header.kind == FrameKind::kShutdown && header.body_size == 0) {
      end(connection);
      continue;
    }
    std::array<std::byte, net::kViewBytes> body{};
    net::View view;
    if (header.kind != FrameKind::kView || header.body_size != body.size()) {
      refuse(connection, header, kError, "a view channel carries views only");
      break;
    }
    if (co_await connection->read_body(body, task_.timeouts.silence)) {
      break;
    }
    if (net::decode(body, view)) {
      refuse(connection, header, kError, "a view that means nothing");
      break;
    }
    take_view(view);
  }
  if (view_channel_ == connection) {
    view_channel_.reset();
  }
}

void RangeServer::take_view(const net::View& view) {
  if (view.number > view_.number && !has_ended()) {
    view_ = view;
    if (view.primary == replica_) {
      become_primary();
    } else {
      become_backup();
    }
  }
  send_report();
}

void RangeServer::become_primary() {
  if (standing_ != net::Standing::kPrimary) {
    const bool goes_on = standing_ == net::Standing::kBackup && complete_;
    standing_ = net::Standing::kPrimary;
    if (primary_) {
      primary_->close();
      primary_.reset();
    }
    complete_ = false;
    // A pair of which nobody is left but this one: the chief is asked before it goes on alone.
    needs_acks_ = view_.paired;
    log_head_ = 0;
    log_acked_ = 0;
    if (goes_on) {
      phase_ = Phase::kTraining;
      log_info("serves range " + std::to_string(index_) + " from now on, at step " +
               std::to_string(shard_->step()) + ", view " + std::to_string(view_.number));
    } else {
      forget_state();
    }
    if (!reaching_) {
      reaching_ = true;
      process_.spawn([this] { return keep_backup(); });
    }
  } else if (!view_.paired) {
    needs_acks_ = false;
  }
  answer_waiting();
}

void RangeServer::become_backup() {
  if (standing_ == net::Standing::kPrimary) {
    log_warning("is no longer to serve range " + std::to_string(index_) + ": the chief chose " +
                describe(task_.cluster, other_host()));
    needs_acks_ = false;
    lose_backup();
    forget_state();
  }
  for (TrainerRecord& record : trainers_.records()) {
    if (record.step) {
      record.step->close();  // it asks the other one then
    }
  }
  standing_ = net::Standing::kBackup;
  if (!view_.paired && complete_) {  // the primary has gone on without this copy
    complete_ = false;
    if (primary_) {
      primary_->close();
      primary_.reset();
    }
  }
}

void RangeServer::forget_state() {
  if (!shard_) {
    return;
  }
  for (TrainerRecord& record : trainers_.records()) {
    if (record.step) {
      record.step->close();  // a reply may still borrow the shard's memory
    }
  }
  shard_.reset();
  answers_.reset();
  config_json_.clear();
  over_ = false;
  lineage_ = task_.incarnation;
  phase_ = Phase::kWaitingForChief;
}

// How long a primary lacks a trainer before it says so: no longer than a lost connection takes to
// be noticed, and in any case well before somebody gives up.
Clock::duration RangeServer::patience() const {
  const Timeouts& timeouts = task_.timeouts;
  return std::min<Clock::duration>(timeouts.silence,
                                   std::min<Clock::duration>(timeouts.worker, timeouts.peer) / 2);
}

net::Report RangeServer::report() const {
  const bool is_primary = standing_ == net::Standing::kPrimary;
  const auto now = Clock::now();
  return {.view = view_.number,
          .standing = standing_,
          .holds = is_primary ? phase_ != Phase::kWaitingForChief : complete_,
          .wants_alone = is_primary && needs_acks_ && !backup_,
          .wants_pair = is_primary && backup_complete_ && !view_.paired,
          .finished = has_ended(),
          .trainers = is_primary ? trainers_.lacked(now, patience()) : trainers_.knocking(now)};
}

void RangeServer::send_report() {
  if (view_channel_) {
    view_channel_->send({.kind = FrameKind::kReport}, net::encode(report()));
  }
}

void RangeServer::end(const Connection& chief) {
  if (has_ended()) {
    return;
  }
  phase_ = Phase::kEnded;
  std::vector<Connection> last;
  if (chief) {
    last.push_back(chief);
  }
  if (standing_ == net::Standing::kPrimary && shard_) {
    log_info("range " + std::to_string(index_) + ": " + std::to_string(shard_->counters().applied) +
             " gradients applied, generation " + std::to_string(generation_));
  }
  if (backup_) {
    backup_->send({.kind = FrameKind::kShutdown});
    backup_->finish();
    last.push_back(std::move(backup_));
    backup_.reset();
  }
  if (view_channel_) {
    send_report();
    last.push_back(view_channel_);
  }
  process_.range_ended(last);
}

}  // namespace disttf::roles
