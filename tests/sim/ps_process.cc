#include "tests/sim/ps_process.h"

#include <chrono>
#include <limits>
#include <utility>
#include <variant>

#include "net/wire/messages.h"

namespace disttf::sim {

using net::FrameHeader;
using std::chrono::microseconds;

PsProcess::PsProcess(World& world, Network& network, Checks& checks, SimulatedDisk* disk,
                     roles::Task task, std::size_t node, OnEnd on_end)
    : Process(world, network, std::move(task), node, std::move(on_end)),
      checks_(checks),
      disk_(disk) {}

PsProcess::~PsProcess() { PsProcess::bury(); }

void PsProcess::start() {
  // Small pieces, so that steps are made between two of them. Some make each shard on a thread.
  const bool has_threads = world_.draw(Draw::kPsShell, task_.incarnation, 0) % 4 == 0;
  io_ = std::make_unique<SimulatedPsIo>(
      *this, disk_,
      roles::PsIo::Sizes{.large_shard = has_threads ? 0 : std::numeric_limits<std::uint64_t>::max(),
                         .snapshot_piece = 16});
  server_ = std::make_unique<roles::ParameterServer>(task_, 1, *io_);
  server_->start();
  run();
}

// Coroutines are destroyed where they wait. Connections, alarms and memory belong to them and to
// the server, and use the io.
void PsProcess::bury() {
  if (!io_) {
    return;
  }
  std::vector<std::shared_ptr<PsConnection>> all;
  for (const auto& [id, connection] : connections_) {
    all.push_back(connection->shared_from_this());
  }
  for (const auto& connection : all) {
    connection->drop();
  }
  io_->drop();
  server_.reset();
  all.clear();
  io_.reset();
}

// ----------------------------------------------------------------------------------------- events

std::shared_ptr<PsConnection> PsProcess::connect(ConnectionId id, const net::Hello& hello,
                                                 std::size_t range) {
  auto connection = std::make_shared<PsConnection>(*this, id, hello, range);
  connections_.emplace(id, connection.get());
  return connection;
}

PsConnection* PsProcess::find(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second;
}

void PsProcess::accept(ConnectionId id, const net::Hello& hello) {
  if (!listens()) {
    network_.close(id, *this, /*finish=*/false);
    return;
  }
  server_->spawn([this, id, hello] { return answer(id, hello); });
  run();
}

// As net::Listener does: what the answer closes is noticed once the new connection is served.
asio::awaitable<void> PsProcess::answer(ConnectionId id, net::Hello hello) {
  const auto answer = server_->welcome(hello);
  if (const auto* const refusal = std::get_if<net::Refusal>(&answer)) {
    mark(refusal->replaced_by != 0 ? Mark::kReplacedProcess : Mark::kRefused);
    network_.send(id, *this, net::RefusedFrame{}.to_header(), net::encode(*refusal));
    network_.close(id, *this, /*finish=*/true);
    co_return;
  }
  network_.send(id, *this, net::WelcomeFrame{}.to_header(),
                net::encode(std::get<net::Welcome>(answer)));
  if (hello.purpose == net::ChannelPurpose::kProbe) {
    network_.close(id, *this, /*finish=*/true);
    co_return;
  }
  co_await server_->serve(connect(id, hello, hello.replica));
}

void PsProcess::on_header(ConnectionId id, const Frame& frame) {
  if (PsConnection* const connection = find(id)) {
    connection->header_came(frame);
    run();
  }
}

void PsProcess::on_body(ConnectionId id, const Frame& frame, std::size_t bytes) {
  if (PsConnection* const connection = find(id)) {
    connection->body_came(frame, bytes);
    run();
  }
}

void PsProcess::on_closed(ConnectionId id) {
  if (PsConnection* const connection = find(id)) {
    connection->was_closed();
    run();
  }
}

void PsProcess::terminate() {
  server_->stop(roles::kTerminated, "SIGTERM");
  run();
}

void PsProcess::happen(std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  switch (what) {
    case kAlarm:
      io_->alarm_rings(a, b);
      break;
    case kThread:
      io_->thread_runs(a);
      break;
    case kWritten:
      try {
        io_->file_is_written(a);
      } catch (const KilledAtDisk& killed) {
        perish(killed.silently);
      }
      break;
    case kTimeouts:
      time_out();
      break;
    default:
      break;
  }
  run();
}

void PsProcess::end(const roles::EndProcess& end) {
  if (end.sentence.find("was replaced while it was silent") == 0) {
    mark(Mark::kPsReplacedWhileSilent);
  }
  exit(end.code, end.code == roles::kDone ? "the run is over" : end.sentence);
}

void PsProcess::log(const roles::Note& line) {
  if (!is_alive()) {
    return;
  }
  note((line.level == roles::Note::Level::kWarning ? "warning: " : "") + line.text);
}

// ------------------------------------------------------------------------------------------- time

void PsProcess::watch_timeouts(Time next) {
  if (next < next_timeouts_) {
    next_timeouts_ = next;
    schedule(next, kTimeouts);
  }
}

void PsProcess::time_out() {
  if (now() < next_timeouts_) {
    return;  // the event of a later time, which has been replaced
  }
  const bool was_frozen = net::suspended_for(next_timeouts_, now()) != Duration::zero();
  next_timeouts_ = Time::max();
  for (const auto& [id, connection] : connections_) {
    if (const Time next = connection->time_out(was_frozen); next != Time::max()) {
      watch_timeouts(next);
    }
  }
}

// What the product's event loop does (roles/ps/shell/parameter_server.cc).
void PsProcess::run() {
  if (!is_alive()) {
    return;
  }
  if (is_awake_) {
    static_cast<void>(server_->poll());
  }
  proceed();
  if (is_alive()) {
    static_cast<void>(server_->copy_snapshots());
    park();
  }
}

void PsProcess::proceed() {
  io_->context().restart();
  io_->context().poll();
  if (is_alive()) {
    observe();
    check_effects();
  }
}

// Sometimes it stays awake for a while, so that peers leave frames in memory without a wake.
void PsProcess::park() {
  if (task_.transport != roles::Transport::kSharedMemory || task_.cluster.ps.size() < 2) {
    return;
  }
  const std::uint64_t bits = world_.draw(Draw::kPsAwake, task_.incarnation, ++polls_);
  is_awake_ = bits % 8 == 0;
  server_->set_parked(!is_awake_);
  if (is_awake_) {
    schedule(now() + microseconds((bits >> 8U) % 500), kPoll);
    return;
  }
  while (is_alive() && server_->poll()) {
    proceed();
  }
  for (auto at = connections_.begin(); is_alive() && at != connections_.end(); ++at) {
    at->second->check_sleep();
  }
}

bool PsProcess::shares_snapshots() const {
  return task_.transport == roles::Transport::kSharedMemory && task_.incarnation % 2 == 0;
}

bool PsProcess::lacks_place(ConnectionId id, std::uint64_t update) const {
  return world_.draw(Draw::kPsShell, id, update) % 16 == 0;
}

// ------------------------------------------------------------------------------------------ state

std::string PsProcess::describe_state() const {
  std::string text;
  for (std::size_t replica = 0; replica < core().range_count(); ++replica) {
    const roles::RangeReplica& range = core().range(replica);
    text += (text.empty() ? "range " : "; range ") + std::to_string(range.state().index()) +
            ": replica role " + std::to_string(static_cast<int>(range.host().role)) +
            ", generation " + std::to_string(net::number_of(range.state().generation()));
    if (range.state().shard() != nullptr) {
      text += ", step " + std::to_string(range.state().shard()->step());
    }
    for (const roles::TrainerRecord& record : range.host().trainers.records()) {
      text += record.present() ? (record.waiting ? " W" : " P") : record.done ? " D" : " -";
      if (record.waiting) {
        text += std::to_string(static_cast<int>(net::header_of(record.waiting->request).kind)) +
                "@" + std::to_string(net::header_of(record.waiting->request).step);
      }
    }
  }
  return text;
}

std::string states_of(const std::vector<std::unique_ptr<Process>>& processes) {
  std::string text;
  for (const auto& process : processes) {
    if (process->is_alive()) {
      text += "\n    " + process->name();
      if (const auto* const ps = dynamic_cast<const PsProcess*>(process.get())) {
        text += ": " + ps->describe_state();
      }
    }
  }
  return text;
}

}  // namespace disttf::sim
