// Profile: times of tasks, collected when somebody asks for them.
#pragma once

#include <cstdint>
#include <vector>

namespace ge::runtime {

class Profile {
 public:
  struct Entry {
    int32_t task;
    double start_us, us;
  };
  std::vector<Entry> entries;
};

}  // namespace ge::runtime
