// How many threads this process may use: the CPUs it may run on, the quota of its cgroups, what the
// user says in the environment.
#pragma once

#include <string>
#include <string_view>

namespace ge::runtime {

// CPUs in the process's affinity mask, at most its cgroup's quota rounded up. Counted once a
// process.
int available_threads();

// At most available_threads() and GE_NUM_THREADS, or else OMP_NUM_THREADS. Read anew at each call.
int default_threads();

// The quota in CPUs, rounded up, that the groups in a /proc/self/cgroup text have under `mount`
// (/sys/fs/cgroup), their ancestors included; 0 when there is none.
int cgroup_quota(std::string_view proc_self_cgroup, const std::string& mount);

}  // namespace ge::runtime
