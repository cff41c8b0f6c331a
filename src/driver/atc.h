// The atc command: ATC's options, messages and exit status.
#pragma once

#include <string>
#include <vector>

namespace ge {

// arguments without the program's name. Tells what it does on standard output, what failed on standard error.
int atc(const std::vector<std::string>& arguments);

}  // namespace ge
