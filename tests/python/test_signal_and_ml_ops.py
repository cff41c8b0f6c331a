"""Operators that ONNX's node tests touch lightly, against ONNX Runtime, numpy or their definition on unusual sizes."""

import itertools

import ge
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(5)
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(op, inputs, outputs=1, opset=20, ml=3, domain="", constants=None, **attrs):
    """One node; inputs: name -> (type, dims). constants: name -> array, after the inputs."""
    names = list(inputs) + list(constants or {})
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attrs)
    info = [helper.make_tensor_value_info(n, t, d) for n, (t, d) in inputs.items()]
    out = [helper.make_empty_tensor_value_info(o) for o in node.output]
    init = [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()]
    graph = helper.make_graph([node], "g", info, out, init)
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, ml)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def runtime(model, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], feeds)))


def same(model, feeds, rtol=1e-4, atol=1e-5):
    got, want = ge.compile(model).run(list(feeds)), runtime(model, feeds)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    return got


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(mode, padding, align):
    m = model_of("GridSample", {"x": (F32, ["n", 3, "h", "w"]), "g": (F32, ["n", "a", "b", 2])}, mode=mode, padding_mode=padding, align_corners=align)
    # Far outside too, so that reflection goes around several times.
    same(m, [normal(2, 3, 5, 7), 2 * normal(2, 4, 6, 2)])
    if mode != "cubic":
        m = model_of("GridSample", {"x": (F32, [1, 2, 3, 4, 5]), "g": (F32, [1, 2, 3, 4, 3])}, mode=mode, padding_mode=padding, align_corners=align)
        same(m, [normal(1, 2, 3, 4, 5), normal(1, 2, 3, 4, 3)])


def test_grid_sample_empty_and_nan():
    m = ge.compile(model_of("GridSample", {"x": (F32, ["n", "c", "h", "w"]), "g": (F32, ["n", "a", "b", 2])}))
    assert m.run([normal(0, 3, 4, 4), normal(0, 2, 2, 2)])[0].shape == (0, 3, 2, 2)
    assert m.run([normal(1, 3, 4, 4), normal(1, 0, 2, 2)])[0].shape == (1, 3, 0, 2)
    y = m.run([np.ones((1, 1, 4, 4), np.float32), np.array([np.nan, np.inf, 0, 0], np.float32).reshape(1, 1, 2, 2)])[0]
    assert y[0, 0, 0, 1] == 1


@pytest.mark.parametrize("mode,ratio,pixel", list(itertools.product(["avg", "max"], [0, 2], ["half_pixel", "output_half_pixel"])))
def test_roi_align(mode, ratio, pixel):
    m = model_of("RoiAlign", {"x": (F32, ["n", 3, 9, 11]), "rois": (F32, ["r", 4]), "b": (I64, ["r"])}, mode=mode, sampling_ratio=ratio,
                 coordinate_transformation_mode=pixel, output_height=3, output_width=2, spatial_scale=0.5)
    rois = np.array([[0, 0, 10, 10], [3, 2, 19, 15], [-4, -4, 30, 30], [5, 5, 6, 5.5]], np.float32)
    same(m, [normal(2, 3, 9, 11), rois, np.array([0, 1, 1, 0])])
    with pytest.raises(ge.Error, match="batch index 2"):
        ge.compile(m).run([normal(2, 3, 9, 11), rois, np.array([0, 1, 2, 0])])


def test_max_unpool_undoes_max_pool():
    m = model_of("MaxUnpool", {"x": (F32, ["n", 2, 2, 3]), "i": (I64, ["n", 2, 2, 3])}, kernel_shape=[2, 2], strides=[2, 2], opset=11)
    x = normal(2, 2, 4, 6)
    index = np.arange(x.size).reshape(x.shape)
    windows = lambda a: a.reshape(2, 2, 2, 2, 3, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 2, 2, 3, 4)
    best = windows(x).argmax(-1)[..., None]
    pooled, at = np.take_along_axis(windows(x), best, -1)[..., 0], np.take_along_axis(windows(index), best, -1)[..., 0]
    y = ge.compile(m).run([pooled, at])[0]
    assert np.array_equal(y, np.where(np.isin(index, at), x, 0))
    with pytest.raises(ge.Error, match="outside"):
        ge.compile(m).run([pooled, at + 1000])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 13, 30, 128, 400, 1009])
