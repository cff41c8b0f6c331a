#include "import/onnx.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "import/functions.h"
#include "import/opset6.h"
#include "import/structure.h"
#include "import/tensors.h"
#include "import/types.h"
#include "om/format.h"
#include "ops/op.h"
#include "ops/outputs.h"

namespace ge {
namespace {

using namespace onnx;
using ir::NodeId;
using ir::ValueId;

std::string op_name(const NodeProto& n) {
  return n.domain.empty() ? n.op_type : format("{}.{}", n.domain, n.op_type);
}

struct Unsupported {
  std::string why;
  std::vector<std::string> nodes;  // the first few
  size_t count = 0;
};
using UnsupportedOps = std::map<std::string, Unsupported>;  // by what the message calls it

// Empty when the node's op is known at its opset.
std::string why_unsupported(const NodeProto& n) {
  // Opset 6 has been raised to 7 by now.
  if (n.domain.empty() && n.opset < kOldestOpset)
    return format("opsets before {} are not supported (convert it with onnx.version_converter)", kOldestOpset);
  if (n.domain.empty() && n.opset > kNewestOpset)
    return format("opsets after {} are not known yet", kNewestOpset);
  if (n.domain.empty() && n.op_type == "Constant") return "";
  // Ours are made by passes, which know what these may hold; a model has no say in them.
  const std::string name = op_name(n);
  const ops::OpDef* def = name.starts_with("ge.") ? nullptr : ops::find(name);
  if (!def) return "the operator is not known";
  if (n.opset < def->since) return format("the operator is known from opset {} on", def->since);
  if (n.opset > def->newest) return format("the operator is known up to opset {}", def->newest);
  return "";
}

// The name that users know a node by: when it has none, its first output's.
std::string node_title(const NodeProto& n) {
  if (!n.name.empty()) return n.name;
  for (auto& name : n.outputs)
    if (!name.empty()) return "-> " + name;
  return "(no name)";
}

void collect_unsupported(const GraphProto& g, UnsupportedOps& out) {
  for (auto& n : g.nodes) {
    if (std::string why = why_unsupported(n); !why.empty()) {
      auto& u = out[format("{}.{} (opset {})", n.domain.empty() ? "ai.onnx" : n.domain, n.op_type,
                           n.opset)];
      u.why = why;
      if (u.nodes.size() < 3) u.nodes.push_back(node_title(n));
      ++u.count;
    }
    for (auto& a : n.attributes)
      for (auto& inner : a.graphs) collect_unsupported(inner, out);
  }
}

Status check_supported(const GraphProto& g) {
  UnsupportedOps found;
  collect_unsupported(g, found);
  if (found.empty()) return ok();
  std::vector<std::string> lines;
  for (auto& [title, u] : found) {
    std::string nodes = join(u.nodes, ", ");
    if (u.count > u.nodes.size()) nodes += format(" and {} more", u.count - u.nodes.size());
    lines.push_back(format("{} at {}: {}", title, nodes, u.why));
  }
  auto& first = found.begin()->second;
  return node_error(
      code::kUnsupportedOp, found.size() == 1 && first.count == 1 ? first.nodes[0] : "",
      format("{} of the model {} not supported: {}.",
             found.size() == 1 ? "One operator" : format("{} operators", found.size()),
             found.size() == 1 ? "is" : "are", join(lines, "; ")),
      "", "'ge ops' lists what is supported");
}

Status check_opset(const ModelProto& model) {
  for (auto& id : model.opset_imports) {
    if (!id.domain.empty() || (id.version >= 1 && id.version <= kNewestOpset)) continue;
    return error(code::kUnsupportedOp,
                 format("The model uses opset {} of ai.onnx; opsets {} to {} are supported.", id.version, kOldestOpset, kNewestOpset),
                 "", "export it with another opset");
  }
  return ok();
}

// One graph being made; lookups end here: what it captures has been put into `values` before.
struct Scope {
  ir::Graph& graph;
  std::unordered_map<std::string, ValueId> values;
  struct Raised {
    NodeId id;
    const ops::OpDef* def;
    int64_t opset;
    size_t captures;
  };
  std::vector<Raised> nodes;
};

class Converter {
 public:
  Converter(TensorReader& tensors, const ImportOptions& options, ir::Graph& main)
      : tensors_(tensors),
        types_(main),
        feed_(options.feed.begin(), options.feed.end()),
        main_(main) {}

