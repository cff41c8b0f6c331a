// The native part of the Python package: compile, load, run. No logic that C++ lacks; conversions of
// arrays that are not plain live in __init__.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <new>

#include "base/log.h"
#include "base/text.h"
#include "driver/compile.h"
#include "driver/notes.h"
#include "driver/report.h"
#include "driver/roofline.h"
#include "driver/run.h"
#include "import/about.h"
#include "om/reader.h"
#include "om/writer.h"
#include "runtime/model.h"

namespace nb = nanobind;

namespace {

struct PyGeError {
  ge::Error error;
};

template <class T>
T unwrap(ge::Result<T> r) {
  if (!r.ok()) throw PyGeError{std::move(r).take_error()};
  return *std::move(r);
}
void unwrap(ge::Status s) {
  if (!s.ok()) throw PyGeError{std::move(s).take()};
}

// Messages quote what they were given, which may be no UTF-8.
nb::object shown(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

// Raises ge.Error(message, code, node, cause, fix, context).
void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const PyGeError& e) {
    try {
      nb::object type = nb::module_::import_("ge._error").attr("Error");
      nb::list context;
      for (auto& c : e.error.context) context.append(shown(c));
      nb::object made = type(shown(e.error.message), e.error.code, shown(e.error.node), shown(e.error.cause), shown(e.error.fix), context);
      PyErr_SetObject(type.ptr(), made.ptr());
    } catch (nb::python_error& inner) {
      inner.restore();
    }
  }
}

// output: where the result will be written; empty: nowhere yet.
ge::Options options_from(const std::map<std::string, std::string>& given, const std::string& output) {
  ge::Options o;
  for (auto& [name, value] : given) unwrap(ge::set_option(o, name, value));
  if (!output.empty()) o.output_dir = ge::folder_of(output);
  return o;
}

// Calls that wait for nothing hold the GIL; those that copy content give it back.
struct PyState {
  std::shared_ptr<ge::runtime::State> state;

  PyState fork() const {
    nb::gil_scoped_release release;
    return {unwrap(state->fork())};
  }
  nb::bytes to_bytes() const {
    std::vector<std::byte> b;
    {
      nb::gil_scoped_release release;
      b = unwrap(state->to_bytes());
    }
    return nb::bytes(reinterpret_cast<const char*>(b.data()), b.size());
  }
  void from_bytes(const nb::bytes& data) {
    std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
    nb::gil_scoped_release release;
    unwrap(state->from_bytes(bytes));
  }
  nb::dict lengths() const {
    nb::dict d;
    for (auto& [name, n] : state->lengths()) d[name.c_str()] = n;
    return d;
  }
  nb::dict memory() const {
    nb::dict d;
    d["committed"] = state->committed();
    d["reserved"] = state->reserved();
    d["bytes_per_token"] = state->row_bytes();
    return d;
  }
};

class PyModel {
 public:
  explicit PyModel(std::shared_ptr<ge::runtime::Model> m) : model(std::move(m)) {}
  std::shared_ptr<ge::runtime::Model> model;

  // One value for each input. Arrays: C-contiguous, of the model's types (those that numpy lacks as integers of
  // their size; strings as (shape, list of bytes)); a sequence is a list of arrays, an optional an array, a list or None.
  nb::list run(const nb::list& given, PyState* state) { return run(given, nullptr, state); }

  // The outputs, and (task, kernel, start us, duration us, op) of each task.
  nb::tuple run_profiled(const nb::list& given, PyState* state) {
    ge::runtime::Profile profile;
    nb::list outputs = run(given, &profile, state);
    return nb::make_tuple(outputs, entries(profile));
  }

