// The atc command: ATC's options, messages and exit status.
#pragma once

#include <string>
#include <vector>

namespace ge {

struct AtcOutcome {
  int status = 0;
  std::string out, err;
};
// arguments without the program's name.
AtcOutcome atc(const std::vector<std::string>& arguments);

}  // namespace ge
