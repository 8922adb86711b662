#include "tests/sim/ps_io.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "tests/sim/ps_process.h"

namespace disttf::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kDialLimit{2000};

}  // namespace

// ----------------------------------------------------------------------------------------- memory

PsMemory::PsMemory(std::size_t bytes)
    : pages_((bytes + sizeof(Page) - 1) / sizeof(Page)), bytes_(bytes) {}

PsMemory::~PsMemory() {
  take_no_more();
  set_parked(true);
  poll();
}

std::span<std::byte> PsMemory::parameters() const noexcept {
  // The owner of a memory may write to it, as to net::ParameterMemory.
  auto* const pages = const_cast<Page*>(pages_.data());
  return {reinterpret_cast<std::byte*>(pages), bytes_};
}

void PsMemory::set_parked(bool parked) noexcept {
  is_parked_ = parked;
  if (left_ != nullptr) {
    left_->is_backup_parked = parked;
  }
}

void PsMemory::take_no_more() noexcept {
  takes_ = false;
  if (left_ != nullptr) {
    left_->is_taken = false;
  }
}

bool PsMemory::poll() noexcept { return primary_ != nullptr && primary_->poll(); }

void PsMemory::agreed(PsConnection& primary, LeftUpdates& left) {
  if (primary_ != nullptr) {
    primary_->forget_memory();
  }
  primary_ = &primary;
  left_ = &left;
  left.is_agreed = true;
  left.is_taken = takes_;
  left.is_backup_parked = is_parked_;
}

void PsMemory::forget(const PsConnection& primary) noexcept {
  if (primary_ == &primary) {
    left_->is_taken = false;
    primary_ = nullptr;
    left_ = nullptr;
  }
}

// ------------------------------------------------------------------------------------------- time

class SimulatedPsIo::SimulatedAlarm final : public roles::Alarm {
 public:
  explicit SimulatedAlarm(SimulatedPsIo& io)
      : io_(io), all_(io.alarms_), number_(++io.numbers_), waiter_(io.context()) {
    all_->emplace(number_, this);
  }
  ~SimulatedAlarm() override { all_->erase(number_); }
  SimulatedAlarm(const SimulatedAlarm&) = delete;
  SimulatedAlarm& operator=(const SimulatedAlarm&) = delete;

  asio::awaitable<void> wait_until(Time time) override {
    ++waits_;
    if (time != Time::max()) {
      io_.process_.schedule_alarm(time, number_, waits_);
    }
    co_await waiter_.wait();
  }
  void wake() override { waiter_.wake(); }
  void ring(std::uint64_t wait) {
    if (wait == waits_) {
      waiter_.wake();
    }
  }
  [[nodiscard]] bool is_waited_for() const noexcept { return waiter_.has_any(); }
  void drop() { waiter_.drop(); }

 private:
  SimulatedPsIo& io_;
  const std::shared_ptr<Alarms> all_;
  const std::uint64_t number_;
  Waiter waiter_;
  std::uint64_t waits_ = 0;
};

SimulatedPsIo::SimulatedPsIo(PsProcess& process, SimulatedDisk* disk, Sizes sizes)
    : PsIo(sizes), process_(process), disk_(disk) {}

SimulatedPsIo::~SimulatedPsIo() = default;

roles::Clock::time_point SimulatedPsIo::now() const noexcept { return process_.now(); }

std::unique_ptr<roles::Alarm> SimulatedPsIo::make_alarm() {
  return std::make_unique<SimulatedAlarm>(*this);
}

void SimulatedPsIo::alarm_rings(std::uint64_t alarm, std::uint64_t wait) {
  if (const auto found = alarms_->find(alarm); found != alarms_->end()) {
    found->second->ring(wait);
  }
}

void SimulatedPsIo::drop() {
  // A coroutine that ends destroys its alarms, so each turn begins anew.
  const auto first_waiting = [this] {
    return std::ranges::find_if(*alarms_,
                                [](const auto& each) { return each.second->is_waited_for(); });
  };
  for (auto found = first_waiting(); found != alarms_->end(); found = first_waiting()) {
    found->second->drop();
  }
}

std::uint64_t SimulatedPsIo::random() {
  return process_.world().draw(Draw::kBackoff, process_.task().incarnation, ++draws_);
}

// ------------------------------------------------------------------------------------ connections

asio::awaitable<roles::ConnectionPtr> SimulatedPsIo::dial_host(std::size_t range,
                                                               std::uint8_t replica) {
  const roles::Task& task = process_.task();
  const net::TaskId host = roles::host_of_range(task.cluster, range, replica);
  const ConnectionId id = process_.network().dial(process_, host.index,
                                                  {.cluster = {},
                                                   .from = task.self,
                                                   .to = host,
                                                   .purpose = net::ChannelPurpose::kReplica,
                                                   .replica = replica,
                                                   .incarnation = task.incarnation});
  // This host has the other replica of the range.
  net::Hello peer;
  peer.from = host;
  peer.purpose = net::ChannelPurpose::kReplica;
  const auto connection = process_.connect(id, peer, 1U - replica);
  if (!co_await connection->is_welcomed(kDialLimit)) {
    connection->close();
    co_return nullptr;
  }
  co_return connection;
}

