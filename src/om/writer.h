// Package -> bytes of an .om file. Same package, same bytes: nothing of time, place or machine enters.
#pragma once

#include <string>
#include <vector>

#include "om/program.h"

namespace ge::om {

// One self-contained file, whatever p.external_weight says.
std::vector<std::byte> to_bytes(const Package& p);
// The same without weights.
std::vector<std::byte> head_to_bytes(const Package& p);
// The .om file, and the weight files where p.external_weight asks for such. All are written aside and renamed,
// the .om last; where one cannot be written, none is left.
// durable: it is on the disk when this returns. Where p.file holds the weights it becomes the .om file, if it can.
Status write(const Package& p, const std::string& path, bool durable = true);
// One self-contained file likewise, in a file without a name; where p's weights lie in that file they stay.
Status fill(const Package& p, const NamelessFile& file);

}  // namespace ge::om