  nb::list run(const nb::list& given, ge::runtime::Profile* profile, PyState* state = nullptr) {
    auto& p = model->program();
    if (given.size() != p.inputs.size())
      throw PyGeError{ge::error(ge::code::kInputMismatch, ge::format("The model takes {} inputs, got {}.", p.inputs.size(), given.size()))};
    std::vector<ge::runtime::Value> in;
    ge::runtime::Texts texts = model->texts();
    Held held{{}, texts};
    for (size_t i = 0; i < given.size(); ++i) in.push_back(to_value(given[i], *p.inputs[i], held));
    std::vector<ge::runtime::Value> out;
    ge::Status status;
    auto* own = state ? state->state.get() : nullptr;
    {
      nb::gil_scoped_release release;
      if (model->has_states()) hold(unwrap(model->state_dims(own)));
      auto made = model->run(in, profile, &texts, own);
      if (!made.ok()) status = std::move(made).take_error();
      else out = *std::move(made);
    }
    unwrap(std::move(status));
    nb::list result;
    for (auto& v : out) result.append(from_value(v, texts));
    return result;
  }

  // What inputs lie in while they are read.
  struct Held {
    std::vector<nb::ndarray<nb::ro>> arrays;
    ge::runtime::Texts& texts;
  };

  static ge::runtime::Value to_array(nb::handle h, ge::DType t, Held& held) {
    if (t == ge::DType::string) {
      auto [dims, given] = nb::cast<std::pair<std::vector<int64_t>, std::vector<nb::bytes>>>(h);
      std::vector<std::string_view> strings;
      for (auto& s : given) strings.emplace_back(s.c_str(), s.size());
      return unwrap(held.texts.tensor(dims, strings));
    }
    auto a = nb::cast<nb::ndarray<nb::ro>>(h);
    auto v = ge::runtime::Value::tensor(t, dims_of(a), a.data());
    held.arrays.push_back(std::move(a));
    return v;
  }

  static ge::runtime::Value to_value(nb::handle h, const ge::om::PortT& port, Held& held) {
    using Kind = ge::runtime::Value::Kind;
    auto type = static_cast<ge::DType>(port.dtype);
    auto kind = static_cast<Kind>(port.kind);
    auto sequence = [&] {
      ge::runtime::Value v;
      v.kind = Kind::sequence;
      v.dtype = type;
      for (nb::handle item : nb::cast<nb::list>(h)) v.items.push_back(to_array(item, type, held));
      return v;
    };
    if (kind == Kind::tensor) return to_array(h, type, held);
    if (kind == Kind::sequence) return sequence();
    ge::runtime::Value v;
    v.kind = kind;
    v.dtype = type;
    if (v.is_map()) {
      auto [keys, values] = nb::cast<std::pair<nb::object, nb::object>>(h);
      v.items = {to_array(keys, kind == Kind::map_from_text ? ge::DType::string : ge::DType::i64, held), to_array(values, type, held)};
      return v;
    }
    if (!h.is_none()) v.items.push_back(kind == Kind::optional ? to_array(h, type, held) : sequence());
    return v;
  }

  static nb::object from_value(const ge::runtime::Value& v, const ge::runtime::Texts& texts) {
    using Kind = ge::runtime::Value::Kind;
    if (v.is_map() || v.is_map_sequence())
      return nb::make_tuple(from_value(v.items.at(0), texts), from_value(v.items.at(1), texts));
    if (v.kind == Kind::sequence) {
      nb::list items;
      for (auto& item : v.items) items.append(from_value(item, texts));
      return items;
    }
    if (v.kind != Kind::tensor) return v.items.empty() ? nb::none() : from_value(v.items[0], texts);
    if (v.dtype == ge::DType::string) {
      nb::list strings;
      for (auto s : unwrap(texts.strings(v))) strings.append(nb::bytes(s.data(), s.size()));
      return nb::make_tuple(v.dims, strings);
    }
    auto* keep = new std::shared_ptr<const void>(v.keep);
    nb::capsule owner(keep, [](void* q) noexcept { delete static_cast<std::shared_ptr<const void>*>(q); });
    std::vector<size_t> shape(v.dims.begin(), v.dims.end());
    return nb::cast(nb::ndarray<nb::numpy>(const_cast<std::byte*>(v.data), shape.size(), shape.data(), owner, nullptr, dlpack_type(v.dtype)));
  }

