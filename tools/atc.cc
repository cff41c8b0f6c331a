// atc: ATC's command line. Messages and exit status are ATC's.
#include <string>
#include <vector>

#include "driver/atc.h"

int main(int argc, char** argv) { return ge::atc(std::vector<std::string>(argv + 1, argv + argc)); }
