"""llama.cpp for the engine: the only room that touches llama_cpp.

Wrong arguments to the C API end the process, not the call; everything here checks first and raises instead.
"""

from localspec.engine.llama.chain import Chain, ChainSettings
from localspec.engine.llama.context import Context, ContextSettings
from localspec.engine.llama.devices import Device, devices, system_memory_free
from localspec.engine.llama.library import LOGGER_NAME, LlamaError, version
from localspec.engine.llama.model import LoadCancelledError, Model
from localspec.engine.llama.quantize import quantize
from localspec.engine.llama.state import PIECE_BYTES, fingerprint, load_state, save_state, state_bytes
from localspec.engine.llama.vocabulary import Vocabulary

__all__ = [
    "LOGGER_NAME",
    "PIECE_BYTES",
    "Chain",
    "ChainSettings",
    "Context",
    "ContextSettings",
    "Device",
    "LlamaError",
    "LoadCancelledError",
    "Model",
    "Vocabulary",
    "devices",
    "fingerprint",
    "load_state",
    "quantize",
    "save_state",
    "state_bytes",
    "system_memory_free",
    "version",
]
