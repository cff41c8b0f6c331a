"""Tensors of strings: operators on text, look-ups by strings, and everything that only moves them."""

import itertools
import tempfile

import ge
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

F32, I64, STRING, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
ML = "ai.onnx.ml"
WORDS = ["", "a", "Hello", "hello", "two words", " é Ünï ", "的中", "x\0y", "1.5", "-3"]


def texts(*shape, seed=0):
    a = np.empty(int(np.prod(shape)), object)
    a[:] = list(np.random.default_rng(seed).choice(np.array(WORDS, object), len(a)))
    return a.reshape(shape)


def model_of(nodes, inputs, outputs, constants=None, opset=22):
    info = [helper.make_tensor_value_info(n, t, d) for n, (t, d) in inputs.items()]
    out = [helper.make_tensor_value_info(o, t, None) if t else helper.make_empty_tensor_value_info(o) for o, t in outputs.items()]
    init = [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", info, out, init)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(ML, 4), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def one(op, inputs, outputs=("y",), types=(STRING,), constants=None, domain="", opset=22, **attrs):
    node = helper.make_node(op, list(inputs) + list(constants or {}), list(outputs), domain=domain, **attrs)
    return model_of([node], inputs, dict(zip(outputs, types)), constants, opset)


def runtime(model, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], feeds)))


def equal(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape, (g, w)
        np.testing.assert_array_equal(g, w)


def reopened(compiled):
    with tempfile.NamedTemporaryFile(suffix=".om") as f:
        compiled.save(f.name)
        with open(f.name, "rb") as again:
            return again.read()


def same(model, feeds):
    """From memory and from the .om alike."""
    compiled = ge.compile(model)
    got, want = compiled.run(list(feeds)), runtime(model, feeds)
    equal(got, want)
    equal(ge.load(reopened(compiled)).run(list(feeds)), got)
    return got


# --- operators on text

@pytest.mark.parametrize("a,b", [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (4,)), ((), ()), ((0, 2), (1, 2)), ((2, 1, 3), (4, 1))])
def test_concat(a, b):
    same(one("StringConcat", {"a": (STRING, [f"a{i}" for i in range(len(a))]), "b": (STRING, [f"b{i}" for i in range(len(b))])}),
         [texts(*a), texts(*b, seed=1)])


@pytest.mark.parametrize("delimiter", [None, "", ".", "-", "ab", " "])
@pytest.mark.parametrize("most", [None, 0, 1, 2, 9])
def test_split(delimiter, most):
    attrs = {k: v for k, v in (("delimiter", delimiter), ("maxsplit", most)) if v is not None}
    given = ["", "a", "a.b.c", "-a--b-", "  two   words ", "abxabab", ".", "one two three four", "ab", "的.中"]
    m = ge.compile(one("StringSplit", {"x": (STRING, ["n", "m"])}, ("y", "z"), (STRING, I64), **attrs))
    for x in (np.array(given, object).reshape(2, 5), np.array(given[:1], object).reshape(1, 1), np.empty((0, 2), object), np.empty((2, 0), object)):
        y, z = m.run([x])
        want = [s.split(delimiter or None, -1 if most is None else most) for s in x.flat]
        longest = max((len(w) for w in want), default=0)
        assert y.shape == (*x.shape, longest) and z.shape == x.shape
        assert [list(r) for r in y.reshape(len(want), longest)] == [w + [""] * (longest - len(w)) for w in want]
        assert z.reshape(-1).tolist() == [len(w) for w in want]


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("alike", [0, 1])
@pytest.mark.parametrize("stop", [[], ["hello"], ["HELLO", "a", "的中"], list({w for w in WORDS if "\0" not in w})])
@pytest.mark.parametrize("rank", [1, 2])
def test_normalizer(action, alike, stop, rank):
    attrs = {"stopwords": stop} if stop else {}
    m = ge.compile(one("StringNormalizer", {"x": (STRING, ["c"] if rank == 1 else [1, "c"])}, case_change_action=action, is_case_sensitive=alike, **attrs))
    turned = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    for n in (0, 1, 30):
        x = texts(n)
        kept = [turned(s) for s in x if (s not in stop if alike else s.lower() not in {w.lower() for w in stop})] or [""]
        y = m.run([x if rank == 1 else x[None]])[0]
        assert y.shape == ((len(kept),) if rank == 1 else (1, len(kept))) and y.reshape(-1).tolist() == kept


