#include "main/command_texts.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace disttf {
namespace {

constexpr FileText kInputDataFile = {"./input_data",
                                     "The data set, or your own converted data: --data_dir."};
constexpr FileText kCheckpointsFile = {"TRAIN_DIR/checkpoint-*",
                                       "Checkpoints, each a directory of safetensors files with an "
                                       "index; incomplete ones do not appear."};
constexpr FileText kCredentialsFile = {"~/.aws/credentials, ~/.aws/config",
                                       "S3 credentials, in profiles."};
constexpr FileText kBestFile = {"TRAIN_DIR/best",
                                "The best checkpoint of an evaluator with --keep_best."};
constexpr FileText kRecordsFile = {"TRAIN_DIR/records/*.jsonl",
                                   "Telemetry of the run, one JSON object a line."};
constexpr FileText kEventsFile = {"LOG_DIR/events.out.tfevents.*", "Summaries for TensorBoard."};
constexpr FileText kSocketFile = {"$XDG_RUNTIME_DIR/disttf/launch-*.sock",
                                  "The control socket of a running launch."};
constexpr FileText kRunSecretFile = {
    "$XDG_RUNTIME_DIR/disttf/launch-*.secret",
    "The secret of a running launch: the --secret_file of a task that joins."};
constexpr FileText kAuthoritiesFile = {
    "/etc/ssl/certs/ca-certificates.crt",
    "The certificate authorities for https downloads, unless --ca_file names others."};
constexpr FileText kRecipeFile = {"FILE.toml",
                                  "Flags, and layers of a model, that --config and --model read."};

std::vector<FileText> files_of_a_task() {
  return {kInputDataFile, kCheckpointsFile, kBestFile,  kRecordsFile,
          kEventsFile,    kAuthoritiesFile, kRecipeFile};
}

std::vector<CommandText> texts_of_tasks() {
  return {
      {.command = Command::kLaunch,
       .words = "",
       .about = "Starts --ps parameter servers and --workers workers as processes of this machine, "
                "trains, prints the result and exits. Restarts lost tasks. A program after -- runs "
                "as every task instead: {job_name} and {task_index} in its words, and TF_CONFIG, "
                "give its role. With --program it is your own training program: each worker "
                "starts it and takes its gradients.",
       .examples = {{"disttf launch --workers 2 --ps 1", "Train on MNIST."},
                    {"disttf launch --dataset digits --train_steps 500 --train_dir run",
                     "Train on the built-in digits; checkpoints stay in run."},
                    {"disttf launch --data table.csv --page",
                     "Train on your own table; a browser shows the progress."},
                    {"disttf launch --workers 2 --program -- python3 train.py",
                     "Train the model of your own program."}},
       .files = {kInputDataFile, kCheckpointsFile, kBestFile, kRecordsFile, kEventsFile,
                 kSocketFile, kRunSecretFile, kAuthoritiesFile, kRecipeFile},
       .reads = {Reads::kDownloads, Reads::kStores, Reads::kPath, Reads::kGpus, Reads::kRuntime,
                 Reads::kTerminal},
       .see_also = {"status", "top", "pods", "predict", "serve", "plot"}},
      {.command = Command::kPs,
       .words = "",
       .about = "Holds a range of the parameters, applies gradients to it and sends it to "
                "trainers, until the chief ends the run.",
       .examples = {{"disttf ps --task_index 0 --ps_hosts a:2222,b:2222 --worker_hosts c:2222",
                     "The first of two."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"worker", "chief", "resolve"}},
      {.command = Command::kWorker,
       .words = "",
       .about = "Computes gradients on its share of the examples and pushes them to all parameter "
                "servers.",
       .examples = {{"disttf worker --task_index 0 --ps_hosts a:2222,b:2222 --worker_hosts c:2222",
                     "The only worker, hence the chief."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores, Reads::kPath},
       .see_also = {"ps", "chief", "resolve"}},
      {.command = Command::kChief,
       .words = "",
       .about = "A trainer that also publishes the configuration, initializes the parameters, "
                "saves, evaluates and prints the result.",
       .examples = {{"disttf chief --ps_hosts a:2222 --worker_hosts c:2222 --chief_host b:2222",
                     "Beside one worker."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores, Reads::kPath},
       .see_also = {"ps", "worker", "evaluator"}},
      {.command = Command::kEvaluator,
       .words = "",
       .about = "Does not affect the run: it may start, exit and restart at any time.",
       .examples = {{"disttf evaluator --train_dir run --keep_best accuracy",
                     "Scores each checkpoint of run, and keeps the best one."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"chief", "checkpoint", "plot"}},
      {.command = Command::kTrain,
       .words = "",
       .about = "The default command.",
       .examples = {{"disttf train --job_name worker --task_index 1 --ps_hosts a:2222 "
                     "--worker_hosts b:2222,c:2222",
                     "As the tutorials' scripts are called."},
                    {"TF_CONFIG='{...}' disttf", "As orchestrators do."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores, Reads::kPath},
       .see_also = {"launch", "resolve", "server"}},
      {.command = Command::kServer,
       .words = "",
       .about = "Waits for a driver, and runs its task of one run after the other.",
       .examples =
           {{"disttf server --job_name ps --task_index 0 --ps_hosts a:2222 --worker_hosts b:2222",
             "A parameter server that waits."}},
       .files = {kInputDataFile, kAuthoritiesFile},
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"plus", "train"}},
      {.command = Command::kPlus,
       .words = "",
       .about = "Checks that each server is reachable and reaches the others; names those that are "
                "missing.",
       .examples = {{"disttf plus --ps_hosts a:2222 --worker_hosts b:2222 --verbose",
                     "Prints 42, and a line for each task."}},
       .reads = {Reads::kCluster},
       .see_also = {"server"}},
      {.command = Command::kDownload,
       .words = "",
       .about = "Files are checked by their size and SHA-256 before they are used.",
       .examples = {{"disttf download --dataset fashion_mnist --data_dir /data",
                     "Fetch it before tasks need it."}},
       .files = {kInputDataFile, kAuthoritiesFile},
       .reads = {Reads::kDownloads, Reads::kStores},
       .see_also = {"data", "train"}},
      {.command = Command::kResolve,
       .words = "[TASK]",
       .about = "Takes the words of a task and shows the source of each fact about the cluster.",
       .examples = {{"disttf resolve --print",
                     "The role and the cluster that train would detect here."}},
       .reads = {Reads::kCluster},
       .see_also = {"train", "render"}},
      {.command = Command::kDoctor,
       .words = "",
       .about = "Tests what a task depends on, as this user and in this container. Exits with 4 if "
                "a task could not use --port, else with 0.",
       .examples = {{"disttf doctor --port 2222",
                     "Can tasks share memory, is the port free, what does seccomp do?"}},
       .files = {kAuthoritiesFile},
       .reads = {Reads::kGpus},
       .see_also = {"resolve", "plus"}},
      {.command = Command::kVerify,
       .words = "",
       .about =
           "Starts the COMMAND after -- as the program of a made-up run, without a cluster, and "
           "checks that it follows docs/program_protocol.md and that its gradients are "
           "bit-identical when it computes them again, in the same process and in another one. "
           "Prints a line for each check; exits with "
           "1 if one has failed.",
       .examples = {{"disttf verify -- python3 train.py", "Is this program fit for a run?"},
                    {"disttf verify --steps 10 --json -- ./program", "The same for a script."}},
       .reads = {Reads::kPath},
       .see_also = {"launch", "worker", "doctor"}},
      {.command = Command::kRender,
       .words = "TARGET",
       .about = "Starts nothing: the file is for the engine's own tools.",
       .examples =
           {{"disttf render kubernetes --image registry/disttf:1 --workers 4 | kubectl apply -f -",
             "A run on Kubernetes."},
            {"disttf render slurm --output job.sh", "A batch script."},
            {"disttf render jobset --program --image registry/mine:1 --gpus 1 -- python3 train.py",
             "Your own program, with a GPU for each worker."}},
       .files = {kRecipeFile},
       .see_also = {"launch", "resolve", "serve"}},
  };
}

std::vector<CommandText> texts_of_models() {
  return {
      {.command = Command::kCheckpoint,
       .words = "ls|verify|show DIR",
       .about = "Only reads; works while a run writes.",
       .examples = {{"disttf checkpoint verify run",
                     "Reads every byte; exit code 3 if one is wrong."}},
       .files = {kCheckpointsFile, kBestFile},
       .reads = {Reads::kStores},
       .see_also = {"launch", "export", "predict"}},
      {.command = Command::kModel,
       .words = "show NAME",
       .about = "Prints layers, output shapes, parameters, and multiply-adds of an example.",
       .examples = {{"disttf model show cnn", "The built-in convolutions."}},
       .files = {kRecipeFile},
       .see_also = {"launch"}},
      {.command = Command::kData,
       .words = "inspect PATH",
       .about = "Converts a table, arrays or a folder of images as training does, and describes it "
                "and what looks wrong.",
       .examples = {{"disttf data inspect iris.csv", "Columns, classes, the first rows."}},
       .files = {kInputDataFile},
       .see_also = {"launch", "download"}},
      {.command = Command::kPredict,
       .words = "MODEL INPUT...",
       .about = "Prints a line for each example: the most likely classes with their probabilities, "
                "or a number.",
       .examples = {{"disttf predict run five.png", "Prints five.png: 5 (0.9987)."}},
       .files = {kCheckpointsFile, kInputDataFile},
       .reads = {Reads::kDownloads, Reads::kStores},
       .see_also = {"serve", "export"}},
      {.command = Command::kServe,
       .words = "DIR",
       .about = "Supports TensorFlow Serving's REST API and the Open Inference Protocol, has a "
                "page to draw on, and loads newer models.",
       .examples = {{"disttf serve run --port 8501",
                     "Then ask http://127.0.0.1:8501/v1/models/default:predict."}},
       .files = {kCheckpointsFile},
       .reads = {Reads::kStores},
       .see_also = {"predict", "render"}},
      {.command = Command::kHealthcheck,
       .words = "URL",
       .about = "Sends one request and exits with 0 if the status is 200. For container engines: "
                "the image contains no other client.",
       .examples = {{"disttf healthcheck http://127.0.0.1:8501/v2/health/ready",
                     "Is the service ready?"}},
       .files = {kAuthoritiesFile},
       .see_also = {"serve", "render"}},
      {.command = Command::kExport,
       .words = "MODEL",
       .about = "Omits what only training needs, such as the optimizer's tensors and dropout.",
       .examples = {{"disttf export run --format onnx", "Writes model.onnx."}},
       .files = {kCheckpointsFile, kInputDataFile},
       .reads = {Reads::kDownloads, Reads::kStores},
       .see_also = {"import", "predict", "serve"}},
      {.command = Command::kImport,
       .words = "FILE",
       .about = "Writes a checkpoint, from which a run with the same --train_dir continues.",
       .examples = {{"disttf import model.onnx --train_dir run",
                     "Then disttf launch --train_dir run."}},
       .files = {kCheckpointsFile, kRecipeFile},
       .see_also = {"export", "launch"}},
      {.command = Command::kLs,
       .words = "PLACE",
       .about = "A directory of a bucket is a common prefix of names.",
       .examples = {{"disttf ls s3://bucket/runs", "The runs in the bucket."}},
       .files = {kCredentialsFile},
       .reads = {Reads::kStores},
       .see_also = {"cp", "checkpoint"}},
      {.command = Command::kCp,
       .words = "FROM TO",
       .about = "Copies directories recursively; a file appears only when it is complete.",
       .examples = {{"disttf cp s3://bucket/run/checkpoint-00000500 copy",
                     "A checkpoint, to this machine."}},
       .files = {kCredentialsFile},
       .reads = {Reads::kStores},
       .see_also = {"ls"}},
      {.command = Command::kPlot,
       .words = "RUN...",
       .about = "Draws unfinished runs up to their present step.",
       .examples = {{"disttf plot run1 run2 --output losses.svg", "Two runs in one picture."}},
       .files = {kRecordsFile},
       .reads = {Reads::kTerminal},
       .see_also = {"show", "top"}},
      {.command = Command::kShow,
       .words = "RUN...",
       .about = "Reads the records of the run, during or after it.",
       .examples = {{"disttf show run", "Its result and its course."}},
       .files = {kRecordsFile},
       .reads = {Reads::kTerminal},
       .see_also = {"plot", "status"}},
      {.command = Command::kCompletion,
       .words = "bash|zsh|fish",
       .about = "Prints a script with which the shell completes commands, flags, values and paths. "
                "The script calls disttf itself, so it is never out of date.",
       .examples = {{"source <(disttf completion bash)",
                     "For this shell; packages install it for all."}},
       .files = {{"/usr/share/bash-completion/completions/disttf",
                  "The package's script for bash."},
                 {"/usr/share/zsh/vendor-completions/_disttf", "For zsh."},
                 {"/usr/share/fish/vendor_completions.d/disttf.fish", "For fish."}}},
      {.command = Command::kLicenses,
       .words = "",
       .about = "Prints the notice of disttf, its licence, and the licence texts of all components "
                "that are linked into the program, with instructions for relinking it with "
                "another C library.",
       .examples = {{"disttf licenses | less", "Read them page by page."}}},
  };
}

std::vector<CommandText> texts_of_management() {
  const std::vector<FileText> files = {kSocketFile};
  const std::vector<Reads> reads = {Reads::kRuntime, Reads::kTerminal};
  return {
      {.command = Command::kStatus,
       .words = "",
       .about = "A row for each task: its address, state and number of restarts.",
       .examples = {{"disttf status --watch", "Again every 2 s, until the run ends."}},
       .files = files,
       .reads = reads,
       .see_also = {"launch", "top", "pods"}},
      {.command = Command::kTop,
       .words = "",
       .about = "Steps, waiting times, memory, CPU and network of each task, and which task delays "
                "the steps.",
       .examples = {{"disttf top --once --json", "Once, for a program."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "trace"}},
      {.command = Command::kTrace,
       .words = "",
       .about = "All tasks measure the stages of the same steps; the chief writes the timeline.",
       .examples = {{"disttf trace --steps 50 -o trace.json",
                     "Then open the file at ui.perfetto.dev."}},
       .files = {kSocketFile, {"TRAIN_DIR/traces/trace-*.json", "The timeline, without -o."}},
       .reads = reads,
       .see_also = {"top"}},
      {.command = Command::kPage,
       .words = "",
       .about = "Needs a launch with --page.",
       .examples = {{"disttf page", "Prints the link."}},
       .files = files,
       .reads = reads,
       .see_also = {"launch", "status"}},
      {.command = Command::kEndpoints,
       .words = "",
       .about = "Lists the addresses of the jobs and the control address.",
       .examples = {{"disttf endpoints", "A row for each job."}},
       .files = files,
       .reads = reads,
       .see_also = {"status"}},
      {.command = Command::kLogs,
       .words = "TASK",
       .about = "The launch keeps the newest 128 KiB of each task.",
       .examples = {{"disttf logs worker-1 -f", "Prints the output and follows it."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "pods"}},
      {.command = Command::kPods,
       .words = "list|restart|replace [TASK]",
       .about = "The launch restarts a task that it stops or kills; the run loses nothing.",
       .examples = {{"disttf pods restart worker-1", "A new process at the same address."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "update"}},
      {.command = Command::kUpdate,
       .words = "",
       .about = "One update runs at a time; disttf status shows its progress.",
       .examples = {{"disttf update --workers 4", "Two more, of an elastic run of two."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "launch"}},
  };
}

constexpr std::array kVariables = {
    VariableText{"TF_CONFIG", Reads::kCluster,
                 "The cluster and this task as JSON, in the format of TensorFlow's distribution "
                 "strategies."},
    VariableText{"TFMESOS_DISTRIBUTED, TFMESOS_PS_HOSTS, TFMESOS_WORKER_HOSTS, TFMESOS_JOB_NAME, "
                 "TFMESOS_TASK_INDEX",
                 Reads::kCluster, "The same from TFMesos."},
    VariableText{"NOMAD_ALLOC_INDEX, NOMAD_GROUP_NAME", Reads::kCluster, "This task, under Nomad."},
    VariableText{"JOB_COMPLETION_INDEX", Reads::kCluster,
                 "This task, in an Indexed Job of Kubernetes."},
    VariableText{"HOSTNAME", Reads::kCluster,
                 "Not the variable but this machine's name: it ends with this task's index in a "
                 "StatefulSet."},
    VariableText{
        "SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE, SLURM_STEP_NUM_TASKS, SLURM_PROCID, "
        "SLURM_NODEID, SLURM_LOCALID, SLURM_GTIDS, SLURM_DISTRIBUTION",
        Reads::kCluster, "The cluster and this task, in a step of Slurm."},
    VariableText{"SLURM_JOB_ID, SLURM_NTASKS, SLURM_NPROCS, SLURM_JOB_NUM_NODES, SLURM_NNODES, "
                 "SLURM_NTASKS_PER_NODE, SLURM_HET_SIZE, SLURM_PACK_SIZE",
                 Reads::kCluster,
                 "A Slurm job of several tasks: a process outside a step warns that it trains "
                 "alone. Heterogeneous steps are rejected."},
    VariableText{
        "PMIX_RANK, PBS_NUM_NODES, PBS_NP, NHOSTS, LSB_DJOB_NUMPROC, AWS_BATCH_JOB_NUM_NODES, "
        "CLOUD_RUN_TASK_COUNT, BATCH_TASK_COUNT, VC_WORKER_NUM, KUBERNETES_SERVICE_HOST",
        Reads::kCluster,
        "Set by engines that start several tasks without addresses: this task warns that it trains "
        "alone."},
    VariableText{"MARATHON_APP_ID, PORT0", Reads::kCluster, "This task, under Marathon."},
    VariableText{
        "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMI_RANK, PMI_SIZE, MV2_COMM_WORLD_RANK, "
        "MV2_COMM_WORLD_SIZE, JSM_NAMESPACE_RANK, JSM_NAMESPACE_SIZE, FLUX_TASK_RANK, "
        "FLUX_JOB_SIZE, HOROVOD_RANK, HOROVOD_SIZE, RANK, WORLD_SIZE, GROUP_RANK, LOCAL_RANK, "
        "LOCAL_WORLD_SIZE",
        Reads::kCluster,
        "Set by launchers that give ranks without addresses: rejected with a message."},
    VariableText{"DISTTF_SECRET", Reads::kCluster,
                 "The secret of all tasks of the run, unless --secret_file or --task_cert is "
                 "given; they connect by TLS then. launch makes one for its tasks."},
    VariableText{"http_proxy, https_proxy, all_proxy, no_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY",
                 Reads::kDownloads, "Proxies for downloads of data sets."},
    VariableText{"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", Reads::kStores,
                 "S3 credentials."},
    VariableText{"AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, HOME", Reads::kStores,
                 "The S3 profile and its files."},
    VariableText{
        "AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME, AWS_ENDPOINT_URL_STS",
        Reads::kStores, "A web identity token that is exchanged for S3 credentials."},
    VariableText{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI, "
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, "
                 "AWS_EC2_METADATA_DISABLED, AWS_EC2_METADATA_SERVICE_ENDPOINT",
                 Reads::kStores,
                 "The server of the container or the machine that gives S3 credentials."},
    VariableText{"AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, "
                 "AWS_CA_BUNDLE",
                 Reads::kStores, "The S3 endpoint, region and certificate authorities."},
    VariableText{"HADOOP_USER_NAME, USER, LOGNAME, HADOOP_PROXY_USER, HADOOP_TOKEN, "
                 "HADOOP_TOKEN_FILE_LOCATION",
                 Reads::kStores, "HDFS user and tokens."},
    VariableText{"HADOOP_CONF_DIR", Reads::kStores,
                 "The directory of hdfs-site.xml, which names the NameNodes."},
    VariableText{"GOOGLE_APPLICATION_CREDENTIALS, CLOUDSDK_CONFIG, GCE_METADATA_HOST, NO_GCE_CHECK",
                 Reads::kStores, "Sources of credentials for gs://."},
    VariableText{"STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", Reads::kStores,
                 "The endpoint of gs://, if it is not Google's."},
    VariableText{"PATH", Reads::kPath, "Where the program after -- is looked up."},
    VariableText{"CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES", Reads::kGpus,
                 "The GPUs that --gpus_per_worker may give to workers: numbers or UUIDs."},
    VariableText{"CUDA_DEVICE_ORDER, CUBLAS_WORKSPACE_CONFIG", Reads::kGpus,
                 "Kept as they are; else workers with GPUs get PCI_BUS_ID and :4096:8."},
    VariableText{"XDG_RUNTIME_DIR", Reads::kRuntime,
                 "The directory of the sockets of running launches; default: a directory of the "
                 "user in /tmp."},
    VariableText{
        "COLUMNS, LINES, TERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG", Reads::kTerminal,
        "The size of the terminal, its colours, and whether it shows characters beyond ASCII."},
};

constexpr std::array kExits = {
    ExitText{0, "Done, or the run had finished already."},
    ExitText{1, "A permanent error that no other code covers."},
    ExitText{2, "A wrong flag or environment variable, or tasks that contradict each other."},
    ExitText{3, "Data, a model or a checkpoint is unavailable or damaged."},
    ExitText{4, "The task's own port is unavailable."},
    ExitText{130, "SIGINT before the run had finished."},
    ExitText{
        138,
        "Other tasks did not connect, or were lost, for longer than a timeout: restart the task."},
    ExitText{143, "SIGTERM before the run had finished."},
};

}  // namespace

const std::vector<CommandText>& command_texts() {
  static const std::vector<CommandText> kTexts = [] {
    std::vector<CommandText> texts = texts_of_tasks();
    for (const auto& more : {texts_of_models(), texts_of_management()}) {
      texts.insert(texts.end(), more.begin(), more.end());
    }
    return texts;
  }();
  return kTexts;
}

const CommandText& text_of(Command command) {
  const auto found = std::ranges::find(command_texts(), command, &CommandText::command);
  if (found == command_texts().end()) {
    // A bug of this program: each new Command needs a text.
    throw std::logic_error("a command has no text for its help");
  }
  return *found;
}

std::span<const VariableText> variable_texts() { return kVariables; }

std::span<const ExitText> exit_texts() { return kExits; }

}  // namespace disttf
