// The log sink: the library never prints; whoever embeds it receives its lines here.
#pragma once

#include <functional>
#include <string>

namespace ge {

enum class LogLevel { debug = 0, info = 1, warning = 2, error = 3, none = 4 };

using LogSink = std::function<void(LogLevel, const std::string&)>;

// Replaces the process's sink; an empty one drops every line. Safe from any thread.
void set_log_sink(LogSink sink, LogLevel level);
// Drops every line from now on and leaves the sink alone: for the child of a fork.
void silence_log();
LogLevel log_level();
void log(LogLevel level, const std::string& line);

}  // namespace ge
