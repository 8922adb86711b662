#include "main/commands/texts.h"

#include <array>

namespace disttf {
namespace {

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

std::vector<FileText> files_of_a_task() {
  return {kInputDataFile, kCheckpointsFile, kBestFile,  kRecordsFile,
          kEventsFile,    kAuthoritiesFile, kRecipeFile};
}

std::span<const VariableText> variable_texts() { return kVariables; }

std::span<const ExitText> exit_texts() { return kExits; }

}  // namespace disttf
