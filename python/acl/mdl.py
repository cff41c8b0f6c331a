"""acl.mdl: models, their descriptions, datasets, execution."""

import ctypes

import numpy as np

import ge

from . import _state, rt, util
from ._state import (BAD_ALLOC, GE_FAILURE, INPUT_NOT_MATCH, INTERNAL_ERROR, INVALID_FILE, INVALID_MODEL_ID, INVALID_PARAM,
                     NOT_DYNAMIC_MODEL, NOT_INITIALIZED, OUTPUT_NOT_MATCH, PARSE_MODEL, SUCCESS)

# aclDataType
_ACL_TYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8,
              "int64": 9, "uint64": 10, "float64": 11, "bool": 12, "complex64": 16, "complex128": 17, "bfloat16": 27}
_NO_LIMIT = 2**63 - 1
_SHAPE_INPUT = "ascend_mbatch_shape_data"


# GE's codes as ACL's.
_CODES = {"E10410": INVALID_FILE, "E13001": INVALID_FILE, "E13003": INVALID_FILE, "E13005": PARSE_MODEL,
          "E13023": BAD_ALLOC, "E40001": INPUT_NOT_MATCH, "E40003": BAD_ALLOC, "E19999": INTERNAL_ERROR}


class _Loaded:
    def __init__(self, model):
        self.model = model
        self.symbols = model._native.symbols()
        self.dynamic = any(not isinstance(d, int) for p in model.inputs for d in p.shape)
        self.output_shapes = None  # of the last execution or set_dynamic_*


class _Desc:
    def __init__(self):
        self.loaded = None


class _Dataset:
    def __init__(self):
        self.buffers = []
        self.sizes = {}  # set by set_dynamic_*


def _load(source):
    if not _state.initialized:
        return 0, _state.failed(NOT_INITIALIZED, "acl.init() was not called")
    try:
        return _state.keep(_Loaded(ge.load(source))), SUCCESS
    except ge.Error as e:
        return 0, _state.failed(_CODES.get(e.code, PARSE_MODEL), e)
    except TypeError as e:
        return 0, _state.failed(INVALID_PARAM, e)


def load_from_file(path):
    return _load(path)


def load_from_mem(ptr, size):
    if not ptr or size <= 0:
        return 0, _state.failed(INVALID_PARAM, f"a model of {size} bytes at {ptr}")
    return _load(util.ptr_to_bytes(ptr, size))


def load_from_file_with_mem(path, work_ptr, work_size, weight_ptr, weight_size):
    """The memory handed in is not needed: weights are mapped from the file, the arena is the model's own."""
    return _load(path)


def unload(model_id):
    """Executions in flight and descriptions keep what they need."""
    if _state.drop(model_id, _Loaded) == SUCCESS:
        return SUCCESS
    return _state.failed(INVALID_MODEL_ID, f"there is no model {model_id}")


def query_size(path):
    """(bytes of working memory, of weights, ret); 0 working memory where the sizes are known only when running."""
    try:
        memory = ge.load(path).report()["memory"]
    except ge.Error as e:
        return 0, 0, _state.failed(_CODES.get(e.code, PARSE_MODEL), e)
    return memory.get("arena", 0), memory.get("weights", 0), SUCCESS


# --- descriptions

def create_desc():
    return _state.keep(_Desc())


def get_desc(desc, model_id):
    d, loaded = _state.find(desc, _Desc), _state.find(model_id, _Loaded)
    if not d:
        return _state.failed(INVALID_PARAM, f"there is no description {desc}")
    if not loaded:
        return _state.failed(INVALID_MODEL_ID, f"there is no model {model_id}")
    d.loaded = loaded
    return SUCCESS


def destroy_desc(desc):
    return _state.drop(desc, _Desc)


def _ports(desc, outputs):
    d = _state.find(desc, _Desc)
    if not d or not d.loaded:
        return []
    return d.loaded.model.outputs if outputs else d.loaded.model.inputs


def _port(desc, index, outputs):
    ports = _ports(desc, outputs)
    return ports[index] if 0 <= index < len(ports) else None


def get_num_inputs(desc):
    return len(_ports(desc, False))


def get_num_outputs(desc):
    return len(_ports(desc, True))


def get_input_name_by_index(desc, index):
    p = _port(desc, index, False)
    return p.name if p else ""


def get_output_name_by_index(desc, index):
    p = _port(desc, index, True)
    return p.name if p else ""


def get_input_index_by_name(desc, name):
    ports = _ports(desc, False)
    for i, p in enumerate(ports):
        if p.name == name:
            return i, SUCCESS
    d = _state.find(desc, _Desc)
    if name == _SHAPE_INPUT and d and d.loaded:
        return (len(ports), SUCCESS) if d.loaded.dynamic else (-1, NOT_DYNAMIC_MODEL)
    return -1, INVALID_PARAM


