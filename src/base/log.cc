#include "base/log.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace ge {
namespace {
std::mutex mutex;
std::shared_ptr<LogSink> current;
std::atomic<LogLevel> threshold{LogLevel::none};
}  // namespace

void set_log_sink(LogSink sink, LogLevel level) {
  std::lock_guard lock(mutex);
  current = sink ? std::make_shared<LogSink>(std::move(sink)) : nullptr;
  threshold = current ? level : LogLevel::none;
}

void silence_log() { threshold = LogLevel::none; }

LogLevel log_level() { return threshold.load(std::memory_order_relaxed); }

void log(LogLevel level, const std::string& line) {
  if (level < log_level()) return;
  std::shared_ptr<LogSink> sink;
  {
    std::lock_guard lock(mutex);
    sink = current;
  }
  if (sink) (*sink)(level, line);
}

}  // namespace ge