  Status run(const GraphProto& g) {
    for (auto& v : g.inputs) types_.declare(v.type);
    Scope scope{main_, {}, {}};
    GE_RETURN_IF_ERROR(check_feed(g));
    GE_RETURN_IF_ERROR(add_inputs(g, scope));
    return finish(g, scope);
  }

 private:
  bool is_main(const Scope& s) const { return &s.graph == &main_; }

  Status check_feed(const GraphProto& g) const {
    std::vector<std::string> names;
    for (auto& v : g.inputs) names.push_back(v.name);
    for (auto& name : feed_)
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        std::string near = nearest(name, names);
        return error(code::kUnknownName, format("The model has no input {}.", quote(name)), "",
                     near.empty() ? "" : format("did you mean {}?", quote(near)));
      }
    return ok();
  }

  Status add_inputs(const GraphProto& g, Scope& scope) {
    std::unordered_set<std::string_view> defaults;
    for (auto& t : g.initializers) defaults.insert(t.name);
    for (auto& t : g.sparse_initializers) defaults.insert(t.values.name);
    for (auto& v : g.inputs) {
      if (defaults.count(v.name) && !(is_main(scope) && feed_.count(v.name))) continue;
      ir::Type type;
      // A nested graph's inputs get their types from the node; its own declarations may be absent,
      // and a size that they name may change from one iteration to the next.
      if (is_main(scope) || v.type.kind != TypeProto::Kind::none) {
        GE_TRY(type, types_.read(v.type, v.name, is_main(scope)));
      }
      scope.values[v.name] = scope.graph.add_input(v.name, std::move(type));
    }
    return ok();
  }

  // All but the inputs and captures.
  Status finish(const GraphProto& g, Scope& scope) {
    for (auto& t : g.initializers) GE_RETURN_IF_ERROR(add_constant(t, t.name, scope));
    for (auto& t : g.sparse_initializers) GE_RETURN_IF_ERROR(add_constant(t, t.values.name, scope));
    for (size_t i = 0; i < g.nodes.size(); ++i) GE_RETURN_IF_ERROR(add_node(g.nodes[i], i, scope));
    for (auto& v : g.outputs) scope.graph.add_graph_output(scope.values.at(v.name), v.name);
    // After all edges exist: a hook may put another value in place of a node's output.
    for (auto& n : scope.nodes) GE_RETURN_IF_ERROR(raise(n, scope.graph));
    return ok();
  }

  template <class Proto>
  Status add_constant(const Proto& proto, const std::string& name, Scope& scope) {
    if (scope.values.count(name)) return ok();  // an input whose default is not wanted
    GE_TRY(Tensor t, tensors_.read(proto));
    scope.values[name] = scope.graph.add_constant(std::move(t), name);
    return ok();
  }

  Status add_node(const NodeProto& n, size_t index, Scope& scope) {
    auto where = format("node {} {}", index, describe(n));
    if (n.domain.empty() && n.op_type == "Constant") return constant_node(n, scope).context(where);
    ir::Graph& g = scope.graph;
    const ops::OpDef* def = ops::find(op_name(n));
    std::vector<ValueId> inputs, outputs;
    for (auto& name : n.inputs) inputs.push_back(name.empty() ? ValueId{} : scope.values.at(name));
    ir::Attrs attrs;
    size_t captured = 0;
    bool nested = std::any_of(n.attributes.begin(), n.attributes.end(),
                              [](auto& a) { return !a.graphs.empty(); });
    if (nested) {
      while (inputs.size() < static_cast<size_t>(std::max(def->min_inputs, 0)))
        inputs.push_back({});
      GE_TRY(auto captures, capture(n, scope));
      captured = captures.size();
      for (auto& [name, id] : captures) inputs.push_back(id);
      attrs["captures"] = static_cast<int64_t>(captured);
      GE_RETURN_IF_ERROR(nested_graphs(n, captures, scope, attrs).context(where));
    } else {
      while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    }
    for (auto& a : n.attributes) GE_RETURN_IF_ERROR(attribute(a, n, attrs).context(where));
    for (auto& name : n.outputs) {
      outputs.push_back(name.empty() ? ValueId{} : g.add_value(name, {}));
      if (!name.empty()) scope.values[name] = outputs.back();
    }
    while (!outputs.empty() && !outputs.back()) outputs.pop_back();
    NodeId id =
        g.add_node(op_name(n), std::move(inputs), std::move(outputs), std::move(attrs), n.name);
    g.node(id).origin = {n.name.empty() ? g.node(id).name : n.name};
    scope.nodes.push_back({id, def, n.opset, captured});
    return ok();
  }