def get_output_index_by_name(desc, name):
    for i, p in enumerate(_ports(desc, True)):
        if p.name == name:
            return i, SUCCESS
    return -1, INVALID_PARAM


def get_input_data_type(desc, index):
    p = _port(desc, index, False)
    return _ACL_TYPES.get(p.dtype.name, -1) if p else -1


def get_output_data_type(desc, index):
    p = _port(desc, index, True)
    return _ACL_TYPES.get(p.dtype.name, -1) if p else -1


def get_input_format(desc, index):
    """2: ND."""
    return 2


get_output_format = get_input_format


def _dims(desc, index, outputs):
    p = _port(desc, index, outputs)
    if not p:
        return {}, INVALID_PARAM
    dims = [d if isinstance(d, int) else -1 for d in p.shape]
    return {"name": p.name, "dimCount": len(dims), "dims": dims}, SUCCESS


def get_input_dims(desc, index):
    return _dims(desc, index, False)


get_input_dims_v2 = get_input_dims


def get_output_dims(desc, index):
    return _dims(desc, index, True)


def get_cur_output_dims(desc, index):
    """The sizes of the last execution, or those that set_dynamic_* led to; before, the model's own."""
    d = _state.find(desc, _Desc)
    result, ret = _dims(desc, index, True)
    if ret == SUCCESS and d.loaded.output_shapes:
        shape = d.loaded.output_shapes[index]
        result.update(dims=list(shape), dimCount=len(shape))
    return result, ret


def _size(desc, index, outputs):
    """Bytes of the port, with every named size at its most; 0 where there is no such limit."""
    p, d = _port(desc, index, outputs), _state.find(desc, _Desc)
    if not p:
        return 0
    most = [s if isinstance(s, int) else d.loaded.symbols.get(s, (0, _NO_LIMIT))[1] for s in p.shape]
    return 0 if _NO_LIMIT in most else int(np.prod(most, dtype=np.int64)) * p.dtype.itemsize


def get_input_size_by_index(desc, index):
    return _size(desc, index, False)


def get_output_size_by_index(desc, index):
    return _size(desc, index, True)


def get_dynamic_batch(desc):
    """One file serves every batch: there are no gears."""
    return {"batchCount": 0, "batch": []}, SUCCESS


# --- datasets

def create_dataset():
    return _state.keep(_Dataset())


def destroy_dataset(dataset):
    return _state.drop(dataset, _Dataset)


def add_dataset_buffer(dataset, buffer):
    d = _state.find(dataset, _Dataset)
    if not d or not _state.find(buffer, _state.DataBuffer):
        return dataset, INVALID_PARAM
    d.buffers.append(buffer)
    return dataset, SUCCESS


def get_dataset_num_buffers(dataset):
    d = _state.find(dataset, _Dataset)
    return len(d.buffers) if d else 0


def get_dataset_buffer(dataset, index):
    d = _state.find(dataset, _Dataset)
    return d.buffers[index] if d and 0 <= index < len(d.buffers) else None


def _set_dynamic(model_id, dataset, sizes):
    loaded, d = _state.find(model_id, _Loaded), _state.find(dataset, _Dataset)
    if not loaded:
        return _state.failed(INVALID_MODEL_ID, f"there is no model {model_id}")
    if not d:
        return _state.failed(INVALID_PARAM, f"there is no dataset {dataset}")
    if not loaded.dynamic:
        return _state.failed(NOT_DYNAMIC_MODEL, "all sizes of the model are fixed")
    shapes = _input_shapes(loaded.model, sizes)
    try:
        if shapes is not None:
            loaded.output_shapes = loaded.model._native.output_shapes(shapes)
    except ge.Error as e:
        return _state.failed(INVALID_PARAM, e)
    d.sizes = sizes
    return SUCCESS


def set_dynamic_batch_size(model_id, dataset, index, batch):
    return _set_dynamic(model_id, dataset, {"batch": batch})


def set_dynamic_hw_size(model_id, dataset, index, height, width):
    return _set_dynamic(model_id, dataset, {"hw": (height, width)})


def set_input_dynamic_dims(model_id, dataset, index, dims):
    """dims: {'dims': [...]} or the list itself, the sizes of all inputs one after another."""
    values = dims["dims"][:dims.get("dimCount", len(dims["dims"]))] if isinstance(dims, dict) else dims
    loaded = _state.find(model_id, _Loaded)
    axes = sum(len(p.shape) for p in loaded.model.inputs) if loaded else len(values)
    if len(values) != axes:
        return _state.failed(INVALID_PARAM, f"{len(values)} sizes for inputs that have {axes} axes together")
    return _set_dynamic(model_id, dataset, {"dims": list(values)})