@pytest.mark.parametrize("onesided", [0, 1])
def test_dft_sizes(n, onesided):
    x = normal(3, n, 1)
    m = model_of("DFT", {"x": (F32, ["b", n, 1])}, opset=17, onesided=onesided, axis=1)
    want = (np.fft.rfft if onesided else np.fft.fft)(x[..., 0].astype(np.float64), axis=1)
    got = ge.compile(m).run([x])[0]
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-5, atol=1e-4)
    z = normal(3, n, 2)
    back = ge.compile(model_of("DFT", {"x": (F32, ["b", "n", 2])}, opset=17, inverse=1, axis=-2)).run([z])[0]
    want = np.fft.ifft(z[..., 0] + 1j * z[..., 1], axis=1)
    np.testing.assert_allclose(back[..., 0] + 1j * back[..., 1], want, rtol=1e-5, atol=1e-5)


def test_stft_of_any_length():
    window = np.hanning(12).astype(np.float32)
    m = ge.compile(model_of("STFT", {"x": (F32, ["b", "n", 1])}, constants={"step": np.array(5), "w": window}, opset=17))
    for n in (12, 13, 40, 41):
        x = normal(2, n, 1)
        frames = np.stack([x[:, i:i + 12, 0] for i in range(0, n - 11, 5)], 1) * window
        got = m.run([x])[0]
        np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], np.fft.rfft(frames, axis=2), rtol=1e-4, atol=1e-4)
    assert m.run([normal(2, 11, 1)])[0].shape == (2, 0, 7, 2)