@pytest.mark.parametrize("pattern", [".*", "", "[A-Za-z]+", r"\w+ \w+", "(?i)HELLO", r"-?\d+(\.\d+)?", ".", ".{2}", "(a|b)*", "[^a]*", r"\s*.*\S.*", "的|中+.",
                                     r"^\w*$", "(?s).*y", r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)"])
def test_regex(pattern):
    same(one("RegexFullMatch", {"x": (STRING, ["n", "m"])}, types=(BOOL,), pattern=pattern), [texts(5, 7)])


@pytest.mark.parametrize("pattern", ["(", "a**", "[z-a]", r"\p{Grek}", "(?P<n", "a{2,1}", "\\", "x{1001}", "(" * 600 + ")" * 600, "((((a{99}){99}){99}){99})"])
def test_patterns_that_are_wrong(pattern):
    with pytest.raises(ge.Error) as e:
        ge.compile(one("RegexFullMatch", {"x": (STRING, ["n"])}, types=(BOOL,), pattern=pattern))
    assert e.value.code == "E14001" and "pattern" in str(e.value)


def test_a_pattern_takes_linear_time():
    m = ge.compile(one("RegexFullMatch", {"x": (STRING, ["n"])}, types=(BOOL,), pattern="(a*)*(a*)*b"))
    assert m.run([np.array(["a" * 20000, "a" * 20000 + "b"], object)])[0].tolist() == [False, True]


NUMBERS = {"float32": (F32, ["0.25", "-1e-05", "3", "1e+20", "0.1", "INF", "-INF", "NaN", "16777216"]),
           "float64": (TensorProto.DOUBLE, ["0.1", "1e+300", "-2.5", "NaN"]), "float16": (TensorProto.FLOAT16, ["0.5", "65504", "-INF"]),
           "int64": (I64, ["0", "-9223372036854775808", "9223372036854775807"]), "uint8": (TensorProto.UINT8, ["0", "255"]), "int32": (TensorProto.INT32, ["-5", "7"]),
           "uint64": (TensorProto.UINT64, ["18446744073709551615"])}


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_as_text_and_back(dtype):
    number, written = NUMBERS[dtype]
    to_text = ge.compile(one("Cast", {"x": (number, ["n"])}, to=STRING))
    values = np.array(written).astype(dtype) if dtype != "uint64" else np.array([2**64 - 1], np.uint64)
    assert to_text.run([values])[0].tolist() == written
    back = ge.compile(one("Cast", {"x": (STRING, ["n"])}, types=(number,), to=number))
    if dtype != "uint64":
        np.testing.assert_array_equal(back.run([np.array(written, object)])[0], values)
    with pytest.raises(ge.Error, match="is no number"):
        back.run([np.array(["1", "one"], object)])


def test_text_inside_a_concat_of_text():
    """The cast writes into a part of a larger tensor."""
    nodes = [helper.make_node("Cast", ["x"], ["s"], to=STRING), helper.make_node("StringConcat", ["t", "t"], ["u"]),
             helper.make_node("Concat", ["s", "u", "s"], ["y"], axis=1)]
    m = model_of(nodes, {"x": (I64, ["n", 2]), "t": (STRING, ["n", 3])}, {"y": STRING})
    x, t = np.arange(8).reshape(4, 2), texts(4, 3)
    assert ge.compile(m).run([x, t])[0].tolist() == np.concatenate([x.astype(str).astype(object), t + t, x.astype(str).astype(object)], 1).tolist()


# --- look-ups

@pytest.mark.parametrize("a,b", [((3, 4), (3, 4)), ((3, 1), (4,)), ((), (5,)), ((0,), (1,))])
def test_equal(a, b):
    given = {"a": (STRING, [f"a{i}" for i in range(len(a))]), "b": (STRING, [f"b{i}" for i in range(len(b))])}
    same(one("Equal", given, types=(BOOL,)), [texts(*a), texts(*b, seed=1)])
    nodes = [helper.make_node("Equal", ["a", "w"], ["e"]), helper.make_node("Not", ["e"], ["y"])]
    same(model_of(nodes, {"a": given["a"]}, {"y": BOOL}, {"w": np.array("Hello", object)}), [texts(*a)])


TABLES = {
    "strings to ints": ({"keys_strings": ["a", "hello", "的中"], "values_int64s": [5, 6, 7], "default_int64": -9}, STRING, I64),
    "strings to floats": ({"keys_strings": ["a", ""], "values_floats": [0.5, 2.0], "default_float": 9.0}, STRING, F32),
    "strings to strings": ({"keys_strings": ["a", "x\0y"], "values_strings": ["B", "C"], "default_string": "D"}, STRING, STRING),
    "ints to strings": ({"keys_int64s": [1, 2], "values_strings": ["one", "的"], "default_string": "many"}, I64, STRING),
    "floats to strings": ({"keys_floats": [1.5, float("nan")], "values_strings": ["one", "nan"]}, F32, STRING),
}


@pytest.mark.parametrize("table", TABLES)
def test_label_encoder(table):
    attrs, takes, gives = TABLES[table]
    m = one("LabelEncoder", {"x": (takes, ["n", "m"])}, types=(gives,), domain=ML, **attrs)
    x = {STRING: texts(4, 6), I64: np.arange(24).reshape(4, 6) % 4, F32: np.array([[1.5, np.nan, 2]], np.float32)}[takes]
    if "x\0y" in attrs.get("keys_strings", []):
        got = ge.compile(m).run([x])[0]
        assert got.tolist() == [[{"a": "B", "x\0y": "C"}.get(s, "D") for s in r] for r in x]
    else:
        same(m, [x])


def test_label_encoder_by_tensors():
    attrs = {"keys_tensor": numpy_helper.from_array(np.array(["a", "b"], object), "k"), "values_tensor": numpy_helper.from_array(np.array([3, 4], np.int16), "v"),
             "default_tensor": numpy_helper.from_array(np.array([-1], np.int16), "d")}
    m = one("LabelEncoder", {"x": (STRING, ["n"])}, types=(TensorProto.INT16,), domain=ML, **attrs)
    assert ge.compile(m).run([np.array(["b", "c", "a"], object)])[0].tolist() == [4, -1, 3]


@pytest.mark.parametrize("zeros", [0, 1])
def test_one_hot_encoder(zeros):
    m = one("OneHotEncoder", {"x": (STRING, ["n"])}, types=(F32,), domain=ML, cats_strings=["a", "hello", "的中"], zeros=zeros)
    x = np.array(["hello", "a", "的中", "a"], object)
    same(m, [x])
    if zeros:
        same(m, [texts(9)])
    else:
        with pytest.raises(ge.Error, match="none of the categories"):
            ge.compile(m).run([texts(9)])


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_tfidf(mode):
    m = one("TfIdfVectorizer", {"x": (STRING, ["n", "c"])}, types=(F32,), mode=mode, min_gram_length=1, max_gram_length=2, max_skip_count=2,
            ngram_counts=[0, 3], ngram_indexes=[0, 2, 1, 5, 4], pool_strings=["a", "hello", "的中", "a", "hello", "hello", "hello"], weights=[1.0, 2.0, 3.0, 0.5, 0.25])
    same(m, [texts(5, 20)])


@pytest.mark.parametrize("op", ["LinearClassifier", "TreeEnsembleClassifier", "SVMClassifier"])
def test_labels_of_classifiers(op):
    labels = ["cat", "dog", "的"]
    rng = np.random.default_rng(3)
    attrs = {"LinearClassifier": {"coefficients": rng.normal(size=12).tolist(), "intercepts": [0.1, 0.2, 0.3]},
             "TreeEnsembleClassifier": {
                 "nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4], "nodes_featureids": [0, 0, 1, 0, 0], "nodes_values": [0.0, 0, 0.5, 0, 0],
                 "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 3, 0, 0], "nodes_falsenodeids": [2, 0, 4, 0, 0],
                 "class_treeids": [0] * 3, "class_nodeids": [1, 3, 4], "class_ids": [0, 1, 2], "class_weights": [1.0, 1.0, 1.0]},
             "SVMClassifier": {"kernel_type": "LINEAR", "kernel_params": [0.5, 0.0, 3.0], "coefficients": rng.normal(size=12).tolist(), "rho": [0.1] * 3,
                               "support_vectors": rng.normal(size=24).tolist(), "vectors_per_class": [2, 2, 2]}}[op]
    x = rng.normal(size=(9, 4)).astype(np.float32)
    node = helper.make_node(op, ["x"], ["label", "scores"], domain=ML, classlabels_strings=labels, **attrs)
    m = model_of([node], {"x": (F32, ["n", 4])}, {"label": STRING, "scores": F32})
    got, want = ge.compile(m).run([x]), runtime(m, [x])
    assert got[0].tolist() == want[0].tolist() and len(set(want[0])) > 1
    np.testing.assert_allclose(got[1], want[1], rtol=1e-4, atol=1e-5)


# --- what only moves them

MOVES = {
    "Identity": ({}, {}), "Transpose": ({}, {"perm": [1, 0]}), "Reshape": ({"s": [2, -1]}, {}), "Flatten": ({}, {"axis": 1}), "Unsqueeze": ({"a": [0]}, {}),
    "Slice": ({"b": [3], "e": [-5], "a": [1], "s": [-2]}, {}), "Gather": ({"i": [[2, 0], [-1, 1]]}, {"axis": 1}), "Expand": ({"s": [2, 3, 4]}, {}),
    "Tile": ({"r": [2, 3]}, {}), "GatherElements": ({"i": [[1, 0, 1, 2]]}, {"axis": 0}), "GatherND": ({"i": [[0, 1], [2, 3]]}, {}), "Shape": ({}, {}), "Size": ({}, {}),
}


@pytest.mark.parametrize("op", MOVES)
def test_moves(op):
    constants, attrs = MOVES[op]
    types = (I64,) if op in ("Shape", "Size") else (STRING,)
    m = one(op, {"x": (STRING, ["n", "m"])}, types=types, constants={k: np.array(v, np.int64) for k, v in constants.items()}, **attrs)
    got, x = ge.compile(m).run([texts(3, 4)]), texts(3, 4)
    want = {"Identity": x, "Transpose": x.T, "Reshape": x.reshape(2, -1), "Flatten": x, "Unsqueeze": x[None], "Slice": x[:, 3:-5:-2],
            "Gather": x[:, [[2, 0], [-1, 1]]], "Expand": np.broadcast_to(x, (2, 3, 4)), "Tile": np.tile(x, (2, 3)),
            "GatherElements": np.take_along_axis(x, np.array([[1, 0, 1, 2]]), 0), "GatherND": np.array([x[0, 1], x[2, 3]], object),
            "Shape": np.array([3, 4]), "Size": np.array(12)}[op]
    assert got[0].shape == want.shape and got[0].tolist() == want.tolist()


def test_moves_of_several():
    x, y = texts(2, 3), texts(2, 3, seed=1)
    c = np.array([[True, False, True]])
    m = ge.compile(one("Where", {"c": (BOOL, [1, 3]), "x": (STRING, ["n", 3]), "z": (STRING, ["n", 3])}))
    assert m.run([c, x, y])[0].tolist() == np.where(c, x, y).tolist()
    m = ge.compile(one("Concat", {"x": (STRING, ["n", 3]), "z": (STRING, ["n", 3])}, axis=1))
    assert m.run([x, y])[0].tolist() == np.concatenate([x, y], 1).tolist()
    m = ge.compile(one("Split", {"x": (STRING, ["n", 3])}, ("y", "z"), (STRING, STRING), {"s": np.array([1, 2])}, axis=1))
    assert [a.tolist() for a in m.run([x])] == [x[:, :1].tolist(), x[:, 1:].tolist()]
    m = ge.compile(one("ScatterElements", {"x": (STRING, ["n", 3])}, constants={"i": np.array([[1]]), "u": np.array([["的"]], object)}, axis=1))
    x[0, 1] = "的"
    assert m.run([texts(2, 3)])[0].tolist() == x.tolist()


def test_constants_are_outputs_too():
    w = np.array([["a", "的"], ["", "a"]], object)
    m = model_of([helper.make_node("Identity", ["w"], ["y"]), helper.make_node("Neg", ["x"], ["z"])], {"x": (F32, ["n"])}, {"y": STRING, "z": F32}, {"w": w})
    assert same(m, [np.ones(2, np.float32)])[0].tolist() == w.tolist()


# --- control flow and sequences

def test_branches():
    then = helper.make_graph([helper.make_node("StringConcat", ["x", "w"], ["t"])], "t", [], [helper.make_tensor_value_info("t", STRING, None)],
                             [numpy_helper.from_array(np.array("!", object), "w")])
    other = helper.make_graph([helper.make_node("StringNormalizer", ["x"], ["e"], case_change_action="UPPER", stopwords=["a"])], "e", [],
                              [helper.make_tensor_value_info("e", STRING, None)])
    m = ge.compile(model_of([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], {"c": (BOOL, []), "x": (STRING, ["n"])}, {"y": STRING}))
    x = np.array(["a", "bc", "é"], object)
    assert m.run([np.array(True), x])[0].tolist() == ["a!", "bc!", "é!"]
    assert m.run([np.array(False), x])[0].tolist() == ["BC", "É"]


def test_a_loop_that_writes():
    body = helper.make_graph([helper.make_node("Cast", ["i"], ["n"], to=STRING), helper.make_node("StringConcat", ["s", "n"], ["t"]),
                              helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Identity", ["t"], ["u"])], "b",
                             [helper.make_tensor_value_info("i", I64, []), helper.make_tensor_value_info("c", BOOL, []), helper.make_tensor_value_info("s", STRING, [])],
                             [helper.make_tensor_value_info("d", BOOL, []), helper.make_tensor_value_info("t", STRING, []), helper.make_tensor_value_info("u", STRING, [])])
    m = ge.compile(model_of([helper.make_node("Loop", ["k", "", "x"], ["y", "all"], body=body)], {"k": (I64, []), "x": (STRING, [])}, {"y": STRING, "all": STRING}))
    y, steps = m.run([np.array(4), np.array(">", object)])
    assert y.tolist() == ">0123" and steps.tolist() == [">0", ">01", ">012", ">0123"]
    assert m.run([np.array(0), np.array("的", object)])[0].tolist() == "的"


def test_sequences():
    nodes = [helper.make_node("SequenceConstruct", ["x", "z"], ["s"]), helper.make_node("ConcatFromSequence", ["s"], ["c"], axis=0),
             helper.make_node("SequenceAt", ["s", "i"], ["y"])]
    m = ge.compile(model_of(nodes, {"x": (STRING, ["n"]), "z": (STRING, ["m"])}, {"c": STRING, "y": STRING}, {"i": np.array(1)}))
    x, z = texts(3), texts(5, seed=1)
    c, y = m.run([x, z])
    assert c.tolist() == [*x, *z] and y.tolist() == z.tolist()


# --- inputs

def test_what_is_taken_for_text():
    m = ge.compile(one("StringConcat", {"a": (STRING, ["n"]), "b": (STRING, ["n"])}))
    assert m.run([np.array(["a", "é"]), np.array([b"b", b"\xff"])])[0].tolist() == ["ab", "é\udcff"]
    assert m.run([["a"], np.array(["b"], object)])[0].tolist() == ["ab"]
    for wrong in (np.array([1.0, 2.0]), np.array([None, "a"], object), np.array([1, 2], object)):
        with pytest.raises(ge.Error) as e:
            m.run([wrong, texts(2)])
        assert e.value.code == "E40001" and "strings" in str(e.value)


def test_many_runs_of_other_strings():
    m = ge.compile(one("StringConcat", {"a": (STRING, ["n"]), "b": (STRING, ["n"])}))
    for i, j in itertools.product(range(30), range(3)):
        x = np.array([f"{i}-{k}" for k in range(j * 50)], object)
        assert m.run([x, x])[0].tolist() == [s + s for s in x]


@pytest.mark.parametrize("pattern,yes,no", [
    (r"\pL+", ["añЖ中", "a"], ["1", "", "a1"]), (r"\p{Lu}\p{Ll}*", ["Ärger", "Ω"], ["ärger", "A1"]), (r"\P{L}+", ["1 .", "٣"], ["a", "1a"]),
    (r"[\p{Nd}_]+", ["1_٣", "_"], ["a", "Ⅷ"]), (r"\p{^Zs}+", ["ab"], ["a b"]), (r"[^\pP]+", ["ab1"], ["a!"]), (r"\p{Any}*", ["", "x\u0378"], []),
    (r"\p{Sc}\pN+", ["€12", "$½"], ["12€"]), (r"\p{Greek}+", ["αΩ", "ἀ"], ["a", "ж", ""]), (r"\p{Han}+[\p{Hiragana}\p{Katakana}]*", ["漢字かナ", "字"], ["かな", "a"]),
    (r"\P{Latin}+", ["ж1"], ["é"]), (r"[\p{^Old_Italic}]+", ["ab"], ["\U00010300"]), (r"\p{Common}+", ["1 ."], ["a"])])
def test_categories_of_unicode(pattern, yes, no):
    x = np.array(yes + no, object)
    node = onnx.helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [len(x)])],
                                                          [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, [len(x)])]),
                                   opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    assert ge.compile(model).run([x])[0].tolist() == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize("pattern", [r"\p{Xx}", r"\p{Lu", r"\p", r"[\p{}]", r"\p{Greeks}", r"\p{greek}", r"\p{Unknown}"])
