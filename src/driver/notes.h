// The compile report in an .om file, for readers: a file may hold anything there.
#pragma once

#include <nlohmann/json.hpp>

#include "om/program.h"

namespace ge {

// The report as an object that has all that compile.cc writes, of the right types; an empty object where
// the file holds something else.
nlohmann::ordered_json notes_of(const om::Package& package);

}  // namespace ge
