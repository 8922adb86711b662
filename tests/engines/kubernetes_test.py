#!/usr/bin/env python3
"""Usage: kubernetes_test.py DISTTF ENGINES MNIST [TEST...]

Tests the output of `disttf render` on a real Kubernetes. Its API server accepts all targets (`accepted`). These targets
are run: kubernetes, statefulset, the chart installed by helm, tfjob under the training operator, jobset under its
controller. Pods start, train, print the result and exit with the weights of `launch` with the same secret. Pods are
deleted and killed during a run; images and flags are wrong; memory is short.
ENGINES: the folder of .ci/engines_build. MNIST: its folder; if it does not exist, the built-in digits are used. The
test prints the states of the pods over time.
Exit code 77: a program is missing (with DISTTF_REQUIRE_ENGINES=1 that is a failure). With DISTTF_KEEP=1 a cluster
whose test has failed keeps running for inspection (nsenter --target PID --mount --net --pid).
"""
import os
import pathlib
import re
import secrets
import signal
import sys
import time
import traceback

import cluster
import machine

PODS = "/api/v1/namespaces/default/pods"
ROOT = pathlib.Path(__file__).resolve().parents[2]
OBJECTS = {"job": "/apis/batch/v1/namespaces/default/jobs", "tfjob": "/apis/kubeflow.org/v1/namespaces/default/tfjobs",
           "jobset": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"}
SIZE = ["--ps=2", "--workers=2", "--chief"]
RUN = ["--train_steps=150", "--print_weights_hash"]
SECRET = "mnist-secret"  # the name of the Kubernetes Secret: all tasks of this test use TLS
# Slow enough that the test can disturb the run before it ends.
SLOWLY = ["--debug_delay_ms=100", "--log_every=1"]
EVERYTHING = ["--namespace=ml", "--cpus=1.5", "--memory=512", "--gpus=1", "--volumes=/srv:/more:ro,runs:/runs",
              "--placement=disk=ssd", "--train_dir=/runs/1", "--serve=2", "--evaluator", "--metrics_port=9400"]
OPERATOR = {"tfjob": "start_training_operator", "jobset": "start_jobset"}


def fail(text):
    raise AssertionError(text)


def with_flag(text, word, flag):
    """Returns the text with one more argument after every occurrence of `word`."""
    return re.sub(rf"^( *)- {word}\n", rf"\1- {word}\n\1- {flag}\n", text, flags=re.MULTILINE)


def kill_task(pod_uid):
    """Sends SIGKILL to the disttf of a pod from outside its namespaces, like the kernel when memory runs out."""
    killed = 0
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if pod_uid in (process / "cgroup").read_text() and (process / "cmdline").read_bytes().startswith(b"/disttf"):
                os.kill(int(process.name), signal.SIGKILL)
                killed += 1
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    if killed != 1:
        fail(f"{killed} processes of disttf in the pod {pod_uid}")


class Tests:
    def __init__(self, folder, program, engines, mnist):
        self.folder, self.program = folder, program
        self.data, self.word = ["--dataset=digits"], "Digits"
        if (mnist / "train-images-idx3-ubyte.gz").exists():
            self.data, self.word = [f"--volumes={mnist.resolve()}:/data:ro", "--data_dir=/data"], "MNIST"
        self.launch_data = [flag for flag in self.data if not flag.startswith("--volumes")]
        if self.word == "MNIST":
            self.launch_data = [f"--data_dir={mnist}"]
        self.began = time.monotonic()
        self.cluster = cluster.Cluster(folder, engines)
        self.say("the API server is ready")
        self.has_node, self.operators = False, set()
        self.hash = None

    def need_node(self):
        if not self.has_node:
            self.has_node = True
            self.cluster.start_controllers_and_node(self.program)
            self.say("the node is ready")
            self.cluster.kubectl("create", "secret", "generic", SECRET,
                                 f"--from-literal=DISTTF_SECRET={secrets.token_hex(32)}")

    def say(self, text):
        print(f"{time.monotonic() - self.began:7.1f} s  {text}", flush=True)

    # --------------------------------------------------------------------------------------------------- runs

    def expected_hash(self):
        """Returns the hash of the weights of `disttf launch` with the same flags."""
        if self.hash is None:
            self.hash = self.hash_in(machine.run(self.program, "launch", *SIZE, *RUN, *self.launch_data,
                                                 cwd=self.folder))
            self.say(f"disttf launch: weights {self.hash}")
        return self.hash

    def hash_in(self, log):
        found = re.search(r"Weights SHA-256: ([0-9a-f]{64})", log)
        return found.group(1) if found else fail(f"no weights in:\n{log}")

    def render(self, target, *flags):
        self.need_node()
        if target in OPERATOR and target not in self.operators:
            getattr(self.cluster, OPERATOR[target])()
            self.operators.add(target)
            self.say(f"the controller of {target} is ready")
        return self.rendered(target, *flags)

    def rendered(self, target, *flags):
        file = self.folder / "rendered.yaml"
        machine.run(self.program, "render", target, "--image=disttf:1", *SIZE, *RUN, *self.data, *flags,
                    f"--secret={SECRET}", f"--output={file}")
        return file.read_text()

    def apply(self, text):
        """Applies the objects and starts the clock of the printed times."""
        self.cluster.kubectl("apply", "-f", "-", text=text)
        self.began, self.seen = time.monotonic(), None
        self.say("kubectl apply")

    def delete(self, text):
        self.cluster.kubectl("delete", "-f", "-", text=text)
        self.cluster.wait_for("the end of all pods", lambda: not self.pods())

    # -------------------------------------------------------------------------------------------------- observations

    def pods(self, part=""):
        every = self.cluster.wait_for("the list of pods", lambda: self.cluster.get(PODS))["items"]
        return [pod for pod in every if part in pod["metadata"]["name"]]

    def pod(self, part):
        """Waits for a pod whose name contains `part` and that is not being deleted, and returns it."""
        return self.cluster.wait_for(part, lambda: next(
            (pod for pod in self.pods(part) if "deletionTimestamp" not in pod["metadata"]), None))

    def look(self):
        """Prints the changes since the last call."""
        now = "  ".join(f"{pod['metadata']['name']} {self.state(pod)}" for pod in self.pods())
        if now != self.seen:
            self.seen = now
            self.say(now or "no pods")

    def state(self, pod):
        """Returns the pod's state like `kubectl get pods`."""
        for status in pod["status"].get("containerStatuses", []):
            for kind in ("waiting", "terminated"):
                if kind in status["state"]:
                    code = status["state"][kind].get("exitCode")
                    return status["state"][kind].get("reason", kind) + (f"({code})" if code else "")
        return "Terminating" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]

    def wait_for(self, what, condition):
        def looked():
            self.look()
            return condition()
        found = self.cluster.wait_for(what, looked)
        self.say(what)
        return found

    def log(self, pod):
        return self.cluster.ask(f"{PODS}/{pod['metadata']['name']}/log") or ""

    def says(self, part, pattern):
        return self.wait_for(f"{part} says {pattern}", lambda: re.search(pattern, self.log(self.pod(part))))

    def expect_result(self, part):
        log = self.log(self.pod(part))
        result = re.search(rf"{self.word} accuracy: \S+", log) or fail(f"{part} has no result:\n{log}")
        weights = self.hash_in(log)
        self.say(f"{part}: {result.group(0)}, weights {weights}")
        if weights != self.expected_hash():
            fail(f"{part} has other weights than `disttf launch`, {self.expected_hash()}")

    def conditions(self, kind, name="mnist"):
        """Returns the types of the conditions that are true."""
        found = self.cluster.get(f"{OBJECTS[kind]}/{name}") or {}
        return [each["type"] for each in found.get("status", {}).get("conditions", []) if each["status"] == "True"]

    def events(self):
        """Returns the operator's events of this TFJob, without those of earlier TFJobs of the same name."""
        own = self.cluster.get(OBJECTS["tfjob"] + "/mnist")["metadata"]["uid"]
        return [each["message"] for each in self.cluster.get("/api/v1/namespaces/default/events")["items"]
                if each["involvedObject"].get("uid") == own]

    def expect_all_end(self, trainers):
        """Expects that every task exits on its own with 0."""
        self.wait_for("all pods have ended", lambda: all(
            pod["status"]["phase"] in ("Succeeded", "Failed") for pod in self.pods()))
        for pod in self.pods():
            if pod["status"]["phase"] != "Succeeded":
                fail(f"{pod['metadata']['name']}: {self.state(pod)}\n{self.log(pod)}")
        for trainer in trainers:
            self.expect_result(trainer)

    # ------------------------------------------------------------------------------------------------------ the tests

    def accepted(self):
        """The API server accepts all rendered objects in a dry run, with no unknown field."""
        for name in ("training-operator", "jobset", "trainer"):
            self.cluster.define(name)
        self.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        self.cluster.kubectl("create", "namespace", "ml")
        for target in ("kubernetes", "statefulset", "tfjob", "jobset", "trainjob"):
            for flags in ((), EVERYTHING):
                said = self.dry_run(self.rendered(target, *flags))
                self.say(f"{target} {' '.join(flags)}\n{said}".rstrip())
            try:
                fail(self.dry_run(re.sub("^( *)containers:", r"\1nonsense: 1\n\g<0>", self.rendered(target),
                                         flags=re.MULTILINE)))
            except RuntimeError as error:
                if "nonsense" not in str(error):
                    raise

    def dry_run(self, text):
        return self.cluster.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-",
                                    text=text)

    def kubernetes(self):
        text = self.render("kubernetes")
        self.apply(text)
        self.wait_for("all Jobs are Complete", lambda: all(
            "Complete" in self.conditions("job", f"mnist-{job}") for job in ("ps", "chief", "worker")))
        self.expect_all_end(("mnist-chief-0", "mnist-worker-0", "mnist-worker-1"))
        self.delete(text)

    def kubernetes_permanent(self):
        """Exit code 2 fails the Job at once, whatever its backoffLimit."""
        text = with_flag(self.render("kubernetes"), "worker", "--no_such_flag")
        self.apply(text)
        self.wait_for("the workers' Job is Failed", lambda: "Failed" in self.conditions("job", "mnist-worker"))
        reasons = [each["message"] for each in
                   self.cluster.get(OBJECTS["job"] + "/mnist-worker")["status"]["conditions"]]
        self.say(reasons[0])
        if not any("exit code 2" in each for each in reasons):
            fail(reasons)
        self.delete(text)

    def kubernetes_deleted(self):
        """Deletes a worker's pod and a ps's pod, like a drained node."""
        text = self.render("kubernetes", *SLOWLY)
        self.apply(text)
        for part in ("mnist-worker-1", "mnist-ps-0"):
            self.delete_in_mid_run(part, "mnist-chief-0")
        self.wait_for("the chief's Job is Complete", lambda: "Complete" in self.conditions("job", "mnist-chief"))
        for trainer in ("mnist-chief-0", "mnist-worker-0", "mnist-worker-1"):
            self.expect_result(trainer)
        self.delete(text)

    def chart(self):
        """Installs a release with helm, waits for its end, and checks that uninstalling leaves nothing behind."""
        self.need_node()
        settings = ["chief=true", "ps=2", "workers=2", f"secret={SECRET}"]
        settings += ["flags." + flag.removeprefix("--") if "=" in flag else f"flags.{flag.removeprefix('--')}=true"
                     for flag in (*RUN, *self.data) if not flag.startswith("--volumes")]
        for number, flag in enumerate(each for each in self.data if each.startswith("--volumes")):
            host, path, _ = flag.removeprefix("--volumes=").split(":")
            settings += [f"volumes[{number}].{key}={value}" for key, value in
                         (("hostPath", host), ("path", path), ("readOnly", "true"))]
        helm = [ROOT / "build/tools/helm/helm", f"--kubeconfig={self.cluster.kubeconfig}"]
        homes = {f"HELM_{kind}_HOME": str(self.folder / "helm" / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        environment = {**os.environ, **homes}
        self.began, self.seen = time.monotonic(), None
        self.say("helm install " + " ".join(settings))
        machine.run(*helm, "install", "mnist", ROOT / "deploy/helm/disttf", "--wait", "--wait-for-jobs", "--timeout=2m",
                    "--set-string=image.tag=1", *(f"--set={each}" for each in settings), env=environment)
        self.say("helm has installed it, and its Jobs are Complete")
        self.expect_all_end(("mnist-chief-0", "mnist-worker-0", "mnist-worker-1"))
        machine.run(*helm, "uninstall", "mnist", "--wait", env=environment)
        self.wait_for("the end of all pods", lambda: not self.pods())
        left = self.cluster.kubectl("get", "jobs,services,secrets", "--selector=app.kubernetes.io/instance=mnist",
                                    "--output=name")
        if left:
            fail(f"helm has left behind:\n{left}")

    def statefulset(self):
        text = self.render("statefulset")
        self.apply(text)
        self.says("mnist-chief-0", "Weights SHA-256")
        for trainer in ("mnist-chief-0", "mnist-worker-0", "mnist-worker-1"):
            self.says(trainer, "Weights SHA-256")
            self.expect_result(trainer)
        for pod in self.pods():
            if self.state(pod) != "Running" or any(each["restartCount"] for each in pod["status"]["containerStatuses"]):
                fail(f"{pod['metadata']['name']} did not stay up: {self.state(pod)}")
        self.delete(text)

    def tfjob(self):
        text = self.render("tfjob")
        self.apply(text)
        self.wait_for("the TFJob is Succeeded", lambda: "Succeeded" in self.conditions("tfjob"))
        self.wait_for("nothing runs any more", lambda: all(
            pod["status"]["phase"] in ("Succeeded", "Failed") for pod in self.pods()))
        print(self.cluster.kubectl("get", "tfjobs,pods"), end="")
        self.expect_result("mnist-chief-0")
        self.delete(text)

    def tfjob_killed(self):
        """Kills a worker and a ps with a signal: code 137."""
        text = self.render("tfjob", *SLOWLY)
        self.apply(text)
        for part in ("mnist-worker-1", "mnist-ps-0"):
            self.wait_for_steps("mnist-chief-0")
            first = self.pod(part)["metadata"]["uid"]
            kill_task(first)
            self.expect_new_pod(part, first, 137)
        self.wait_for("the TFJob is Succeeded", lambda: "Succeeded" in self.conditions("tfjob"))
        self.expect_result("mnist-chief-0")
        self.delete(text)

    def tfjob_deleted(self):
        """The operator treats a running pod that is deleted as failed, whatever its policy, so the TFJob fails.
        Applied again, it resumes from the newest checkpoint."""
        runs = self.folder / "runs"
        runs.mkdir()
        text = self.render("tfjob", *SLOWLY, f"--volumes={runs}:/runs", "--train_dir=/runs/1", "--save_steps=10")
        self.apply(text)
        self.says("mnist-chief-0", "training step 25 done")
        self.cluster.kubectl("delete", "pod", "mnist-worker-1", "--wait=false")
        self.wait_for("the TFJob is Failed", lambda: "Failed" in self.conditions("tfjob"))
        self.delete(text)
        self.apply(text)
        self.wait_for("the TFJob is Succeeded", lambda: "Succeeded" in self.conditions("tfjob"))
        first = re.search(r"done \(global step: (\d+)", self.log(self.pod("mnist-chief-0"))).group(1)
        self.say(f"its first global step was {first}")
        if int(first) <= 10:
            fail("the run did not resume")
        self.expect_result("mnist-chief-0")
        self.delete(text)

    def tfjob_permanent(self):
        """Exit code 2 fails the TFJob at once."""
        text = with_flag(self.render("tfjob"), "train", "--no_such_flag")
        self.apply(text)
        self.wait_for("the TFJob is Failed", lambda: "Failed" in self.conditions("tfjob"))
        events = self.events()
        if not any("exited with code 2" in each for each in events) or any("restarting" in each for each in events):
            fail(events)
        self.delete(text)

    def tfjob_wrong_image(self):
        """The ps do not start. The others wait for --start_timeout, exit with 138, and are restarted."""
        text = self.render("tfjob", "--start_timeout=5").replace("disttf:1", "disttf:none", 1)
        self.apply(text)
        first = self.pod("mnist-worker-0")["metadata"]["uid"]
        self.wait_for("the ps have no image", lambda: any(
            self.state(pod) in ("ErrImagePull", "ImagePullBackOff") for pod in self.pods("mnist-ps")))
        self.expect_new_pod("mnist-worker-0", first, 138)
        self.delete(text)

    def tfjob_little_memory(self):
        text = self.render("tfjob", "--memory=48", "--ps_memory=64")
        self.apply(text)
        first = self.pod("mnist-worker-0")["metadata"]["uid"]
        self.expect_new_pod("mnist-worker-0", first, 137)
        self.delete(text)

    def expect_new_pod(self, name, first, code):
        """Reads the exit code from the first pod itself, because an operator with many events drops some."""
        ends = set()

        def replaced():
            pod = self.pod(name)
            ends.update(re.findall(r"\((\d+)\)", self.state(pod)))
            return pod["metadata"]["uid"] != first
        self.wait_for(f"{name} is another pod", replaced)
        if not {"Restarting", "Running"} & set(self.conditions("tfjob")):
            fail(f"the TFJob is {self.conditions('tfjob')}")
        if str(code) not in ends:
            fail(f"{name} ended with {ends}")

    def jobset(self):
        text = self.render("jobset")
        self.apply(text)
        self.wait_for("the JobSet is Completed", lambda: "Completed" in self.conditions("jobset"))
        print(self.cluster.kubectl("get", "jobsets,jobs,pods"), end="")
        self.expect_all_end(("mnist-chief-0-0", "mnist-worker-0-0", "mnist-worker-0-1"))
        self.delete(text)

    def wait_for_steps(self, chief):
        seen = re.findall(r"training step (\d+) done", self.log(self.pod(chief)))
        step = int(seen[-1]) if seen else 0
        self.says(chief, rf"training step {step + 15} done")

    def delete_in_mid_run(self, part, chief):
        self.wait_for_steps(chief)
        pod = self.pod(part)
        self.cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
        self.wait_for(f"a new pod of {part}",
                      lambda: self.pod(part)["metadata"]["uid"] != pod["metadata"]["uid"])


ALL = ("accepted", "kubernetes", "kubernetes_permanent", "kubernetes_deleted", "chart", "statefulset", "tfjob", "tfjob_killed",
       "tfjob_deleted", "tfjob_permanent", "tfjob_wrong_image", "tfjob_little_memory", "jobset")


def run_all(tests, names):
    for name in names:
        print(f"=== {name}", flush=True)
        try:
            getattr(tests, name)()
        except Exception:
            traceback.print_exc()
            tests.cluster.report()
            if os.environ.get("DISTTF_KEEP") == "1":
                print(f"The cluster runs until it is killed: kubectl --kubeconfig={tests.cluster.kubeconfig}", flush=True)
                signal.pause()
            print(f"=== {name} failed")
            return 1
    print(f"=== {len(names)} tests passed")
    return 0


def main():
    program, engines, mnist = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    names = sys.argv[4:] or ALL
    wanted = [*cluster.API_PROGRAMS, *(cluster.NODE_PROGRAMS if set(names) != {"accepted"} else ())]
    if "chart" in names:
        wanted.append(ROOT / "build/tools/helm/helm")  # made by .ci/tools helm
    wanted += [engine for target, engine in (("tfjob", "training-operator"), ("jobset", "jobset"))
               if any(name.startswith(target) for name in names)]
    why = cluster.missing_programs(engines, wanted)
    if os.geteuid() != 0:
        why = "only root may make namespaces with nodes in them"
    if why:
        if os.environ.get("DISTTF_REQUIRE_ENGINES") == "1":
            print(f"DISTTF_REQUIRE_ENGINES is 1, so this test may not be skipped: {why}")
            return 1
        print(why)
        return 77
    folder = machine.run_on_own_machine()
    try:
        return run_all(Tests(folder, program, engines, mnist), names)
    except Exception:
        traceback.print_exc()
        cluster.print_logs(folder)
        return 1


if __name__ == "__main__":
    if sys.argv[1:2] == [machine.CLEANER]:
        machine.run_on_own_machine()
    sys.exit(main())