  // The storage type that numpy itself has; __init__.py views it as the true one.
  static nb::dlpack::dtype dlpack_type(ge::DType t) {
    using ge::DType;
    auto bits = static_cast<uint8_t>(ge::size_of(t) * 8);
    auto of = [&](nb::dlpack::dtype_code c) { return nb::dlpack::dtype{static_cast<uint8_t>(c), bits, 1}; };
    if (t == DType::f32 || t == DType::f64 || t == DType::f16) return of(nb::dlpack::dtype_code::Float);
    if (t == DType::c64 || t == DType::c128) return of(nb::dlpack::dtype_code::Complex);
    if (t == DType::boolean) return of(nb::dlpack::dtype_code::Bool);
    if (ge::is_integer(t) && ge::is_signed(t)) return of(nb::dlpack::dtype_code::Int);
    return of(nb::dlpack::dtype_code::UInt);
  }

  nb::list ports(bool inputs) const {
    auto& p = model->program();
    nb::list out;
    for (auto& port : inputs ? p.inputs : p.outputs) {
      nb::list dims;
      for (auto& d : ge::port_dims(p, *port)) {
        bool number = !d.empty() && d.find_first_not_of("0123456789") == std::string::npos;
        if (number) dims.append(std::stoll(d));
        else dims.append(d);
      }
      const char* kinds[] = {"tensor", "sequence", "optional", "optional_sequence", "map", "map", "map_sequence", "map_sequence"};
      nb::object shape = port->unranked || port->kind != ge::om::ValueKind::tensor ? nb::none() : nb::object(nb::tuple(dims));
      out.append(nb::make_tuple(port->name, std::string(ge::name(static_cast<ge::DType>(port->dtype))), shape, kinds[static_cast<size_t>(port->kind) % std::size(kinds)],
                                static_cast<size_t>(port->kind) % 2 ? "string" : "i64"));
    }
    return out;
  }

  nb::dict memory() const {
    auto m = model->memory();
    nb::dict d;
    d["weights"] = m.weights;
    d["arena"] = m.arena;
    d["state"] = m.state;
    d["pool"] = m.pool;
    d["contexts"] = m.contexts;
    if (!model->has_states()) return d;
    d["state_reserved"] = m.state_reserved;
    d["state_bytes_per_token"] = m.state_token;
    return d;
  }

  // The arena for these input shapes: bytes, bound, proved, threads.
  nb::dict plan(const std::vector<std::vector<int64_t>>& dims) {
    auto b = unwrap(model->bind(dims, held()));
    nb::dict d;
    d["arena"] = b->arena;
    d["lower_bound"] = b->lower_bound;
    d["proved"] = b->proved;
    d["threads"] = b->threads;
    return d;
  }

  // The shapes of the outputs for these input shapes.
  std::vector<std::vector<int64_t>> output_shapes(const std::vector<std::vector<int64_t>>& dims) {
    auto& given = unwrap(model->bind(dims, held()))->output_dims;
    return {given.begin(), given.end()};
  }

  // Floating-point operations of a run with these input shapes, as the definitions of the operators count them.
  double operations(const std::vector<std::vector<int64_t>>& dims) { return unwrap(model->bind(dims, held()))->operations(); }

  PyState new_state() { return {unwrap(model->new_state())}; }
  nb::object default_state() {
    auto s = unwrap(model->default_state());
    return s ? nb::cast(PyState{s}) : nb::none();
  }
  // (name, type, capacity with -1 for what the first run brings, axis that grows or -1) of each state.
  nb::list states() const {
    nb::list out;
    for (auto& port : model->program().states) {
      auto& s = *model->package().model.states[static_cast<size_t>(port->state)];
      out.append(nb::make_tuple(s.name, std::string(ge::name(static_cast<ge::DType>(s.dtype))), s.dims, s.axis));
    }
    return out;
  }

  // {symbol: (least, most)} of the named sizes.
  nb::dict symbols() const {
    nb::dict d;
    for (auto& s : model->program().symbols) d[s->name.c_str()] = nb::make_tuple(s->min, s->max);
    return d;
  }

  // (task, kernel, start us, duration us, op) of one run on seeded inputs or the given arrays.
  nb::list profile(const nb::list& arrays) {
    ge::runtime::Profile profile;
    run(arrays, &profile);
    return entries(profile);
  }

