"""A one-node Kubernetes on the machine of machine.py: the programs of .ci/engines_build and Debian's containerd.

It uses no registry and no outside network. There is no kube-proxy: the Services of disttf are headless, the API server
reaches webhooks by their Endpoints, and its own Service's address is one of this machine.
"""
import http.client
import json
import os
import re
import ssl
import subprocess
import time

import images
import machine

PATIENCE = 600  # seconds: far more than any machine needs
API, NAME_SERVER, NODE = "10.96.0.1", "10.96.0.10", "10.99.0.1"
SERVICES, PODS = "10.96.0.0/16", "10.88.0.0/16"
API_PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
NODE_PROGRAMS = ("kube-controller-manager", "kube-scheduler", "kubelet", "coredns", "pause")
CRD = "kind: CustomResourceDefinition"
DEBIAN = ("/usr/bin/containerd", "/usr/bin/ctr", "/usr/sbin/runc", "/usr/lib/cni/bridge", "/usr/bin/openssl",
          "/usr/bin/unshare", "/usr/sbin/ip")


def missing_programs(engines, programs):
    """Returns a message that names the missing programs, or None."""
    for program in DEBIAN:
        if not os.access(program, os.X_OK):
            return f"{program} is missing (.ci/install kubernetes)"
    for program in programs:
        if not os.access(engines / program, os.X_OK):
            return f"{engines / program} is missing (.ci/engines_build)"
    return None


