"""What machine a measurement ran on, and the name of its folder below docs/results."""

import os
import re

SIMULATED = "simulated-clock"  # the folder of what does not depend on a machine
SYNTHESIS = "synthesis"  # the folder of what Yosys makes of the modules in rtl/
NOISE = r"\((r|tm)\)|\b(cpu|processor|intel|amd|core|genuine|[0-9]+-core)\b|@.*|\bwith\b.*"


def memory_bytes():
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemTotal:"):
                return 1024 * int(line.split()[1])
    return None


def describe(probe):
    """The machine, from what `bench kernels --json` said of it and from the operating system."""
    return {"cpu": probe["cpu"], "cores": len(os.sched_getaffinity(0)), "memory_bytes": memory_bytes(),
            "read_bandwidth_gbs": round(probe["read_bandwidth_gbs"], 1),
            "peak_bf16_tflops": round(probe["peak_bf16_tflops"], 2), "isa": probe["isa"], "threads": probe["threads"]}


def title(machine):
    name = " ".join(re.sub(NOISE, " ", machine["cpu"], flags=re.IGNORECASE).split()) or "unnamed"
    isa = machine["isa"].split()[0]
    isa = {"amx": "AMX", "avx512": "AVX-512", "avx2": "AVX2", "scalar": "plain C++"}.get(isa, isa)
    return f"{name}, {isa}, {machine['threads']} thread{'s' if machine['threads'] != 1 else ''}"


def folder(machine):
    """ "EPYC, AVX-512, 2 threads" has the folder epyc-avx512-2-threads. """
    name = title(machine).lower().replace("avx-512", "avx512").replace("plain c++", "scalar")
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")
