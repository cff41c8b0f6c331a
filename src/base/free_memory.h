// How much memory this process can still take before others, or it, must give some back.
#pragma once

#include <cstddef>
#include <string>

namespace ge {

// Bytes: what the system has available, at most the limit of the process's memory cgroups; very many where neither says.
size_t free_memory();

// The least limit in bytes that the groups in a /proc/self/cgroup text have under `mount`, their ancestors included.
size_t cgroup_memory(const std::string& proc_self_cgroup, const std::string& mount);

}  // namespace ge
