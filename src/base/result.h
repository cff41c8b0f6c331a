// Result<T> and Status: how every layer says that its input was wrong.
//
// An Error carries what a user sees: a code (ATC's where one exists), the node, the cause and what to
// do, plus a chain of contexts added on the way up. GE_CHECK is for our own bugs only. A rule that
// does not apply is not an error: that is a Verdict (verdict.h).
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ge {

// Codes that users see; the numbers are ATC's where ATC has the case.
namespace code {
inline constexpr const char* kInvalidValue = "E10001";     // an option or argument has a wrong value
inline constexpr const char* kInputShape = "E10002";       // --input_shape cannot be read
inline constexpr const char* kUnknownName = "E10016";      // a name that the model does not have
inline constexpr const char* kExclusive = "E10056";        // options that exclude each other
inline constexpr const char* kNoFile = "E10410";           // file does not exist
inline constexpr const char* kOpen = "E13001";             // file cannot be opened
inline constexpr const char* kRead = "E13003";             // file cannot be read
inline constexpr const char* kWrite = "E13004";            // file cannot be written
inline constexpr const char* kParse = "E13005";            // file is damaged or of another kind
inline constexpr const char* kTooLarge = "E13023";         // beyond a limit of format or machine
inline constexpr const char* kBadOp = "E14001";            // a node's inputs or attributes are wrong
inline constexpr const char* kBadGraph = "E16001";         // cycle, dangling or missing value
inline constexpr const char* kUnsupportedOp = "E19010";    // operator or opset not known
inline constexpr const char* kInputMismatch = "E40001";    // inputs of a run do not fit the model
inline constexpr const char* kRunFailed = "E40002";        // a kernel met data that it must refuse
inline constexpr const char* kOutOfMemory = "E40003";
inline constexpr const char* kInternal = "E19999";
}  // namespace code

struct Error {
  std::string code;
  std::string message;               // one sentence: what is wrong
  std::string node;                  // the node concerned, or empty
  std::string cause;                 // why, or empty
  std::string fix;                   // what to do, or empty
  std::vector<std::string> context;  // innermost first

  // All of it as one text for a log or a terminal.
  std::string text() const;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error e) : error_(std::make_unique<Error>(std::move(e))) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }
  Error take() && { return std::move(*error_); }
  Status context(std::string where) && {
    if (error_) error_->context.push_back(std::move(where));
    return std::move(*this);
  }

 private:
  std::unique_ptr<Error> error_;
};

inline Status ok() { return {}; }
Error error(std::string_view code, std::string message, std::string cause = "", std::string fix = "");
Error node_error(std::string_view code, std::string_view node, std::string message, std::string cause = "",
                 std::string fix = "");

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error e) : error_(std::make_unique<Error>(std::move(e))) {}
  Result(Status s) : error_(std::make_unique<Error>(std::move(s).take())) {}
  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  const Error& error() const { return *error_; }
  Error take_error() && { return std::move(*error_); }
  Result context(std::string where) && {
    if (error_) error_->context.push_back(std::move(where));
    return std::move(*this);
  }

 private:
  std::optional<T> value_;
  std::unique_ptr<Error> error_;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace ge

#define GE_CONCAT_(a, b) a##b
#define GE_CONCAT(a, b) GE_CONCAT_(a, b)
// Returns the error of a Status to the caller.
#define GE_RETURN_IF_ERROR(expr)                                            \
  do {                                                                      \
    if (auto ge_status = (expr); !ge_status.ok()) return std::move(ge_status).take(); \
  } while (0)
// GE_TRY(auto x, f()): x = *f(), or the error to the caller.
#define GE_TRY(decl, expr) GE_TRY_(GE_CONCAT(ge_result_, __LINE__), decl, expr)
#define GE_TRY_(tmp, decl, expr)                       \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) return std::move(tmp).take_error();   \
  decl = *std::move(tmp)
// Our own bugs only; never reachable from input.
#define GE_CHECK(cond, message)                                                 \
  do {                                                                          \
    if (!(cond)) ::ge::check_failed(__FILE__, __LINE__, #cond, (message));      \
  } while (0)