  using Captures = std::vector<std::pair<std::string, ValueId>>;

  // What the node's nested graphs read from here and is no constant, in order of first use.
  Result<Captures> capture(const NodeProto& n, const Scope& scope) {
    Captures out;
    std::unordered_set<std::string> seen;
    for (auto& a : n.attributes)
      for (auto& inner : a.graphs)
        for (auto& name : captures(inner)) {
          ValueId v = scope.values.at(name);
          if (!scope.graph.is_constant(v) && seen.insert(name).second) out.emplace_back(name, v);
        }
    return out;
  }

  Status nested_graphs(const NodeProto& n, const Captures& captured, const Scope& outer,
                       ir::Attrs& attrs) {
    for (auto& a : n.attributes) {
      std::vector<std::shared_ptr<ir::Graph>> graphs;
      for (auto& proto : a.graphs) {
        auto graph = std::make_shared<ir::Graph>();
        graph->name = proto.name.empty() ? a.name : proto.name;
        graph->scope = format("_.{}.", ++nested_);
        Scope scope{*graph, {}, {}};
        auto made = [&]() -> Status {
          GE_RETURN_IF_ERROR(add_inputs(proto, scope));
          // All graphs of a node get the same inputs, also those that only another branch reads; a
          // name that this graph does not read may be one of its own.
          std::unordered_map<std::string, ValueId> handed_in;
          for (auto& [name, id] : captured) handed_in[name] = graph->add_input(name, {});
          for (auto& name : captures(proto)) {
            auto& value = outer.graph.value(outer.values.at(name));
            scope.values[name] =
                value.constant ? graph->add_constant(*value.constant, name) : handed_in.at(name);
          }
          return finish(proto, scope);
        }();
        GE_RETURN_IF_ERROR(std::move(made).context(format("graph {}", quote(a.name))));
        graphs.push_back(std::move(graph));
      }
      if (a.type == AttributeType::graph && !graphs.empty()) attrs[a.name] = graphs[0];
      if (a.type == AttributeType::graphs) attrs[a.name] = std::move(graphs);
    }
    return ok();
  }

  Status attribute(const AttributeProto& a, const NodeProto& n, ir::Attrs& attrs) {
    auto refuse = [&](std::string_view why) {
      return node_error(code::kBadOp, n.name,
                        format("Attribute {} of node {} {}.", quote(a.name), describe(n), why));
    };
    if (a.name.empty()) return refuse("has no name");
    bool graphs = a.type == AttributeType::graph || a.type == AttributeType::graphs;
    if (!graphs && attrs.count(a.name)) return refuse("is given twice");
    ir::Attr value;
    switch (a.type) {
      case AttributeType::real:
        value = static_cast<double>(a.f);
        break;
      case AttributeType::integer:
        value = a.i;
        break;
      case AttributeType::string:
        value = a.s;
        break;
      case AttributeType::reals:
        value = std::vector<double>(a.floats.begin(), a.floats.end());
        break;
      case AttributeType::integers:
        value = a.ints;
        break;
      case AttributeType::strings:
        value = a.strings;
        break;
      case AttributeType::graph:
        if (a.graphs.empty()) return refuse("holds no graph");
        return ok();
      case AttributeType::graphs:
        return ok();
      case AttributeType::tensor: {
        if (a.tensors.empty()) return refuse("holds no tensor");
        GE_TRY(value, tensors_.read(a.tensors[0]));
        break;
      }
      case AttributeType::sparse_tensor: {
        if (a.sparse_tensors.empty()) return refuse("holds no tensor");
        GE_TRY(value, tensors_.read(a.sparse_tensors[0]));
        break;
      }
      case AttributeType::type_proto: {
        if (a.types.empty()) return refuse("holds no type");
        GE_TRY(ir::Type type, types_.read(a.types[0], a.name, false));
        value = text(type);
        break;
      }
      case AttributeType::undefined:
        return refuse("has no type");
      default:
        return refuse(format("is of type {}, which is not supported", name(a.type)));
    }
    attrs[a.name] = std::move(value);
    return ok();
  }