def test_col2im_adds_what_overlaps():
    import torch
    m = model_of("Col2Im", {"x": (F32, ["n", "rows", "l"])}, constants={"image": np.array([7, 9]), "block": np.array([2, 3])}, opset=18,
                 strides=[2, 1], pads=[1, 0, 1, 2], dilations=[1, 2])
    columns = 4 * 7
    x = normal(2, 18, columns)
    want = torch.nn.functional.fold(torch.from_numpy(x), (7, 11), (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
    np.testing.assert_allclose(ge.compile(m).run([x])[0], want.numpy()[..., :9], rtol=1e-5, atol=1e-5)


# ---- random numbers


def draw(op, seed=None, inputs=(), feeds=(), **attrs):
    if seed is not None:
        attrs["seed"] = seed
    return ge.compile(model_of(op, dict(inputs), **attrs)).run(list(feeds))[0]


def test_random_numbers():
    u = draw("RandomUniform", 7.0, low=-2.0, high=3.0, shape=[200, 300])
    assert np.array_equal(u, draw("RandomUniform", 7.0, low=-2.0, high=3.0, shape=[200, 300]))
    assert not np.array_equal(u, draw("RandomUniform", 8.0, low=-2.0, high=3.0, shape=[200, 300]))
    assert u.min() >= -2 and u.max() < 3 and abs(u.mean() - 0.5) < 0.03 and abs(u.std() - 5 / 12**0.5) < 0.03
    n = draw("RandomNormal", 1.0, mean=4.0, scale=2.0, shape=[60000])
    assert abs(n.mean() - 4) < 0.04 and abs(n.std() - 2) < 0.04 and abs(np.mean(((n - 4) / 2) ** 4) - 3) < 0.2
    assert abs(np.corrcoef(n[:-1], n[1:])[0, 1]) < 0.02
    x = {"x": (F32, ["a", "b"])}
    like = draw("RandomNormalLike", 1.0, x, [np.zeros((3, 5), np.float32)], dtype=TensorProto.DOUBLE)
    assert like.dtype == np.float64 and like.shape == (3, 5)


def test_random_without_seed():
    """The same in every run of one model, but not the same from node to node."""
    nodes = [helper.make_node("RandomUniform", [], [y], shape=[100]) for y in ("a", "b")]
    out = [helper.make_tensor_value_info(y, F32, [100]) for y in ("a", "b")]
    m = helper.make_model(helper.make_graph(nodes, "g", [], out), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    a, b = ge.compile(m).run([])
    again = ge.compile(m).run([])
    assert np.array_equal(a, again[0]) and np.array_equal(b, again[1]) and not np.array_equal(a, b)


def test_draws():
    p = np.repeat(np.array([[0.0, 0.25, 1.0]], np.float32), 20000, 0)
    hits = draw("Bernoulli", 3.0, {"x": (F32, ["n", 3])}, [p])
    assert hits.dtype == np.float32 and hits[:, 0].max() == 0 and hits[:, 2].min() == 1 and abs(hits[:, 1].mean() - 0.25) < 0.02
    x = np.log(np.array([[1, 2, 0, 5], [1, 0, 0, 0]], np.float32) + 1e-30)
    k = draw("Multinomial", 3.0, {"x": (F32, ["n", 4])}, [x], sample_size=20000, dtype=I64)
    counts = np.bincount(k[0], minlength=4) / 20000
    assert k.dtype == np.int64 and np.abs(counts - np.array([1, 2, 0, 5]) / 8).max() < 0.02 and (k[1] == 0).all()


# ---- ai.onnx.ml

ML = "ai.onnx.ml"


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_classifier(post):
    m = model_of("LinearClassifier", {"x": (F32, ["n", 4])}, outputs=2, domain=ML, ml=1, coefficients=normal(12).tolist(),
                 intercepts=normal(3).tolist(), classlabels_ints=[5, 7, 9], post_transform=post, multi_class=1)
    same(m, [normal(9, 4)])


def test_linear_regressor():
    m = model_of("LinearRegressor", {"x": (F32, ["n", 4])}, domain=ML, ml=1, coefficients=normal(8).tolist(), intercepts=[0.5, -1.0], targets=2)
    same(m, [normal(9, 4)])
    same(m, [normal(0, 4)])


def test_small_ml_operators():
    x = np.array([[1, np.nan, 3], [0, 5, np.nan]], np.float32)
    imputed = model_of("Imputer", {"x": (F32, ["n", 3])}, domain=ML, ml=1, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"))
    same(imputed, [x])
    hot = model_of("OneHotEncoder", {"x": (I64, ["n"])}, domain=ML, ml=1, cats_int64s=[3, 1, 2], zeros=1)
    same(hot, [np.array([1, 2, 3, 4])])
    strict = model_of("OneHotEncoder", {"x": (I64, ["n"])}, domain=ML, ml=1, cats_int64s=[3, 1, 2], zeros=0)
    with pytest.raises(ge.Error, match="4 is none of the categories"):
        ge.compile(strict).run([np.array([1, 4])])
    both = model_of("FeatureVectorizer", {"a": (F32, ["n", 2]), "b": (F32, ["n", 3])}, domain=ML, ml=1, inputdimensions=[2, 3])
    same(both, [normal(4, 2), normal(4, 3)])
    label = model_of("LabelEncoder", {"x": (I64, ["n", 2])}, domain=ML, ml=2, keys_int64s=[2**60, 2**60 + 1, -1], values_floats=[1.5, 2.5, 3.5], default_float=9.0)
    same(label, [np.array([[2**60, 2**60 + 1], [-1, 0]])])


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel, one_class):
    m = model_of("SVMRegressor", {"x": (F32, ["n", 4])}, domain=ML, ml=1, kernel_type=kernel, kernel_params=[0.3, 0.5, 3.0], n_supports=5,
                 support_vectors=normal(20).tolist(), coefficients=normal(5).tolist(), rho=[0.25], one_class=one_class)
    same(m, [normal(9, 4)])


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_svm_classifier(kernel, classes, probabilities, post):
    """Against ONNX Runtime; with SOFTMAX of two classes, which it leaves out, against ONNX's reference."""
    vectors, pairs = classes + 3, classes * (classes - 1) // 2
    coefficients = normal((classes - 1) * vectors)
    coefficients[0] = -1  # two classes without a negative one: the reference does not choose by votes
    more = {"prob_a": (-1 - RNG.random(pairs)).tolist(), "prob_b": normal(pairs).tolist()} if probabilities else {}
    m = model_of("SVMClassifier", {"x": (F32, ["n", 4])}, outputs=2, domain=ML, ml=1, kernel_type=kernel, kernel_params=[0.3, 0.5, 3.0],
                 support_vectors=normal(vectors * 4).tolist(), vectors_per_class=[4] + [1] * (classes - 1), coefficients=coefficients.tolist(),
                 rho=normal(pairs).tolist(), classlabels_ints=list(range(7, 7 + classes)), post_transform=post, **more)
    x = normal(40, 4)
    wants = ReferenceEvaluator(m).run(None, {"x": x}) if classes == 2 and post == "SOFTMAX" else runtime(m, [x])
    for got, want in zip(ge.compile(m).run([x]), wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_svm_classifier_without_vectors(classes):
    """A score and a label for each row of coefficients."""
    k = normal(classes, 4)
    m = model_of("SVMClassifier", {"x": (F32, ["n", 4])}, outputs=2, domain=ML, ml=1, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0],
                 coefficients=k.ravel().tolist(), rho=[0.1], classlabels_ints=list(range(7, 7 + classes)), post_transform="NONE")
    x = normal(40, 4)
    labels, scores = ge.compile(m).run([x])
    np.testing.assert_allclose(scores, x @ k.T + 0.1, rtol=1e-4, atol=1e-5)
    assert np.array_equal(labels, 7 + scores.argmax(1))


def test_max_roi_pool():
    m = model_of("MaxRoiPool", {"x": (F32, ["n", 3, 9, 11]), "rois": (F32, ["r", 5])}, pooled_shape=[3, 2], spatial_scale=0.5)
    rois = np.array([[0, 0, 0, 10, 10], [1, 3, 2, 19, 15], [0, -40, -40, -30, -30], [1, 5, 5, 6, 5.4], [0, 12, 12, 60, 60], [1, 8, 8, 2, 2]], np.float32)
    same(m, [normal(2, 3, 9, 11), rois])
    with pytest.raises(ge.Error, match="batch index 2"):
        ge.compile(m).run([normal(2, 3, 9, 11), np.array([[2, 0, 0, 1, 1]], np.float32)])


def stumps(kind, ids, weights, **attrs):
    """Three trees of two levels over four features, with leaves of one weight each."""
    trees, modes = 3, ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT"]
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    for t in range(trees):
        for i in range(5):
            leaf = i >= 2
            row = (t, i, 0 if leaf else (t + i) % 4, "LEAF" if leaf else modes[(t + i) % 3], 0.0 if leaf else 0.25 * (t - 1 - i),
                   0 if leaf else (1 if i == 0 else 3), 0 if leaf else (2 if i == 0 else 4), t % 2)
            for k, v in zip(nodes, row):
                nodes[k].append(v)
    lists = {f"nodes_{k}": v for k, v in nodes.items()}
    lists |= {f"{kind}_treeids": [t for t in range(trees) for _ in range(3)], f"{kind}_nodeids": [2, 3, 4] * trees,
              f"{kind}_ids": ids, f"{kind}_weights": weights}
    return lists | attrs


def features():
    x = normal(40, 4)
    x[::7, 1] = np.nan
    x[3, 0] = 0.25
    return x


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate):
    # Each row reaches both targets: ONNX Runtime leaves the base value out where none is reached, the standard adds it.
    lists = stumps("target", [0, 0, 0, 1, 1, 1, 0, 1, 0], normal(9).tolist(), n_targets=2, aggregate_function=aggregate, base_values=[0.5, -0.5])
    same(model_of("TreeEnsembleRegressor", {"x": (F32, ["n", 4])}, domain=ML, **lists), [features()])


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_tree_classifier(post):
    # Each row reaches every class: ONNX Runtime does not choose one that no leaf speaks of, whatever the scores.
    lists = stumps("class", [0, 0, 0, 1, 1, 1, 2, 2, 2], normal(9).tolist(), classlabels_int64s=[4, 2, 8], post_transform=post)
    same(model_of("TreeEnsembleClassifier", {"x": (F32, ["n", 4])}, outputs=2, domain=ML, **lists), [features()])


def test_tree_classifier_of_two():
    """Weights for one class only, the other follows."""
    lists = stumps("class", [0] * 9, normal(9).tolist(), classlabels_int64s=[0, 1], post_transform="LOGISTIC")
    same(model_of("TreeEnsembleClassifier", {"x": (F32, ["n", 4])}, outputs=2, domain=ML, **lists), [features()])


def test_tree_without_a_leaf_for_a_target():
    lists = stumps("target", [0] * 9, [1.0] * 9, n_targets=2, base_values=[0.5, -0.5])
    y = ge.compile(model_of("TreeEnsembleRegressor", {"x": (F32, ["n", 4])}, domain=ML, **lists)).run([features()])[0]
    assert (y == np.array([3.5, -0.5], np.float32)).all()


def test_tree_that_names_no_node():
    lists = stumps("target", [0] * 9, [1.0] * 9, n_targets=1)
    lists["nodes_truenodeids"][0] = 77
    with pytest.raises(ge.Error, match="names a node that is not there"):
        ge.compile(model_of("TreeEnsembleRegressor", {"x": (F32, ["n", 4])}, domain=ML, **lists))


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths,skips", [((1, 1), 0), ((1, 1), 5), ((1, 3), 0), ((1, 3), 2), ((2, 3), 0), ((2, 2), 4), ((3, 3), 9)], ids=str)
@pytest.mark.parametrize("weights", [None, [2.0, 0.5, -1.0, 3.0, 1.5, 0.25, 7.0]], ids=["plain", "weighted"])
def test_tfidf(mode, lengths, skips, weights):
    pool = [2, 3, 0] + [1, 2] + [2, 2] + [3, 0, 2] + [2, 2, 2]
    attrs = {"ngram_counts": [0, 3, 7], "ngram_indexes": [3, 0, 7, 1, 2, 5, 4], "pool_int64s": pool}
    if weights:
        attrs["weights"] = weights
    for dtype, type_ in ((np.int32, TensorProto.INT32), (np.int64, I64)):
        for shape in ((9,), (4, 7), (3, 1), (2, 0), (0, 3), (30, 50)):
            m = model_of("TfIdfVectorizer", {"x": (type_, ["n", "c"][:len(shape)])}, mode=mode, min_gram_length=lengths[0],
                         max_gram_length=lengths[1], max_skip_count=skips, **attrs)
            x = RNG.integers(0, 4, shape).astype(dtype)
            if x.size:
                same(m, [x])
            else:
                got = ge.compile(m).run([x])[0]
                assert got.shape == (*shape[:-1], 8) and not got.any()


def test_tfidf_that_is_wrong():
    good = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0, 2],
            "ngram_indexes": [0, 1, 2], "pool_int64s": [5, 6, 5, 6]}
    x = np.array([5, 6, 5, 6], np.int64)
    same(model_of("TfIdfVectorizer", {"x": (I64, ["n"])}, **good), [x])
    for change in ({"mode": "X"}, {"min_gram_length": 0}, {"min_gram_length": 3}, {"max_skip_count": -1}, {"ngram_counts": [0, 1]}, {"ngram_counts": [0, 9]},
                   {"ngram_counts": [-1, 2]}, {"ngram_indexes": [0, 1]}, {"ngram_indexes": [0, 1, -2]}, {"pool_int64s": [5, 5, 5, 6]}, {"weights": [1.0]}):
        with pytest.raises(ge.Error) as e:
            ge.compile(model_of("TfIdfVectorizer", {"x": (I64, ["n"])}, **{**good, **change})).run([x])
        assert e.value.code == "E14001", (change, str(e.value))