def _shape(port, sizes, symbols, given):
    """The port's shape as far as it is known: fixed, as set_dynamic_* said, or from an input before; else None."""
    if given:
        return [given.pop(0) for _ in port.shape]
    shape = []
    for axis, d in enumerate(port.shape):
        if isinstance(d, int):
            shape.append(d)
        elif "batch" in sizes and axis == 0:
            shape.append(sizes["batch"])
        elif "hw" in sizes and len(port.shape) == 4 and axis >= 2:
            shape.append(sizes["hw"][axis - 2])
        else:
            shape.append(symbols.get(d))
    return shape


def _input_shapes(model, sizes, buffers=None):
    """The shapes of all inputs. One size of an input that nothing tells follows from the bytes of its buffer.

    None where sizes are not known and there are no buffers.
    """
    given, symbols, shapes = list(sizes.get("dims", [])), {}, []
    for i, p in enumerate(model.inputs):
        shape = _shape(p, sizes, symbols, given)
        unknown = [k for k, d in enumerate(shape) if d is None]
        if unknown and buffers is None:
            return None
        if len(unknown) > 1:
            raise ge.Error(f"The sizes of input '{p.name}' are not known.", "E40001", fix="call set_input_dynamic_dims")
        if unknown:
            rest = p.dtype.itemsize * int(np.prod([d for d in shape if d is not None], dtype=np.int64))
            if rest and buffers[i].size % rest:
                raise ge.Error(f"Input '{p.name}' has {buffers[i].size} bytes, which is no multiple of {rest}.", "E40001")
            shape[unknown[0]] = buffers[i].size // rest if rest else 0
        for d, value in zip(p.shape, shape):
            if not isinstance(d, int):
                symbols.setdefault(d, value)
        shapes.append(shape)
    return shapes


def _input_arrays(model, dataset, buffers):
    arrays = []
    for p, shape, buffer in zip(model.inputs, _input_shapes(model, dataset.sizes, buffers), buffers):
        needed = int(np.prod(shape, dtype=np.int64)) * p.dtype.itemsize
        if needed < 0 or needed > buffer.size:
            raise ge.Error(f"Input '{p.name}' has the shape {shape} and {needed} bytes, its buffer has {buffer.size}.", "E40001")
        arrays.append(util.view(buffer.ptr, shape, p.dtype))
    return arrays


def _deliver(port, result, buffer):
    """One output into its buffer; an empty buffer, or one that was, gets memory from acl.rt.malloc."""
    if buffer.allocated and buffer.ptr == buffer.allocated and result.nbytes > buffer.size:
        rt.free(buffer.ptr)
        buffer.ptr = buffer.size = 0
    if not buffer.ptr:
        ptr, ret = rt.malloc(max(result.nbytes, 1))
        if ret != SUCCESS:
            return ret
        buffer.ptr, buffer.size, buffer.allocated = ptr, result.nbytes, ptr
    if result.nbytes > buffer.size:
        return _state.failed(OUTPUT_NOT_MATCH, f"output '{port.name}' has {result.nbytes} bytes, its buffer {buffer.size}")
    ctypes.memmove(buffer.ptr, result.ctypes.data, result.nbytes)
    return SUCCESS


def execute(model_id, inputs, outputs):
    loaded = _state.find(model_id, _Loaded)
    source, target = _state.find(inputs, _Dataset), _state.find(outputs, _Dataset)
    if not loaded:
        return _state.failed(INVALID_MODEL_ID, f"there is no model {model_id}")
    if not source or not target:
        return _state.failed(INVALID_PARAM, "there is no such dataset")
    model = loaded.model
    given = [_state.find(b, _state.DataBuffer) for b in source.buffers]
    wanted = [_state.find(b, _state.DataBuffer) for b in target.buffers]
    if None in given or None in wanted or len(given) < len(model.inputs) or len(wanted) < len(model.outputs):
        return _state.failed(INVALID_PARAM, "a dataset has too few buffers, or one that was destroyed")
    try:
        results = model.run(_input_arrays(model, source, given))
    except ge.Error as e:
        return _state.failed(_CODES.get(e.code, GE_FAILURE), e)
    for port, result, buffer in zip(model.outputs, results, wanted):
        ret = _deliver(port, result, buffer)
        if ret != SUCCESS:
            return ret
    loaded.output_shapes = [r.shape for r in results]
    return SUCCESS


def execute_async(model_id, inputs, outputs, stream):
    """The work starts when the stream comes to it; synchronize_stream waits for it and gives its code."""
    return rt.enqueue(stream, lambda: execute(model_id, inputs, outputs))