  Status constant_node(const NodeProto& n, Scope& scope) {
    if (n.attributes.size() != 1 || n.outputs.size() != 1 || n.outputs[0].empty() ||
        !n.inputs.empty())
      return node_error(
          code::kBadOp, n.name,
          format("Node {} must have one attribute, one output and no input.", describe(n)));
    const AttributeProto& a = n.attributes[0];
    Tensor t;
    if (a.name == "value_float" && a.type == AttributeType::real) {
      t = Tensor::scalar_f32(a.f);
    } else if (a.name == "value_int" && a.type == AttributeType::integer) {
      t = Tensor::scalar_i64(a.i);
    } else if (a.name == "value_floats" && a.type == AttributeType::reals) {
      t = Tensor::of<float>(DType::f32, {static_cast<int64_t>(a.floats.size())},
                            std::span<const float>(a.floats));
    } else if (a.name == "value_ints" && a.type == AttributeType::integers) {
      t = Tensor::vector_i64(a.ints);
    } else if (a.name == "value_string" && a.type == AttributeType::string) {
      t = Tensor(DType::string, {});
      t.strings()[0] = a.s;
    } else if (a.name == "value_strings" && a.type == AttributeType::strings) {
      t = Tensor(DType::string, {static_cast<int64_t>(a.strings.size())});
      t.strings() = a.strings;
    } else if (a.name == "value" && a.type == AttributeType::tensor && !a.tensors.empty()) {
      GE_TRY(t, tensors_.read(a.tensors[0]));
    } else if (a.name == "sparse_value" && a.type == AttributeType::sparse_tensor &&
               !a.sparse_tensors.empty()) {
      GE_TRY(t, tensors_.read(a.sparse_tensors[0]));
    } else {
      return node_error(code::kBadOp, n.name,
                        format("Node {} has attribute {} of type {}, which a Constant cannot "
                               "have.",
                               describe(n), quote(a.name), name(a.type)));
    }
    scope.values[n.outputs[0]] = scope.graph.add_constant(std::move(t), n.outputs[0]);
    return ok();
  }

  // An empty name leaves out what is optional, and nothing else: inference reads the others.
  static Status all_given(const ir::Node& n, const ops::OpDef& def) {
    auto i = ops::missing_input(def, n);
    if (!i || *i >= n.inputs.size()) return ok();
    return node_error(code::kBadOp, n.name, format("Node {} ({}) is not given its input {}.", quote(n.name), n.op, *i),
                      "its name is empty, which only optional inputs may have");
  }

  // Brings a node to its op's newest form, then checks what the form asks for.
  Status raise(const Scope::Raised& r, ir::Graph& g) {
    GE_RETURN_IF_ERROR(all_given(g.node(r.id), *r.def));
    // What a row gives beside output 0 is made with it.
    ops::UpgradeContext context{g, r.id, r.opset};
    if (r.def->vector_kind == ops::VectorKind::row) GE_RETURN_IF_ERROR(ops::with_first_output(context));
    if (r.def->upgrade) {
      std::string name = g.node(r.id).name;
      auto s = r.def->upgrade(context);
      GE_RETURN_IF_ERROR(
          std::move(s).context(format("raising node {} from opset {}", quote(name), r.opset)));
    }
    const ir::Node& n = g.node(r.id);
    if (n.dead || n.op != r.def->name) return ok();
    GE_RETURN_IF_ERROR(all_given(n, *r.def));   // what an upgrade put behind an input that is missing does not stand for it
    auto count = [&](const char* what, size_t have, int least, int most) -> Status {
      if (have >= static_cast<size_t>(least) && (most < 0 || have <= static_cast<size_t>(most)))
        return ok();
      std::string range = most < 0        ? format("at least {}", least)
                          : least == most ? format("{}", least)
                                          : format("{} to {}", least, most);
      return node_error(code::kBadOp, n.name,
                        format("Node {} ({}) has {} {}; {} takes {}.", quote(n.name), n.op, have,
                               what, n.op, range));
    };
    GE_RETURN_IF_ERROR(
        count("inputs", n.inputs.size() - r.captures, r.def->min_inputs, r.def->max_inputs));
    return count("outputs", n.outputs.size(), r.def->min_outputs, r.def->max_outputs);
  }