 private:
  // What the state of the latest run held when it began.
  struct Latest {
    std::mutex mutex;
    ge::runtime::StateDims dims;
  };
  std::shared_ptr<Latest> latest_ = std::make_shared<Latest>();
  void hold(ge::runtime::StateDims dims) {
    std::lock_guard lock(latest_->mutex);
    latest_->dims = std::move(dims);
  }
  ge::runtime::StateDims held() {
    std::lock_guard lock(latest_->mutex);
    return latest_->dims;
  }
  static std::vector<int64_t> dims_of(const nb::ndarray<nb::ro>& a) {
    std::vector<int64_t> d;
    for (size_t k = 0; k < a.ndim(); ++k) d.push_back(static_cast<int64_t>(a.shape(k)));
    return d;
  }

  nb::list entries(const ge::runtime::Profile& profile) const {
    nb::list result;
    for (auto& e : profile.entries) {
      auto& t = *model->program().tasks[static_cast<size_t>(e.task)];
      auto& kernel = model->package().model.kernels[static_cast<size_t>(t.alternatives[0]->kernel)];
      result.append(nb::make_tuple(t.name, kernel, e.start_us, e.us, t.op));
    }
    return result;
  }
};

struct PyPackage {
  std::shared_ptr<ge::Compiled> compiled;
};

}  // namespace