class Cluster:
    """A cluster. It starts as an API server without a node, which accepts or rejects objects."""

    def __init__(self, folder, engines):
        self.folder, self.engines = folder, engines
        self.processes = {}
        for each in ("log", "certificates", "cni", "images", "kubelet"):
            (folder / each).mkdir()
        for address in (API, NAME_SERVER, NODE):
            machine.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.write_certificates()
        self.write_files()
        self.start_api_server()

    def start_controllers_and_node(self, image):
        """Starts the controllers and the node, so that pods run. `image`: disttf, which becomes the image disttf:1."""
        self.start_controllers()
        self.start_node()
        self.load_image("docker.io/library/disttf:1", {"disttf": image})
        # Pods of a namespace need its default account, which a controller creates.
        self.wait_for("the default account", lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default"))

    # ------------------------------------------------------------------------------------------- its components

    def write_certificates(self):
        """Writes one authority, one certificate for the API server, and one for all clients, with all rights."""
        def openssl(*words):
            machine.run("openssl", *words, cwd=self.folder / "certificates")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority", "-keyout",
                "authority.key", "-out", "authority.crt")
        for name, subject, extra in (
                ("server", "/CN=kubernetes",
                 f"subjectAltName=IP:{API},IP:{NODE},DNS:kubernetes,DNS:kubernetes.default.svc"),
                ("client", "/O=system:masters/CN=administrator", "extendedKeyUsage=clientAuth")):
            (self.folder / "certificates" / f"{name}.ext").write_text(extra + "\n")
            openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", f"{name}.key", "-out",
                    f"{name}.csr")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "authority.crt", "-CAkey", "authority.key",
                    "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        openssl("genrsa", "-out", "accounts.key", "2048")

        self.trust = ssl.create_default_context(cafile=self.certificate("authority.crt"))
        self.trust.load_cert_chain(self.certificate("client.crt"), self.certificate("client.key"))

    def certificate(self, name):
        return str(self.folder / "certificates" / name)

    def write_files(self):
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "own",
            "contexts": [{"name": "own", "context": {"cluster": "own", "user": "administrator"}}],
            "clusters": [{"name": "own", "cluster": {"server": f"https://{API}",
                                                     "certificate-authority": self.certificate("authority.crt")}}],
            "users": [{"name": "administrator", "user": {"client-certificate": self.certificate("client.crt"),
                                                         "client-key": self.certificate("client.key")}}]}))
        (self.folder / "cni" / "10-bridge.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "pods", "plugins": [
                {"type": "bridge", "bridge": "pods0", "isGateway": True,
                 "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}],
                          "dataDir": str(self.folder / "cni" / "leases")}}]}))
        (self.folder / "containerd.toml").write_text(f"""version = 2
root = "{self.folder}/containerd"
state = "/run/containerd/state"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
disable_apparmor = true
restrict_oom_score_adj = true  # a sandbox would not start under a root that may not lower the score
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{self.folder}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
""")
        (self.folder / "resolv.conf").write_text("")
        (self.folder / "kubelet.json").write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                               "x509": {"clientCAFile": self.certificate("authority.crt")}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs", "cgroupRoot": "/" + machine.group_name(self.folder),
            "clusterDNS": [NAME_SERVER], "clusterDomain": "cluster.local",
            "resolvConf": str(self.folder / "resolv.conf"),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "failSwapOn": False, "enforceNodeAllocatable": [], "localStorageCapacityIsolation": False,
            # A developer's disk may be almost full.
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%",
                             "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%"},
            "imageGCHighThresholdPercent": 100, "makeIPTablesUtilChains": False,
            "volumePluginDir": str(self.folder / "kubelet" / "plugins"), "staticPodPath": ""}))
        (self.folder / "Corefile").write_text(
            f".:53 {{\n  bind {NAME_SERVER}\n  errors\n  kubernetes cluster.local {{\n"
            f"    kubeconfig {self.kubeconfig}\n  }}\n}}\n")

    # ----------------------------------------------------------------------------------------------------- the start

    def start(self, name, program, *flags, **options):
        with open(self.folder / "log" / name, "w", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen([str(program), *flags], stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=subprocess.STDOUT, cwd=self.folder, **options)

    def start_api_server(self):
        self.start("etcd", self.engines / "etcd", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync",
                   "--log-level=warn", "--listen-client-urls=http://127.0.0.1:2379",
                   "--advertise-client-urls=http://127.0.0.1:2379", "--listen-peer-urls=http://127.0.0.1:2380")
        self.start("kube-apiserver", self.engines / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
                   f"--service-cluster-ip-range={SERVICES}", "--secure-port=443", f"--advertise-address={NODE}",
                   f"--tls-cert-file={self.certificate('server.crt')}",
                   f"--tls-private-key-file={self.certificate('server.key')}",
                   f"--client-ca-file={self.certificate('authority.crt')}",
                   f"--kubelet-client-certificate={self.certificate('client.crt')}",
                   f"--kubelet-client-key={self.certificate('client.key')}",
                   "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-key-file={self.certificate('accounts.key')}",
                   f"--service-account-signing-key-file={self.certificate('accounts.key')}",
                   "--kubelet-preferred-address-types=InternalIP", "--authorization-mode=Node,RBAC",
                   "--allow-privileged=true", "--enable-aggregator-routing=true")
        self.wait_for("the API server", lambda: self.ask("/readyz"))

    def start_controllers(self):
        self.start("kube-controller-manager", self.engines / "kube-controller-manager",
                   f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--use-service-account-credentials",
                   f"--service-account-private-key-file={self.certificate('accounts.key')}",
                   f"--root-ca-file={self.certificate('authority.crt')}",
                   f"--cert-dir={self.folder}/certificates", "--bind-address=127.0.0.1")
        self.start("kube-scheduler", self.engines / "kube-scheduler", f"--kubeconfig={self.kubeconfig}",
                   "--leader-elect=false", f"--cert-dir={self.folder}/certificates", "--bind-address=127.0.0.1")

    def start_node(self):
        self.start("containerd", "/usr/bin/containerd", f"--config={self.folder}/containerd.toml")
        self.wait_for("containerd", lambda: subprocess.run(
            ["ctr", "--address=/run/containerd/containerd.sock", "version"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False).returncode == 0)
        self.load_image("localhost/pause:1", {"pause": self.engines / "pause"})
        self.start("coredns", self.engines / "coredns", "-conf", "Corefile")
        self.start("kubelet", self.engines / "kubelet", f"--config={self.folder}/kubelet.json",
                   f"--kubeconfig={self.kubeconfig}", f"--root-dir={self.folder}/kubelet",
                   f"--cert-dir={self.folder}/kubelet/pki", "--hostname-override=node", f"--node-ip={NODE}")
        self.wait_for("the node", self.node_is_ready)

    def node_is_ready(self):
        node = self.get("/api/v1/nodes/node") or {"status": {}}
        return any(each["type"] == "Ready" and each["status"] == "True"
                   for each in node["status"].get("conditions", []))

    def load_image(self, tag, files, user="0"):
        archive = self.folder / "images" / (re.sub(r"\W", "-", tag) + ".tar")
        images.write_image(archive, tag, files, user)
        machine.run("ctr", "--address=/run/containerd/containerd.sock", "--namespace=k8s.io", "images", "import",
                    str(archive))
        archive.unlink()

    def start_training_operator(self):
        self.load_image("localhost/training-operator:1", {"manager": self.engines / "training-operator"})
        text = "\n---\n".join(self.manifest("training-operator"))
        text = re.sub(r"image: \S*training-operator\S*", "image: localhost/training-operator:1", text)
        text = text.replace("        - /manager\n", "        - /manager\n        - --enable-scheme=tfjob\n", 1)
        self.start_operator(text, "kubeflow", "training-operator")

    def start_jobset(self):
        self.load_image("localhost/jobset:1", {"manager": self.engines / "jobset"}, user="65532")
        text = re.sub(r"image: \S*jobset:\S*", "image: localhost/jobset:1",
                      "\n---\n".join(self.manifest("jobset")))
        self.start_operator(text, "jobset-system", "jobset-controller-manager")

    def manifest(self, name):
        """Returns the manifest's objects. Of the training operator's six CRDs, half a megabyte each, only TFJob's."""
        parts = (self.engines / f"{name}.yaml").read_text().split("\n---\n")
        return [part for part in parts
                if CRD not in part or name != "training-operator" or "name: tfjobs.kubeflow.org" in part]

    def define(self, name):
        """Creates an operator's custom resources, without the operator."""
        self.kubectl("apply", "--server-side", "-f", "-",
                     text="\n---\n".join(part for part in self.manifest(name) if CRD in part))

    def start_operator(self, text, namespace, deployment):
        # A CRD is too large for the annotation that a client-side `apply` writes.
        self.kubectl("apply", "--server-side", "-f", "-", text=text)
        self.kubectl("wait", "--for=condition=Available", f"--timeout={PATIENCE}s", f"--namespace={namespace}",
                     f"deployment/{deployment}")

    # ------------------------------------------------------------------------------------------------------ its use

    def kubectl(self, *words, text=None):
        """Runs kubectl and returns its output. Raises when it fails."""
        ran = subprocess.run([str(self.engines / "kubectl"), f"--kubeconfig={self.kubeconfig}",
                              f"--cache-dir={self.folder}/kubectl", *words], input=text or "", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(words)}: {ran.stderr}")
        return ran.stdout

    def ask(self, path):
        """Sends a GET request, for polling: starting kubectl each time would cost more than the request. Returns None
        if the status is not a success, or if the server does not answer."""
        connection = http.client.HTTPSConnection(API, context=self.trust, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            return text if answer.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def get(self, path):
        """Returns an object, or a list of objects; None if there is none."""
        text = self.ask(path)
        return json.loads(text) if text else None

    def wait_for(self, what, condition, limit=PATIENCE):
        """Waits until the condition returns a true value, and returns that value."""
        end = time.monotonic() + limit
        while not (found := condition()):
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} has ended with {process.returncode}, before {what} was there")
            if time.monotonic() > end:
                raise RuntimeError(f"{what}: not within {limit} s")
            time.sleep(0.2)
        return found

    def report(self):
        """Prints information about a failed test."""
        for words in (("get", "all", "--all-namespaces", "-o=wide"),
                      ("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp")):
            try:
                print(self.kubectl(*words))
            except RuntimeError as error:
                print(error)
        print_logs(self.folder)


def print_logs(folder):
    for log in sorted((folder / "log").iterdir()):
        print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-25:]))