  int nested_ = 0;
  TensorReader& tensors_;
  TypeReader types_;
  std::unordered_set<std::string> feed_;
  ir::Graph& main_;
};

Result<ir::Graph> convert(std::shared_ptr<const MappedFile> file, std::vector<std::string> folders,
                          const ImportOptions& options) {
  if (file->bytes().size() >= om::kMagic.size() && std::memcmp(file->bytes().data(), om::kMagic.data(), om::kMagic.size()) == 0)
    return error(code::kParse, "This is an .om file: a model that is compiled already.", "", "give the ONNX model that it was made from");
  GE_TRY(ModelProto model, parse_model(file->bytes()));
  if (model.has_training_info)
    return error(code::kUnsupportedOp,
                 "The model holds training information, which is not supported.", "",
                 "export it for inference");
  GE_RETURN_IF_ERROR(check_opset(model));
  GE_RETURN_IF_ERROR(inline_functions(model));
  GE_RETURN_IF_ERROR(raise_opset6(model.graph));
  GE_RETURN_IF_ERROR(check_structure(model.graph));
  GE_RETURN_IF_ERROR(check_supported(model.graph));
  TensorReader tensors(std::move(file), ExternalData(std::move(folders)));
  ir::Graph graph;
  GE_RETURN_IF_ERROR(Converter(tensors, options, graph).run(model.graph));
  for (auto& path : tensors.external_files()) graph.files.push_back(absolute_path(path));
  return graph;
}

Result<ir::Graph> convert_safely(std::shared_ptr<const MappedFile> file,
                                 std::vector<std::string> folders, const ImportOptions& options) {
  try {
    return convert(std::move(file), std::move(folders), options);
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return error(code::kOutOfMemory, "There is not enough memory to read the model.");
}

}  // namespace

Result<ir::Graph> import_onnx(std::shared_ptr<const MappedFile> file, const std::string& folder,
                              const ImportOptions& options) {
  std::vector<std::string> folders;
  if (!folder.empty()) folders.push_back(folder);
  return convert_safely(std::move(file), std::move(folders), options);
}

Result<ir::Graph> import_onnx_file(const std::string& path, const ImportOptions& options) {
  GE_TRY(auto file, MappedFile::open(path));
  return import_onnx_file(std::move(file), path, options);
}

Result<ir::Graph> import_onnx_file(std::shared_ptr<const MappedFile> file, const std::string& path, const ImportOptions& options) {
  std::vector<std::string> folders = {folder_of(path)};
  // Model stores keep files by content and link to them: model and data then lie in one other
  // folder.
  if (char* real = ::realpath(path.c_str(), nullptr)) {
    if (std::string folder = folder_of(real); folder != folders[0]) folders.push_back(folder);
    std::free(real);
  }
  auto graph = convert_safely(std::move(file), std::move(folders), options).context(path);
  if (graph.ok()) graph->files.push_back(absolute_path(path));
  return graph;
}

namespace {

void check_nodes(const GraphProto& g, std::vector<NodeCheck>& out) {
  for (auto& n : g.nodes) {
    out.push_back({node_title(n), op_name(n), why_unsupported(n)});
    for (auto& a : n.attributes)
      for (auto& inner : a.graphs) check_nodes(inner, out);
  }
}

}  // namespace

Result<std::vector<NodeCheck>> check_onnx_file(const std::string& path) {
  GE_TRY(auto file, MappedFile::open(path));
  GE_TRY(ModelProto model, parse_model(file->bytes()));
  GE_RETURN_IF_ERROR(check_opset(model));
  GE_RETURN_IF_ERROR(inline_functions(model));
  GE_RETURN_IF_ERROR(raise_opset6(model.graph));
  std::vector<NodeCheck> out;
  check_nodes(model.graph, out);
  return out;
}

}  // namespace ge