def test_wrong_categories_of_unicode(pattern):
    node = onnx.helper.make_node("RegexFullMatch", ["x"], ["y"], name="the_node", pattern=pattern)
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [1])],
                                                          [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, [1])]),
                                   opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    with pytest.raises(ge.Error, match="the_node"):
        ge.compile(model)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("shape", [(6, 2), (0, 2), (1, 1)])
def test_unique_strings(axis, in_order, shape):
    words = np.array(["b", "a", "", "ü", "b", "a"], object)
    x = words[np.random.default_rng(1).integers(0, len(words), shape)]
    attributes = {} if axis is None else {"axis": axis}
    node = onnx.helper.make_node("Unique", ["x"], ["y", "first", "which", "count"], sorted=in_order, **attributes)
    info = onnx.helper.make_tensor_value_info
    outputs = [info("y", onnx.TensorProto.STRING, None)] + [info(n, onnx.TensorProto.INT64, None) for n in ("first", "which", "count")]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [info("x", onnx.TensorProto.STRING, list(shape))], outputs),
                                   opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    got = ge.compile(model).run([x])
    # By the places of the words in order, whose numbers compare as the words do.
    numbers = np.searchsorted(sorted(set(words)), x.reshape(-1).tolist()).reshape(shape) if x.size else np.zeros(shape, int)
    y, first, which, count = np.unique(numbers, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    which = which.reshape(-1)
    if not in_order:
        order = np.argsort(first)
        y, first, count = np.take(y, order, axis=axis or 0), first[order], count[order]
        which = np.argsort(order)[which]
    assert [g.tolist() for g in got[1:]] == [w.tolist() for w in (first, which, count)]
    assert got[0].tolist() == np.array(sorted(set(words)), object)[y].tolist() and got[0].shape == y.shape


TOKENS = ["Hello, World", "a bb  ccc", "", "äöü x", "x", ",,", "日本 語"]


def tokenizer(**attrs):
    return one("Tokenizer", {"x": (STRING, ["n"])}, domain="com.microsoft", **{"mark": 0, "mincharnum": 1, "pad_value": "#"} | attrs)


@pytest.mark.parametrize("attrs", [{"separators": [""]}, {"tokenexp": "."}, {"separators": [" "]}, {"separators": [" ", ","]}, {"separators": ["[, ]+"]}, {"separators": ["l+", "o"]},
                                   {"tokenexp": "[a-zA-Z0-9_]+"}, {"tokenexp": "[a-z]+", "mark": 1}, {"tokenexp": r"\w+|[^\w\s]", "mincharnum": 2}, {"tokenexp": "a|ab|.b"},
                                   {"tokenexp": r"\bb+\b"}, {"separators": [" "], "mincharnum": 3, "mark": 1, "pad_value": ""}, {"tokenexp": "nothing", "mark": 1}, {"tokenexp": r"\pL+"}])
def test_tokens(attrs):
    same(tokenizer(**attrs), [np.array(TOKENS, object)])
    same(tokenizer(**attrs), [np.array(["", ""], object)])


@pytest.mark.parametrize("attrs", [{}, {"separators": [" "], "tokenexp": "a"}, {"tokenexp": "("}, {"separators": ["a", "["]}, {"tokenexp": ".", "mincharnum": 2}, {"tokenexp": "a", "mincharnum": 0}])
def test_wrong_tokenizers(attrs):
    with pytest.raises(ge.Error, match="Tokenizer"):
        ge.compile(tokenizer(**attrs))
