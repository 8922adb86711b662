#include "main/cluster_flags.h"

#include <CLI/CLI.hpp>

#include "main/flag_values.h"
#include "net/resolvers/resolvers.h"
#include "net/resolvers/tf_config.h"
#include "roles/run/run_config.h"

namespace disttf {
namespace {

constexpr const char* kResolveGroup = "Resolve";

}  // namespace

void add_identity_flags(CLI::App& app, Command command, Flags& flags) {
  if (command == Command::kTrain || command == Command::kServer || command == Command::kResolve) {
    app.add_option("--job_name", flags.job_name,
                   "`train`, `server`: this task's job: `ps`, `worker` or `chief`")
        ->type_name("JOB")
        ->group(kClusterGroup);
  } else {
    // The tutorials pass it to every task; where the command says the same it may be there.
    app.add_option("--job_name", flags.job_name)->group(kHiddenGroup);
  }
  app.add_option("--task_index,--worker_index", flags.task_index,
                 "this task's place in its job's list, from 0; needed where the list has more than "
                 "one entry")
      ->type_name("N")
      ->transform(whole_number(0, net::kMaxTaskIndex))
      ->group(kClusterGroup);
}

void add_list_flags(CLI::App& app, Flags& flags) {
  app.add_option("--ps_hosts", flags.ps_hosts,
                 "the parameter servers, `host:port,host:port`, in order")
      ->type_name("HOST:PORT,...")
      ->group(kClusterGroup);
  app.add_option("--worker_hosts", flags.worker_hosts,
                 "the workers; worker 0 is the chief where no chief is listed")
      ->type_name("HOST:PORT,...")
      ->group(kClusterGroup);
  app.add_option("--chief_host,--chief_hosts", flags.chief_host,
                 "the chief, where it is a task of its own")
      ->type_name("HOST:PORT")
      ->group(kClusterGroup);
}

void add_existing_servers(CLI::App& app, Flags& flags) {
  app.add_flag("--existing_servers", flags.existing_servers,
               "`train`: the lists are of tasks that `disttf server` waits as; [train on them from "
               "here](operations.md#existing-servers)")
      ->transform(boolean())
      ->group(kClusterGroup);
}

void add_find_flags(CLI::App& app, Flags& flags) {
  app.add_option(
         "--resolver", flags.resolver,
         "who is asked for the cluster: `flags`, `tf_config`, `tfmesos`, `nomad`, `indexed_job`, "
         "`slurm`, `marathon`, `statefulset`, `local`; `auto`: all, in this order")
      ->type_name("NAME")
      ->check(one_of(net::resolver_names()))
      ->capture_default_str()
      ->group(kFindGroup);
  app.add_option("--ps,-s", flags.cluster_ps, "parameter servers of the cluster")
      ->type_name("N")
      ->transform(whole_number(1, net::kMaxTaskIndex + 1))
      ->group(kFindGroup);
  app.add_option("--workers,-w", flags.cluster_workers, "workers of the cluster")
      ->type_name("N")
      ->transform(whole_number(0, net::kMaxTaskIndex + 1))
      ->group(kFindGroup);
  app.add_flag("--chief", flags.cluster_chief, "the cluster has a chief task as well")
      ->transform(boolean())
      ->group(kFindGroup);
  app.add_option(
         "--task_hosts", flags.task_hosts,
         "the address of each task: `mnist-{job}-{index}.mnist:2222`; {job}, {index}, {place}, "
         "{port} and {host} [stand for its own](resolvers.md#counts-places-patterns)")
      ->type_name("PATTERN")
      ->group(kFindGroup);
  app.add_option("--port_base", flags.port_base,
                 "Slurm: the port of a node's first task; with `{port}` in `--task_hosts`: of the "
                 "first task of all")
      ->type_name("PORT")
      ->transform(whole_number(1, 65535))
      ->capture_default_str()
      ->group(kFindGroup);
}

void add_max_workers(CLI::App& app, Flags& flags, const char* group) {
  app.add_option("--max_workers", flags.max_workers,
                 "workers that may be there at once: those beyond the lists may join a run of "
                 "tasks that all have this flag [those that are listed]")
      ->type_name("N")
      ->transform(whole_number(1, roles::kMaxTrainers))
      ->group(group);
}

void add_resolve_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--print", flags.print, "all that was found, and which variable or flag said it")
      ->transform(boolean())
      ->group(kResolveGroup);
  app.add_flag("--json", flags.json, "the same as one JSON object")
      ->transform(boolean())
      ->group(kResolveGroup);
}

}  // namespace disttf
