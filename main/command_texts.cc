#include "main/command_texts.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace disttf {
namespace {

constexpr FileText kInputData = {"./input_data",
                                 "The data set, or what was converted of your own: --data_dir."};
constexpr FileText kCheckpoints = {
    "TRAIN_DIR/checkpoint-*",
    "Checkpoints, each a directory of safetensors files with an index, whole or not there."};
constexpr FileText kCredentials = {"~/.aws/credentials, ~/.aws/config",
                                   "Who one is at S3, in profiles."};
constexpr FileText kBest = {"TRAIN_DIR/best",
                            "The best checkpoint, of an evaluator with --keep_best."};
constexpr FileText kRecords = {"TRAIN_DIR/records/*.jsonl",
                               "What was observed of the run, one JSON object a line."};
constexpr FileText kEvents = {"LOG_DIR/events.out.tfevents.*", "What TensorBoard reads."};
constexpr FileText kSocket = {"$XDG_RUNTIME_DIR/disttf/launch-*.sock",
                              "Where a running launch is asked and told."};
constexpr FileText kRunSecret = {"$XDG_RUNTIME_DIR/disttf/launch-*.secret",
                                 "What the tasks of a running launch share: the --secret_file of "
                                 "who joins them."};
constexpr FileText kAuthorities = {"/etc/ssl/certs/ca-certificates.crt",
                                   "The certificate authorities that https downloads are checked "
                                   "by, unless --ca_file names others."};
constexpr FileText kRecipe = {"FILE.toml",
                              "Flags, and layers of a model, that --config and --model read."};

std::vector<FileText> files_of_a_task() {
  return {kInputData, kCheckpoints, kBest, kRecords, kEvents, kAuthorities, kRecipe};
}

std::vector<CommandText> texts_of_tasks() {
  return {
      {.command = Command::kLaunch,
       .words = "",
       .about =
           "Starts --ps parameter servers and --workers workers as processes of this machine, "
           "has them train, prints the result, and ends when they have. Tasks that are lost are "
           "started again. Behind -- follows any program, which then is every task: {job_name} and "
           "{task_index} in its words, and TF_CONFIG, tell it who it is.",
       .examples = {{"disttf launch --workers 2 --ps 1", "Train on MNIST."},
                    {"disttf launch --dataset digits --train_steps 500 --train_dir run",
                     "Train on the built-in digits; what was trained stays in run."},
                    {"disttf launch --data table.csv --page",
                     "Train on your own table; a browser shows how it goes."}},
       .files = {kInputData, kCheckpoints, kBest, kRecords, kEvents, kSocket, kRunSecret,
                 kAuthorities, kRecipe},
       .reads = {Reads::kDownloads, Reads::kStores, Reads::kPath, Reads::kRuntime,
                 Reads::kTerminal},
       .see_also = {"status", "top", "pods", "predict", "serve", "plot"}},
      {.command = Command::kPs,
       .words = "",
       .about =
           "Holds a range of the parameters, applies gradients to it and hands it out, until the "
           "chief says that the run is over.",
       .examples = {{"disttf ps --task_index 0 --ps_hosts a:2222,b:2222 --worker_hosts c:2222",
                     "The first of two."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"worker", "chief", "resolve"}},
      {.command = Command::kWorker,
       .words = "",
       .about = "Computes gradients of its own examples and pushes them to all parameter servers.",
       .examples = {{"disttf worker --task_index 0 --ps_hosts a:2222,b:2222 --worker_hosts c:2222",
                     "The only worker, and so the chief."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"ps", "chief", "resolve"}},
      {.command = Command::kChief,
       .words = "",
       .about =
           "A trainer that besides publishes the configuration, sets the first parameters, saves, "
           "evaluates and prints the result.",
       .examples = {{"disttf chief --ps_hosts a:2222 --worker_hosts c:2222 --chief_host b:2222",
                     "Beside one worker."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"ps", "worker", "evaluator"}},
      {.command = Command::kEvaluator,
       .words = "",
       .about = "Its end is never the run's: it may come, go and be started again at any time.",
       .examples = {{"disttf evaluator --train_dir run --keep_best accuracy",
                     "Scores each checkpoint of run, and keeps the best one."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"chief", "checkpoint", "plot"}},
      {.command = Command::kTrain,
       .words = "",
       .about = "What disttf does where no command is written.",
       .examples = {{"disttf train --job_name worker --task_index 1 --ps_hosts a:2222 "
                     "--worker_hosts b:2222,c:2222",
                     "As the tutorials' scripts are called."},
                    {"TF_CONFIG='{...}' disttf", "As orchestrators do."}},
       .files = files_of_a_task(),
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"launch", "resolve", "server"}},
      {.command = Command::kServer,
       .words = "",
       .about = "Waits, and is the task of one run after the other that a driver trains on it.",
       .examples =
           {{"disttf server --job_name ps --task_index 0 --ps_hosts a:2222 --worker_hosts b:2222",
             "A parameter server that waits."}},
       .files = {kInputData, kAuthorities},
       .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
       .see_also = {"plus", "train"}},
      {.command = Command::kPlus,
       .words = "",
       .about = "Each server is reached, and reaches others; who is missing is named.",
       .examples = {{"disttf plus --ps_hosts a:2222 --worker_hosts b:2222 --verbose",
                     "Prints 42, and a line for each task."}},
       .reads = {Reads::kCluster},
       .see_also = {"server"}},
      {.command = Command::kDownload,
       .words = "",
       .about = "Files are checked by their size and SHA-256 before they are used.",
       .examples = {{"disttf download --dataset fashion_mnist --data_dir /data",
                     "So that tasks find it there."}},
       .files = {kInputData, kAuthorities},
       .reads = {Reads::kDownloads, Reads::kStores},
       .see_also = {"data", "train"}},
      {.command = Command::kResolve,
       .words = "[TASK]",
       .about = "Takes the words of a task, and tells what each fact of the cluster comes from.",
       .examples = {{"disttf resolve --print", "Here, as train would see it."}},
       .reads = {Reads::kCluster},
       .see_also = {"train", "render"}},
      {.command = Command::kDoctor,
       .words = "",
       .about = "Tries each thing that a task depends on, as this user and in this container. It "
                "ends with 4 where a task could not have --port, else with 0.",
       .examples = {{"disttf doctor --port 2222",
                     "Can tasks share memory, is the port free, what does seccomp do?"}},
       .files = {kAuthorities},
       .see_also = {"resolve", "plus"}},
      {.command = Command::kRender,
       .words = "TARGET",
       .about = "Nothing is started: the file is for the engine's own tools.",
       .examples =
           {{"disttf render kubernetes --image registry/disttf:1 --workers 4 | kubectl apply -f -",
             "A run on Kubernetes."},
            {"disttf render slurm --output job.sh", "A batch script."}},
       .files = {kRecipe},
       .see_also = {"launch", "resolve", "serve"}},
  };
}

std::vector<CommandText> texts_of_models() {
  return {
      {.command = Command::kCheckpoint,
       .words = "ls|verify|show DIR",
       .about = "Reads alone, also while a run writes.",
       .examples = {{"disttf checkpoint verify run",
                     "Reads every byte; code 3 where one is wrong."}},
       .files = {kCheckpoints, kBest},
       .reads = {Reads::kStores},
       .see_also = {"launch", "export", "predict"}},
      {.command = Command::kModel,
       .words = "show NAME",
       .about =
           "Layers, the shapes of their outputs, parameters, and multiplications of an example.",
       .examples = {{"disttf model show cnn", "The built-in convolutions."}},
       .files = {kRecipe},
       .see_also = {"launch"}},
      {.command = Command::kData,
       .words = "inspect PATH",
       .about =
           "Converts a table, arrays or a folder of images as training does, and tells what is in "
           "it and what looks wrong.",
       .examples = {{"disttf data inspect iris.csv", "Columns, classes, the first rows."}},
       .files = {kInputData},
       .see_also = {"launch", "download"}},
      {.command = Command::kPredict,
       .words = "MODEL INPUT...",
       .about =
           "A line for each example: the likeliest classes with their probabilities, or a number.",
       .examples = {{"disttf predict run five.png", "Prints five.png: 5 (0.9987)."}},
       .files = {kCheckpoints, kInputData},
       .reads = {Reads::kDownloads, Reads::kStores},
       .see_also = {"serve", "export"}},
      {.command = Command::kServe,
       .words = "DIR",
       .about = "Speaks TensorFlow Serving's REST and the Open Inference Protocol, has a page to "
                "draw on, "
                "and takes the newer model when there is one.",
       .examples = {{"disttf serve run --port 8501",
                     "Then ask http://127.0.0.1:8501/v1/models/default:predict."}},
       .files = {kCheckpoints},
       .reads = {Reads::kStores},
       .see_also = {"predict", "render"}},
      {.command = Command::kHealthcheck,
       .words = "URL",
       .about =
           "Asks a URL once and ends with 0 when the answer is 200: for the engines of containers, "
           "whose image holds no other program that could ask.",
       .examples = {{"disttf healthcheck http://127.0.0.1:8501/v2/health/ready",
                     "Is a service ready to answer?"}},
       .files = {kAuthorities},
       .see_also = {"serve", "render"}},
      {.command = Command::kExport,
       .words = "MODEL",
       .about = "Of what only training needs, such as the optimizer's tensors and dropout, nothing "
                "is written.",
       .examples = {{"disttf export run --format onnx", "Writes model.onnx."}},
       .files = {kCheckpoints, kInputData},
       .reads = {Reads::kDownloads, Reads::kStores},
       .see_also = {"import", "predict", "serve"}},
      {.command = Command::kImport,
       .words = "FILE",
       .about = "Writes a checkpoint, from which a run with the same --train_dir goes on.",
       .examples = {{"disttf import model.onnx --train_dir run",
                     "Then disttf launch --train_dir run."}},
       .files = {kCheckpoints, kRecipe},
       .see_also = {"export", "launch"}},
      {.command = Command::kLs,
       .words = "PLACE",
       .about = "What is called a directory in a bucket is what lies below its name.",
       .examples = {{"disttf ls s3://bucket/runs", "The runs that are kept there."}},
       .files = {kCredentials},
       .reads = {Reads::kStores},
       .see_also = {"cp", "checkpoint"}},
      {.command = Command::kCp,
       .words = "FROM TO",
       .about = "A directory is copied with all that is in it; each file is there whole or not at "
                "all.",
       .examples = {{"disttf cp s3://bucket/run/checkpoint-00000500 copy",
                     "A checkpoint, to this machine."}},
       .files = {kCredentials},
       .reads = {Reads::kStores},
       .see_also = {"ls"}},
      {.command = Command::kPlot,
       .words = "RUN...",
       .about = "Runs that are still going are drawn as far as they are.",
       .examples = {{"disttf plot run1 run2 --output losses.svg", "Two runs in one picture."}},
       .files = {kRecords},
       .reads = {Reads::kTerminal},
       .see_also = {"show", "top"}},
      {.command = Command::kShow,
       .words = "RUN...",
       .about = "Told of what the run has recorded, when it is over, or while it goes on.",
       .examples = {{"disttf show run", "Its result, and how it came to it."}},
       .files = {kRecords},
       .reads = {Reads::kTerminal},
       .see_also = {"plot", "status"}},
      {.command = Command::kCompletion,
       .words = "bash|zsh|fish",
       .about = "Prints a script by which the shell completes commands, flags, values and paths. "
                "It asks "
                "disttf itself, and so never is older than it.",
       .examples = {{"source <(disttf completion bash)",
                     "For this shell; a package has installed it for all."}},
       .files = {{"/usr/share/bash-completion/completions/disttf",
                  "Where the package has put it for bash."},
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
  const std::vector<FileText> files = {kSocket};
  const std::vector<Reads> reads = {Reads::kRuntime, Reads::kTerminal};
  return {
      {.command = Command::kStatus,
       .words = "",
       .about = "A row for each task: where it is, its state, how often it was started again.",
       .examples = {{"disttf status --watch", "Again every 2 s, until the run ends."}},
       .files = files,
       .reads = reads,
       .see_also = {"launch", "top", "pods"}},
      {.command = Command::kTop,
       .words = "",
       .about =
           "Steps, waiting, memory, processor and network of each task, and who is slow at what.",
       .examples = {{"disttf top --once --json", "One look, for a program."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "trace"}},
      {.command = Command::kTrace,
       .words = "",
       .about = "All tasks measure the stages of the same steps; the chief writes what they tell.",
       .examples = {{"disttf trace --steps 50 -o trace.json",
                     "Then open the file at ui.perfetto.dev."}},
       .files = {kSocket, {"TRAIN_DIR/traces/trace-*.json", "Where it is written unless -o says."}},
       .reads = reads,
       .see_also = {"top"}},
      {.command = Command::kPage,
       .words = "",
       .about = "The launch was started with --page.",
       .examples = {{"disttf page", "Prints the link."}},
       .files = files,
       .reads = reads,
       .see_also = {"launch", "status"}},
      {.command = Command::kEndpoints,
       .words = "",
       .about = "Those of its jobs, and that of its control.",
       .examples = {{"disttf endpoints", "A row for each job."}},
       .files = files,
       .reads = reads,
       .see_also = {"status"}},
      {.command = Command::kLogs,
       .words = "TASK",
       .about = "The launch keeps the newest 128 KiB of each task.",
       .examples = {{"disttf logs worker-1 -f", "And what it goes on to print."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "pods"}},
      {.command = Command::kPods,
       .words = "list|restart|replace [TASK]",
       .about = "A task that is told to end, or killed, is started again; the run loses nothing.",
       .examples = {{"disttf pods restart worker-1", "A new process at the same address."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "update"}},
      {.command = Command::kUpdate,
       .words = "",
       .about = "One update at a time; disttf status says how far it is.",
       .examples = {{"disttf update --workers 4", "Two more, of an elastic run of two."}},
       .files = files,
       .reads = reads,
       .see_also = {"status", "launch"}},
  };
}

constexpr std::array kVariables = {
    VariableText{
        "TF_CONFIG", Reads::kCluster,
        "The cluster and this task of it, JSON, as TensorFlow's distribution strategies have it."},
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
        Reads::kCluster, "The cluster and this task of it, in a step of Slurm."},
    VariableText{
        "SLURM_JOB_ID, SLURM_NTASKS, SLURM_NPROCS, SLURM_JOB_NUM_NODES, SLURM_NNODES, "
        "SLURM_NTASKS_PER_NODE, SLURM_HET_SIZE, SLURM_PACK_SIZE",
        Reads::kCluster,
        "A Slurm job of several tasks: a process that is no task of a step warns that it trains "
        "alone. A heterogeneous step is refused."},
    VariableText{
        "PMIX_RANK, PBS_NUM_NODES, PBS_NP, NHOSTS, LSB_DJOB_NUMPROC, AWS_BATCH_JOB_NUM_NODES, "
        "CLOUD_RUN_TASK_COUNT, BATCH_TASK_COUNT, VC_WORKER_NUM, KUBERNETES_SERVICE_HOST",
        Reads::kCluster,
        "Set by engines that start several tasks and tell no addresses: a warning that this task "
        "trains alone."},
    VariableText{"MARATHON_APP_ID, PORT0", Reads::kCluster, "This task, under Marathon."},
    VariableText{
        "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMI_RANK, PMI_SIZE, MV2_COMM_WORLD_RANK, "
        "MV2_COMM_WORLD_SIZE, JSM_NAMESPACE_RANK, JSM_NAMESPACE_SIZE, FLUX_TASK_RANK, "
        "FLUX_JOB_SIZE, HOROVOD_RANK, HOROVOD_SIZE, RANK, WORLD_SIZE, GROUP_RANK, LOCAL_RANK, "
        "LOCAL_WORLD_SIZE",
        Reads::kCluster,
        "Set by launchers that tell ranks and no addresses: refused with a sentence."},
    VariableText{
        "DISTTF_SECRET", Reads::kCluster,
        "What all tasks of the run share, where neither --secret_file nor --task_cert says it: "
        "they speak TLS "
        "with each other then. launch makes one for its tasks."},
    VariableText{"http_proxy, https_proxy, all_proxy, no_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY",
                 Reads::kDownloads, "Through whom data sets are downloaded."},
    VariableText{"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", Reads::kStores,
                 "Who one is at S3."},
    VariableText{"AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, HOME", Reads::kStores,
                 "The same, of a profile: which one, and in which files."},
    VariableText{
        "AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME, AWS_ENDPOINT_URL_STS",
        Reads::kStores, "The same, of a token that is changed for credentials."},
    VariableText{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI, "
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, "
                 "AWS_EC2_METADATA_DISABLED, AWS_EC2_METADATA_SERVICE_ENDPOINT",
                 Reads::kStores, "The same, of a server of the container or the machine."},
    VariableText{"AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, "
                 "AWS_CA_BUNDLE",
                 Reads::kStores, "Where S3 is, and whose certificates it may show."},
    VariableText{"HADOOP_USER_NAME, USER, LOGNAME, HADOOP_PROXY_USER, HADOOP_TOKEN, "
                 "HADOOP_TOKEN_FILE_LOCATION",
                 Reads::kStores, "Who one is at HDFS."},
    VariableText{"HADOOP_CONF_DIR", Reads::kStores,
                 "Where hdfs-site.xml is, which says where NameNodes are."},
    VariableText{"GOOGLE_APPLICATION_CREDENTIALS, CLOUDSDK_CONFIG, GCE_METADATA_HOST, NO_GCE_CHECK",
                 Reads::kStores, "Where the credentials for gs:// are."},
    VariableText{"STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", Reads::kStores,
                 "Where gs:// is, if it is not Google's own."},
    VariableText{"PATH", Reads::kPath, "Where launch looks for the program behind --."},
    VariableText{"XDG_RUNTIME_DIR", Reads::kRuntime,
                 "Below it lies the socket of a running launch; without it, in a directory of the "
                 "user's in /tmp."},
    VariableText{
        "COLUMNS, LINES, TERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG", Reads::kTerminal,
        "The size of the terminal, its colours, and whether it shows characters beyond ASCII."},
};

constexpr std::array kExits = {
    ExitText{0, "Done, or the run had finished already."},
    ExitText{1, "Something that will not mend itself and that no other code names."},
    ExitText{2, "A flag, a variable of the environment, or tasks that contradict each other."},
    ExitText{3, "Data, a model or a checkpoint cannot be had or is damaged."},
    ExitText{4, "The task's own port cannot be had."},
    ExitText{130, "SIGINT before the run had finished."},
    ExitText{138,
             "Other tasks never came, or were lost for longer than a timeout: start it again."},
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
    throw std::logic_error("a command has no text for its help");
  }
  return *found;
}

std::span<const VariableText> variable_texts() { return kVariables; }

std::span<const ExitText> exit_texts() { return kExits; }

}  // namespace disttf
