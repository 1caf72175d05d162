"""A Slurm of our own, for a test: munged with a key of its own, slurmctld, and two slurmd on loopback, all in one temporary
folder and on ports that were free. It touches nothing of a Slurm that the machine may have."""
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")

CONFIGURATION = """
ClusterName=toile
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=200000,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=30
MinJobAge=3600
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 State=UNKNOWN
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 State=UNKNOWN
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
"""


class Unavailable(Exception):
    """Why Slurm cannot be started here."""


def free_ports(count):
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


class Slurm:
    def __init__(self, folder):
        self.folder, self.started = folder, []
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        missing = [p for p in PROGRAMS if shutil.which(p) is None]
        if missing:
            raise Unavailable(f"not installed: {', '.join(missing)} (Debian: slurm-wlm, munge)")
        os.makedirs(folder + "/state")
        os.makedirs(folder + "/munge")
        for name in ("node1", "node2"):
            os.makedirs(f"{folder}/spool-{name}")
        os.chmod(folder, 0o755)
        os.chmod(folder + "/munge", 0o711)
        with open(folder + "/munge/key", "wb") as key:
            key.write(secrets.token_bytes(1024))
        os.chmod(folder + "/munge/key", 0o400)
        import getpass
        with open(folder + "/slurm.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=folder, host=socket.gethostname().split(".")[0],
                                            user=getpass.getuser(),
                                            ports=free_ports(3)))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
        self.environment["SLURM_CONF"] = folder + "/slurm.conf"

    def start(self):
        munge = self.folder + "/munge"
        self._daemon(["munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket",
                      f"--log-file={munge}/log", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed",
                      "--num-threads=4"])
        self._until(lambda: os.path.exists(munge + "/socket"), "munged made no socket", 20)
        self._daemon(["slurmctld", "-D", "-i", "-f", self.folder + "/slurm.conf"])
        for name in ("node1", "node2"):
            self._daemon(["slurmd", "-D", "-N", name, "-f", self.folder + "/slurm.conf"])
        self._until(lambda: self.call("sinfo", "-h", "-o", "%T %D").stdout.strip() == "idle 2",
                    "the nodes did not become idle", 40)

    def _daemon(self, command):
        log = open(f"{self.folder}/{command[0]}-{len(self.started)}.out", "wb")
        self.started.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log,
                                             stdin=subprocess.DEVNULL,
                                             start_new_session=True))

    def _until(self, condition, problem, seconds):
        end = time.time() + seconds
        while not condition():
            dead = [p for p in self.started if p.poll() is not None]
            if dead or time.time() > end:
                raise Unavailable(f"{problem}{'; ' + dead[0].args[0] + ' ended' if dead else ''}:\n{self.logs()}")
            time.sleep(0.1)

    def call(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    text += f"-- {name}\n" + file.read()[-1500:]
        return text

    def tasks(self):
        """[(array job, task, state, node, name)] of everything in the queue."""
        lines = self.call("squeue", "-h", "-r", "-o", "%F|%K|%T|%N|%j").stdout.splitlines()
        return [tuple(line.split("|")) for line in lines]

    def stop(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.started):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