bool SimulatedPsIo::offer_updates(net::FrameConnection& backup, const roles::UpdateShape& shape) {
  if (process_.task().transport != roles::Transport::kSharedMemory) {
    return false;
  }
  dynamic_cast<PsConnection&>(backup).offer_memory(roles::most_of_primary(shape));
  return true;
}

std::shared_ptr<net::InPlaceMemory> SimulatedPsIo::make_parameter_memory(std::uint8_t replica,
                                                                         std::size_t floats) {
  const std::shared_ptr<PsMemory> before = memories_[replica].lock();
  if (before && !before->is_given_up()) {
    process_.violate("makes memory for a shard and still takes updates into the old one's");
  }
  if (process_.task().transport != roles::Transport::kSharedMemory) {
    return nullptr;
  }
  const auto made = std::make_shared<PsMemory>(floats * sizeof(float));
  memories_[replica] = made;
  return made;
}

std::shared_ptr<net::InPlaceMemory> SimulatedPsIo::make_snapshot_memory(std::size_t bytes) {
  return bytes == 0 ? nullptr : std::make_shared<PsMemory>(bytes);
}

// ------------------------------------------------------------------------------ threads and files

// A thread runs when its event comes, or never if nothing waits for its end any more.
std::shared_ptr<void> SimulatedPsIo::start_thread(std::function<void()> work) {
  const std::uint64_t number = ++numbers_;
  threads_.emplace(number, std::move(work));
  const std::uint64_t bits =
      process_.world().draw(Draw::kPsShell, process_.task().incarnation, ++draws_);
  process_.schedule_thread(process_.now() + microseconds(bits % 2'000'000), number);
  return {&threads_, [this, number](void*) { threads_.erase(number); }};
}

void SimulatedPsIo::thread_runs(std::uint64_t thread) {
  if (const auto found = threads_.find(thread); found != threads_.end()) {
    const std::function<void()> work = std::move(found->second);
    threads_.erase(found);
    process_.mark(Mark::kMadeOnThread);
    work();
  }
}

// What storage/checkpoint/shell/shard_writer.h does on another thread is done when the event comes.
class SimulatedPsIo::Writer final : public roles::ShardFileWriter {
 public:
  explicit Writer(SimulatedPsIo& io) : io_(io), number_(++io.numbers_) {
    io_.writers_.emplace(number_, this);
  }
  ~Writer() override { io_.writers_.erase(number_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  [[nodiscard]] std::optional<std::string> start(roles::ShardWriteRequest request,
                                                 Done done) override {
    PsProcess& process = io_.process_;
    if (io_.disk_ == nullptr || request_) {
      process.violate("writes a shard that it cannot write");
      return "it cannot";
    }
    request_ = std::move(request);
    done_ = std::move(done);
    const std::uint64_t bits =
        process.world().draw(Draw::kDisk, process.task().incarnation, ++io_.draws_);
    const microseconds time(100 + bits % 20'000);
    process.schedule_writer(process.now() + ((bits >> 32U) % 64 == 0 ? 200 * time : time), number_);
    return std::nullopt;
  }

  [[nodiscard]] bool is_busy() const noexcept override {
    if (request_) {  // the order of a chief that is gone
      io_.process_.mark(Mark::kWriterAwaited);
    }
    return request_.has_value();
  }

  void finish() {
    const roles::ShardWriteRequest request = *std::exchange(request_, std::nullopt);
    const Done done = std::move(done_);
    try {
      done(write(request));
    } catch (const std::exception& error) {
      done(error.what());
    }
  }

 private:
  [[nodiscard]] roles::ShardFile write(const roles::ShardWriteRequest& request) {
    const std::size_t size = request.range.size();
    const std::span<const float> values = request.snapshot->values.span();
    roles::ShardView view{
        .range = request.range, .parameters = values.first(size), .optimizer = {}};
    for (std::size_t tensor = 0; tensor < request.optimizer.size(); ++tensor) {
      view.optimizer.push_back(
          {.name = request.optimizer[tensor], .values = values.subspan((tensor + 1) * size, size)});
    }
    SimulatedDisk& disk = *io_.disk_;
    disk.is_written(request.id.step, view);
    roles::ShardFile file;
    disk.use([&] {
      file =
          disk.open().write_shard(request.id, request.shard, request.shards, view, request.layout);
    });
    disk.shard_was_reported(request.id, file.name);
    return file;
  }

  SimulatedPsIo& io_;
  const std::uint64_t number_;
  std::optional<roles::ShardWriteRequest> request_;
  Done done_;
};

std::unique_ptr<roles::ShardFileWriter> SimulatedPsIo::make_writer() {
  return std::make_unique<Writer>(*this);
}

void SimulatedPsIo::file_is_written(std::uint64_t writer) {
  if (const auto found = writers_.find(writer); found != writers_.end()) {
    found->second->finish();
  }
}

// ------------------------------------------------------------------------------------ the process

void SimulatedPsIo::log(const roles::Note& note) { process_.log(note); }

void SimulatedPsIo::close_port() { process_.close_port(); }

void SimulatedPsIo::stay_idle() { end({.code = roles::kDone, .sentence = "stays idle"}); }

void SimulatedPsIo::end(const roles::EndProcess& end) {
  context().stop();
  process_.end(end);
}

}  // namespace disttf::sim
