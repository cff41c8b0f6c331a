// Bytes of an .om file -> Package. Any bytes may come in; a damaged file gives an error, never a crash.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "om/program.h"

namespace ge::om {

// Checks the header, all lengths and every checksum but the weights'; with check_weights those too.
// folder: where the file lies, for weights outside of it; absent where it came as bytes.
Result<Package> read(std::shared_ptr<const MappedFile> file, bool check_weights, const std::optional<std::string>& folder = {});

// The package as it would be read from its file; the weights are shared, not copied.
Result<Package> reopened(const Package& p);

}  // namespace ge::om
