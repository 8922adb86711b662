// What a simulated ps's shell has instead of a system: see roles/ps/shell/ps_io.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roles/ps/shell/ps_io.h"
#include "tests/sim/disk.h"
#include "tests/sim/ps_connection.h"
#include "tests/sim/waiter.h"

namespace disttf::sim {

class PsProcess;

// Memory of a ps that other processes map.
class PsMemory final : public net::InPlaceMemory {
 public:
  explicit PsMemory(std::size_t bytes);
  ~PsMemory() override;
  PsMemory(const PsMemory&) = delete;
  PsMemory& operator=(const PsMemory&) = delete;

  [[nodiscard]] std::span<std::byte> parameters() const noexcept override;
  void set_parked(bool parked) noexcept override;
  void take_no_more() noexcept override;
  bool poll() noexcept override;

  // The range's primary leaves updates over that connection from now on, and over no other.
  void agreed(PsConnection& primary, LeftUpdates& left);
  // The connection has gone.
  void forget(const PsConnection& primary) noexcept;
  // The ps has given it up, so that nothing more is handed off there.
  [[nodiscard]] bool is_given_up() const noexcept { return !takes_ && is_parked_; }

 private:
  struct Page {
    alignas(4096) std::byte bytes[4096];  // as those of net::SharedMemory
  };
  std::vector<Page> pages_;
  const std::size_t bytes_;
  bool is_parked_ = true;
  bool takes_ = true;
  PsConnection* primary_ = nullptr;
  LeftUpdates* left_ = nullptr;  // of that connection
};

class SimulatedPsIo final : public roles::PsIo {
 public:
  // `disk`: nullptr if there is no --train_dir.
  SimulatedPsIo(PsProcess& process, SimulatedDisk* disk, Sizes sizes);
  ~SimulatedPsIo() override;
  SimulatedPsIo(const SimulatedPsIo&) = delete;
  SimulatedPsIo& operator=(const SimulatedPsIo&) = delete;

  // --- for the process

  // The event that was scheduled for an alarm, a thread, or a writer. A writer may throw
  // KilledAtDisk.
  void alarm_rings(std::uint64_t alarm, std::uint64_t wait);
  void thread_runs(std::uint64_t thread);
  void file_is_written(std::uint64_t writer);
  // Ends all waits for alarms in the middle.
  void drop();

  // --- for the shell

  [[nodiscard]] roles::Clock::time_point now() const noexcept override;
  [[nodiscard]] std::unique_ptr<roles::Alarm> make_alarm() override;
  [[nodiscard]] std::uint64_t random() override;
  asio::awaitable<roles::ConnectionPtr> dial_host(std::size_t range, std::uint8_t replica) override;
  bool offer_updates(net::FrameConnection& backup, const roles::UpdateShape& shape) override;
  void require_memory(std::uint64_t /*bytes*/) override {}
  [[nodiscard]] std::shared_ptr<net::InPlaceMemory> make_parameter_memory(
      std::uint8_t replica, std::size_t floats) override;
  [[nodiscard]] bool streams() const override { return false; }
  [[nodiscard]] std::shared_ptr<net::InPlaceMemory> make_snapshot_memory(
      std::size_t bytes) override;
  [[nodiscard]] std::shared_ptr<void> start_thread(std::function<void()> work) override;
  [[nodiscard]] std::unique_ptr<roles::ShardFileWriter> make_writer() override;
  void log(const roles::Note& note) override;
  void close_port() override;
  void stay_idle() override;
  void end(const roles::EndProcess& end) override;

 private:
  friend class PsProcess;
  class SimulatedAlarm;
  class Writer;

  PsProcess& process_;
  SimulatedDisk* const disk_;
  std::uint64_t numbers_ = 0;  // of the three below
  // Shared: coroutines that the context destroys at its end have alarms, too.
  using Alarms = std::map<std::uint64_t, SimulatedAlarm*>;
  const std::shared_ptr<Alarms> alarms_ = std::make_shared<Alarms>();
  std::map<std::uint64_t, std::function<void()>> threads_;
  std::map<std::uint64_t, Writer*> writers_;
  std::map<std::uint8_t, std::weak_ptr<PsMemory>> memories_;  // the newest of each range
  std::uint64_t draws_ = 0;
};

}  // namespace disttf::sim
