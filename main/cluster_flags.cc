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
  // Only these three have no job in their name.
  if (command == Command::kTrain || command == Command::kServer || command == Command::kResolve) {
    app.add_option("--job_name", flags.job_name,
                   "`train`, `server`: the job, `ps`, `worker` or `chief`")
        ->type_name("JOB")
        ->group(kClusterGroup);
  } else {
    // TensorFlow's tutorials pass --job_name to every task: accepted if it agrees with the command.
    app.add_option("--job_name", flags.job_name)->group(kHiddenGroup);
  }
  app.add_option("--task_index,--worker_index", flags.task_index,
                 "index in the job's list, from 0; optional if the list has one entry")
      ->type_name("N")
      ->transform(whole_number(0, net::kMaxTaskIndex))
      ->group(kClusterGroup);
}

void add_list_flags(CLI::App& app, Flags& flags) {
  app.add_option("--ps_hosts", flags.ps_hosts, "parameter servers in order, `host:port,host:port`")
      ->type_name("HOST:PORT,...")
      ->group(kClusterGroup);
  app.add_option("--worker_hosts", flags.worker_hosts,
                 "workers; worker 0 is the chief if none is listed")
      ->type_name("HOST:PORT,...")
      ->group(kClusterGroup);
  app.add_option("--chief_host,--chief_hosts", flags.chief_host, "a separate chief")
      ->type_name("HOST:PORT")
      ->group(kClusterGroup);
}

void add_existing_servers(CLI::App& app, Flags& flags) {
  app.add_flag("--existing_servers", flags.existing_servers,
               "`train`: the lists name running `disttf server` tasks; [drive them from "
               "here](operations.md#existing-servers)")
      ->transform(boolean())
      ->group(kClusterGroup);
}

void add_find_flags(CLI::App& app, Flags& flags) {
  app.add_option(
         "--resolver", flags.resolver,
         "how the cluster is found: `flags`, `tf_config`, `tfmesos`, `nomad`, `indexed_job`, "
         "`slurm`, `marathon`, `statefulset`, `local`; `auto`: tries these in order")
      ->type_name("NAME")
      ->check(one_of(net::resolver_names()))
      ->capture_default_str()
      ->group(kFindGroup);
  app.add_option("--ps,-s", flags.cluster_ps, "number of parameter servers")
      ->type_name("N")
      ->transform(whole_number(1, net::kMaxTaskIndex + 1))
      ->group(kFindGroup);
  app.add_option("--workers,-w", flags.cluster_workers, "number of workers")
      ->type_name("N")
      ->transform(whole_number(0, net::kMaxTaskIndex + 1))
      ->group(kFindGroup);
  app.add_flag("--chief", flags.cluster_chief, "the cluster has a separate chief")
      ->transform(boolean())
      ->group(kFindGroup);
  app.add_option(
         "--task_hosts", flags.task_hosts,
         "address pattern, such as `mnist-{job}-{index}.mnist:2222`; "
         "[fields](resolvers.md#counts-places-patterns): {job}, {index}, {place}, {port}, {host}")
      ->type_name("PATTERN")
      ->group(kFindGroup);
  app.add_option("--port_base", flags.port_base,
                 "port of the first task of each Slurm node; with `{port}` in `--task_hosts`, of "
                 "the first task")
      ->type_name("PORT")
      ->transform(whole_number(1, 65535))
      ->capture_default_str()
      ->group(kFindGroup);
}

void add_max_workers(CLI::App& app, Flags& flags, const char* group) {
  app.add_option("--max_workers", flags.max_workers,
                 "most workers at once; more than are listed may join if all tasks have this flag "
                 "[those that are listed]")
      ->type_name("N")
      ->transform(whole_number(1, roles::kMaxTrainers))
      ->group(group);
}

void add_resolve_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--print", flags.print, "every fact and the variable or flag that it comes from")
      ->transform(boolean())
      ->group(kResolveGroup);
  app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kResolveGroup);
}

}  // namespace disttf
