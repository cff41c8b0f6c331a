"""Devices and memory: there is the CPU, and its memory is GE's own business."""

import enum

from ._enums import OrtAllocatorType, OrtDeviceMemoryType, OrtHardwareDeviceType, OrtMemType
from ._providers import CPU

_TYPES = {"cpu": 0, "cuda": 1, "gpu": 1, "webgpu": 1, "fpga": 2, "npu": 3, "cann": 3, "dml": 4}
_VENDORS = {"cuda": 0x10DE, "dml": 0x1414, "cann": 0x19E5}


class OrtDeviceVendorId(enum.IntEnum):
    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class NativeDevice:
    """A device as the native module knows it: OrtDevice(type, memory, [vendor,] id)."""

    def __init__(self, device_type, mem_type, *vendor_and_id):
        self._type, self._memory = device_type, mem_type
        self._vendor, self._id = vendor_and_id if len(vendor_and_id) == 2 else (0, *vendor_and_id)

    def device_type(self):
        return self._type

    def mem_type(self):
        return self._memory

    def vendor_id(self):
        return self._vendor

    def device_id(self):
        return self._id

    @staticmethod
    def default_memory():
        return 0


def _number_of(name):
    return staticmethod(lambda: _TYPES[name])


for _name in _TYPES:
    setattr(NativeDevice, _name, _number_of(_name))
NativeDevice.__name__ = NativeDevice.__qualname__ = "OrtDevice"


class OrtDevice:
    """A device as programs name it: OrtDevice.make("cpu", 0)."""

    def __init__(self, native):
        if not isinstance(native, NativeDevice):
            raise ValueError("`Provided object` needs to be of type "
                             "`onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice`")
        self._ort_device = native

    @staticmethod
    def make(name, device_id, vendor_id=-1):
        if name not in _TYPES or name == "fpga":
            raise Exception("Unsupported device type: " + name)
        vendor = _VENDORS.get(name, 0) if vendor_id < 0 else int(vendor_id)
        return OrtDevice(NativeDevice(_TYPES[name], 0, vendor, device_id))

    def _get_c_device(self):
        return self._ort_device

    def device_id(self):
        return self._ort_device.device_id()

    def device_type(self):
        return self._ort_device.device_type()

    def device_vendor_id(self):
        return self._ort_device.vendor_id()

    def device_mem_type(self):
        return self._ort_device.mem_type()


def get_ort_device_type(name):
    return OrtDevice.make(name, 0).device_type()


def check_cpu(device):
    if device.device_type() != 0:
        raise RuntimeError("Can't allocate memory on the device: GE runs on the CPU only.")


class OrtMemoryInfo:
    def __init__(self, name="Cpu", allocator_type=OrtAllocatorType.ORT_ARENA_ALLOCATOR, device_id=0, mem_type=OrtMemType.DEFAULT):
        self.name, self.allocator_type, self.device_id, self.mem_type = name, allocator_type, device_id, mem_type
        self.device_mem_type, self.device_vendor_id = OrtDeviceMemoryType.DEFAULT, 0


class OrtArenaCfg:
    """Kept as given: GE plans its arena when it compiles."""

    def __init__(self, *sizes):
        given = dict(sizes[0]) if sizes and isinstance(sizes[0], dict) else dict(zip(
            ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk"), sizes))
        for name in ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
                     "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes"):
            setattr(self, name, given.get(name, 0 if name == "max_mem" else -1))


class OrtHardwareDevice:
    type, vendor, vendor_id, device_id = OrtHardwareDeviceType.CPU, "", 0, 0
    metadata = {}


class OrtEpDevice:
    ep_name, ep_vendor = CPU, "GE"
    device = OrtHardwareDevice()

    def __init__(self, version):
        self.ep_metadata, self.ep_options = {"version": version}, {}

    def memory_info(self, memory_type):
        return OrtMemoryInfo()
