#include "roles/servers/core/server_controller.h"

#include <stdexcept>
#include <utility>

#include "net/wire/cluster.h"
#include "net/wire/messages.h"
#include "roles/launch/core/restart_policy.h"

namespace disttf::roles {

using net::FrameKind;

std::variant<net::Welcome, net::Refusal> ServerController::welcome(const net::Hello& hello) const {
  if (hello.purpose != net::ChannelPurpose::kRequest &&
      hello.purpose != net::ChannelPurpose::kProbe) {
    return refusal(kUsage, "is a server, which waits for requests and does not train");
  }
  return net::Welcome{.incarnation = task_.incarnation};
}

net::Refusal ServerController::refusal(ExitCode code, const std::string& why) const {
  return {.exit_code = static_cast<std::uint8_t>(code),
          .sentence = describe(task_.cluster, task_.self) + " " + why};
}

std::optional<net::Refusal> ServerController::requested(ServerConnectionId from,
                                                        const std::string& peer, TimePoint now) {
  if (task_.self.job != net::Job::kPs && task_.self.job != net::Job::kWorker) {
    return refusal(kUsage, "is neither ps nor worker, so it cannot train");
  }
  // The driver itself may ask again on the same channel once its task has ended: that is a restart.
  if ((driver_ != 0 && driver_ != from) || task_runs_ || is_stop_requested_) {
    return refusal(kLostPeers, "is busy");
  }
  try {
    // Before any effect: the driver gets the reason instead of a child that fails at its start.
    net::validate(net::driven(task_.cluster), task_.self);
  } catch (const std::exception& error) {
    return could_not_start(error.what());
  }
  // The first heartbeat is due at once, so that the driver sees the channel as alive.
  if (driver_ == 0) {
    driver_ = from;
    next_beat_ = now;
  }
  task_runs_ = true;
  // The task inherits the port, so the server must stop accepting before it starts.
  effects_.add(CloseServerPort{});
  effects_.add(ServerLine{.text = "training for " + peer});
  effects_.add(StartRequestedTask{});
  return std::nullopt;
}

net::Refusal ServerController::could_not_start(const std::string& why) {
  task_runs_ = false;
  return refusal(kError, "cannot train: " + why);
}

void ServerController::task_ended(const net::TaskEnd& end) {
  task_runs_ = false;
  effects_.add(ServerLine{
      .text = "the task " + to_string(Ending{.exit_code = end.exit_code, .signal = end.signal})});
  if (driver_ != 0) {
    effects_.add(SendToDriver{
        .to = driver_, .header = net::TaskEndedFrame{}.to_header(), .body = net::encode(end)});
  }
  // After SendToDriver: EndServer waits until the driver has received the end.
  if (is_stop_requested_) {
    effects_.add(EndServer{driver_});
    // While the driver is connected the port stays closed: the next request comes on its channel.
  } else if (driver_ == 0) {
    effects_.add(OpenServerPort{});
  }
}

// Handles the end of a driver's connection; other connections have no state here.
void ServerController::closed(ServerConnectionId id) {
  if (!is_driver(id)) {
    return;
  }
  driver_ = 0;
  if (task_runs_) {
    effects_.add(ServerLine{.is_warning = true, .text = "the driver was lost; stopping its task"});
    effects_.add(StopRequestedTask{});  // its end opens the port again
  } else {
    effects_.add(OpenServerPort{});
  }
}

void ServerController::stop() {
  is_stop_requested_ = true;
  if (task_runs_) {
    effects_.add(StopRequestedTask{});
  } else {
    effects_.add(EndServer{});
  }
}

void ServerController::time(TimePoint now) {
  if (driver_ != 0 && now >= next_beat_) {
    next_beat_ = now + kHeartbeatInterval;
    effects_.add(SendToDriver{.to = driver_, .header = net::Heartbeat{}.to_header(), .body = {}});
  }
}

}  // namespace disttf::roles