NB_MODULE(_ge, m) {
  nb::register_exception_translator(translate);
  nb::set_leak_warnings(false);
  m.attr("__version__") = GE_VERSION;

  nb::class_<PyPackage>(m, "Package")
      .def("save", [](PyPackage& p, const std::string& path) {
        nb::gil_scoped_release release;
        unwrap(ge::om::write(p.compiled->package, path));
      })
      .def("to_bytes", [](PyPackage& p) {
        auto b = ge::om::to_bytes(p.compiled->package);
        return nb::bytes(reinterpret_cast<const char*>(b.data()), b.size());
      })
      .def("notes", [](PyPackage& p) { return p.compiled->package.notes; })
      .def("milliseconds", [](PyPackage& p) { return p.compiled->milliseconds; })
      .def("from_cache", [](PyPackage& p) { return p.compiled->from_cache; })
      .def("parts", [](PyPackage& p) {
        std::vector<std::pair<std::string, std::string>> out;
        for (auto& part : p.compiled->parts) out.emplace_back(part.name, part.from_cache ? "cache" : "compiled");
        return out;
      });

  nb::class_<PyState>(m, "State")
      .def("reset", [](PyState& s) { unwrap(s.state->reset()); })
      .def("length", [](PyState& s) { return s.state->length(); })
      .def("lengths", &PyState::lengths)
      .def("shapes", [](PyState& s) { return s.state->shapes(); })
      .def("memory", &PyState::memory)
      .def("fork", &PyState::fork)
      .def("to_bytes", &PyState::to_bytes)
      .def("from_bytes", &PyState::from_bytes)
      .def("save", [](PyState& s, const std::string& path) {
        nb::gil_scoped_release release;
        unwrap(s.state->save(path));
      })
      .def("load", [](PyState& s, const std::string& path) {
        nb::gil_scoped_release release;
        unwrap(s.state->load(path));
      });

  nb::class_<PyModel>(m, "Model")
      .def("run", nb::overload_cast<const nb::list&, PyState*>(&PyModel::run), nb::arg("inputs"), nb::arg("state").none() = nullptr)
      .def("run_profiled", &PyModel::run_profiled, nb::arg("inputs"), nb::arg("state").none() = nullptr)
      .def("new_state", &PyModel::new_state)
      .def("default_state", &PyModel::default_state)
      .def("states", &PyModel::states)
      .def("inputs", [](PyModel& p) { return p.ports(true); })
      .def("outputs", [](PyModel& p) { return p.ports(false); })
      .def("memory", &PyModel::memory)
      .def("plan", &PyModel::plan)
      .def("output_shapes", &PyModel::output_shapes)
      .def("operations", &PyModel::operations)
      .def("symbols", &PyModel::symbols)
      .def("profile", &PyModel::profile)
      .def("trim", [](PyModel& p) { p.model->trim(); })
      .def("threads", [](PyModel& p) { return p.model->threads(); })
      .def("notes", [](PyModel& p) { return ge::notes_of(p.model->package()).dump(); })
      .def("explain", [](PyModel& p) { return ge::explain_text(p.model->package()); })
      .def("fused_operators", [](PyModel& p) { return ge::fused_operators(p.model->package()); })
      .def("warnings", [](PyModel& p) { return ge::fusion_warnings(p.model->package()); })
      .def("inspect", [](PyModel& p, bool tasks) { return ge::inspect_text(p.model->package(), tasks); })
      .def("save", [](PyModel& p, const std::string& path) {
        nb::gil_scoped_release release;
        unwrap(ge::om::write(p.model->package(), path));
      })
      .def("to_bytes", [](PyModel& p) {
        auto b = ge::om::to_bytes(p.model->package());
        return nb::bytes(reinterpret_cast<const char*>(b.data()), b.size());
      });

  m.def("compile_file", [](const std::string& path, const std::map<std::string, std::string>& options, const std::string& output) {
    ge::Options o = options_from(options, output);
    nb::gil_scoped_release release;
    return PyPackage{std::make_shared<ge::Compiled>(unwrap(ge::compile_file(path, o)))};
  }, nb::arg("path"), nb::arg("options"), nb::arg("output") = "");
  m.def("compile_bytes", [](const nb::bytes& data, const std::map<std::string, std::string>& options, const std::string& output) {
    ge::Options o = options_from(options, output);
    std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
    nb::gil_scoped_release release;
    return PyPackage{std::make_shared<ge::Compiled>(unwrap(ge::compile_bytes(bytes, o)))};
  }, nb::arg("data"), nb::arg("options"), nb::arg("output") = "");
  // What an ONNX file says of itself, JSON (import/about.h).
  m.def("about_file", [](const std::string& path) { return unwrap(ge::about_onnx(*unwrap(ge::MappedFile::open(path)))); });
  m.def("about_bytes", [](const nb::bytes& data) {
    std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
    return unwrap(ge::about_onnx(*ge::MappedFile::from_bytes(bytes)));
  });
  m.def("model_of", [](const PyPackage& p, int threads) {
    ge::runtime::LoadOptions o;
    o.threads = threads;
    nb::gil_scoped_release release;
    auto& made = p.compiled->package;
    if (p.compiled->from_cache) return PyModel(unwrap(ge::runtime::Model::from(made, o)));  // it was read from a file
    // A file and a package in memory open alike: what is read keeps one path.
    auto package = unwrap(ge::om::reopened(made));
    return PyModel(unwrap(ge::runtime::Model::from(std::move(package), o)));
  });
  m.def("load_file", [](const std::string& path, int threads, bool check_all, bool huge) {
    ge::runtime::LoadOptions o{threads, check_all, huge};
    nb::gil_scoped_release release;
    return PyModel(unwrap(ge::runtime::Model::open(path, o)));
  });
  m.def("load_bytes", [](const nb::bytes& data, int threads, bool check_all, bool huge) {
    ge::runtime::LoadOptions o{threads, check_all, huge};
    std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
    nb::gil_scoped_release release;
    return PyModel(unwrap(ge::runtime::Model::open(bytes, o)));
  });
  // level 0..4 (4: none). The sink is called without the GIL held by the caller; it takes it.
  m.def("set_log", [](nb::object sink, int level) {
    if (sink.is_none()) return ge::set_log_sink({}, ge::LogLevel::none);
    auto held = std::shared_ptr<nb::object>(new nb::object(std::move(sink)), [](nb::object* o) {
      if (!Py_IsInitialized()) return;
      nb::gil_scoped_acquire acquire;
      delete o;
    });
    ge::set_log_sink([held](ge::LogLevel l, const std::string& line) {
      nb::gil_scoped_acquire acquire;
      (*held)(static_cast<int>(l), line);
    }, static_cast<ge::LogLevel>(level));
  }, nb::arg("sink").none(), nb::arg("level"));
  m.def("roofline", [](int threads) {
    nb::gil_scoped_release release;
    auto r = ge::roofline(threads);
    return std::pair(r.gflops, r.read_gbs);
  });
  m.def("rules", [] { return ge::rule_names(); });
}
