#include "base/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "base/log.h"
#include "base/text.h"

namespace ge {
namespace {

// A Status as bytes: the number of texts, then each text with its length; a text "ok" alone is success.
std::string packed(const Status& s) {
  std::vector<std::string> texts = {"ok"};
  if (!s.ok()) {
    auto& e = s.error();
    texts = {e.code, e.message, e.node, e.cause, e.fix};
    texts.insert(texts.end(), e.context.begin(), e.context.end());
  }
  std::string out;
  auto number = [&](size_t n) {
    auto v = static_cast<uint32_t>(n);
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  };
  number(texts.size());
  for (auto& t : texts) number(t.size()), out += t;
  return out;
}

bool unpack(const std::string& bytes, Status& s) {
  size_t at = 0;
  auto number = [&](uint32_t& v) {
    if (bytes.size() - at < sizeof v) return false;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    at += sizeof v;
    return true;
  };
  uint32_t count = 0;
  if (!number(count)) return false;
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t size = 0;
    if (!number(size) || bytes.size() - at < size) return false;
    texts.push_back(bytes.substr(at, size));
    at += size;
  }
  if (texts.size() == 1) {
    s = ok();
    return true;
  }
  if (texts.size() < 5) return false;
  Error e{texts[0], texts[1], texts[2], texts[3], texts[4], {}};
  e.context.assign(texts.begin() + 5, texts.end());
  s = std::move(e);
  return true;
}

Status run(const std::function<Status()>& job) {
  try {
    return job();
  } catch (const std::bad_alloc&) {
    return error(code::kOutOfMemory, "There is not enough memory.");
  } catch (const std::exception& e) {
    return error(code::kInternal, e.what());
  }
}

struct Child {
  size_t job;
  pid_t pid;
  int pipe;
  std::string said;
};

[[noreturn]] void be_child(const std::function<Status()>& job, int to, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  silence_log();   // the sink may belong to an interpreter that this process must not enter
  std::string said = packed(run(job));
  for (size_t at = 0; at < said.size();) {
    ssize_t n = write(to, said.data() + at, said.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    at += static_cast<size_t>(n);
  }
  _exit(0);
}

bool start(const std::function<Status()>& job, Child& c) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t parent = getpid();
  c.pid = fork();
  if (c.pid == 0) be_child(job, ends[1], parent);
  close(ends[1]);
  c.pipe = ends[0];
  if (c.pid > 0) return true;
  close(ends[0]);
  return false;
}

// Reads what there is; true: the child is through.
bool read_some(Child& c) {
  char block[4096];
  ssize_t n = read(c.pipe, block, sizeof block);
  if (n < 0 && errno == EINTR) return false;
  if (n > 0) c.said.append(block, static_cast<size_t>(n));
  return n <= 0;
}

Status end(Child& c) {
  close(c.pipe);
  int how = 0;
  pid_t waited;
  do waited = waitpid(c.pid, &how, 0);
  while (waited < 0 && errno == EINTR);
  Status s;
  if (unpack(c.said, s)) return s;
  std::string why = waited == c.pid && WIFSIGNALED(how) ? format("signal {} ended it", WTERMSIG(how)) : "it said nothing";
  return error(code::kInternal, format("A process that compiles was ended: {}.", why), why == format("signal {} ended it", SIGKILL) ? "there may not be enough memory" : "");
}

}  // namespace

std::vector<Status> in_processes(const std::vector<std::function<Status()>>& jobs, int most, const std::function<void(size_t)>& begun) {
  std::vector<Status> out(jobs.size());
  std::vector<Child> running;
  size_t next = 0;
  while (next < jobs.size() || !running.empty()) {
    while (next < jobs.size() && static_cast<int>(running.size()) < std::max(most, 1)) {
      Child c{next, 0, -1, {}};
      if (start(jobs[next], c)) running.push_back(std::move(c));
      else out[next] = run(jobs[next]);
      if (begun) begun(next);
      ++next;
    }
    std::vector<pollfd> waiting;
    for (auto& c : running) waiting.push_back({c.pipe, POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) continue;
    for (size_t i = running.size(); i-- > 0;) {
      if (!waiting[i].revents || !read_some(running[i])) continue;
      out[running[i].job] = end(running[i]);
      running.erase(running.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  return out;
}

}  // namespace ge
