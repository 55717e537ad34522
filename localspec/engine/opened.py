"""How a model was opened, as one text: what was found out about it then holds for as long as that text is the same."""

import hashlib
import json

from localspec.engine.cores import performance_cores
from localspec.engine.llama import ContextSettings, devices, version
from localspec.engine.llama.about import backends, library_versions, processor_features
from localspec.engine.saved_state import ModelFile

_DIGEST_LENGTH = 16


def opened_as(file: ModelFile, settings: ContextSettings, gpu_layers: int) -> str:
    """The files as they were when they were loaded, how they are run, and by which build on which devices. Empty where the
    files had gone: then nobody knows what is in memory."""
    if not file.stamps:
        return ""
    # A library of the same version may have been built for another processor, or for a graphics card.
    hidden = (
        file.stamps,
        library_versions(),
        backends(),
        processor_features(),
        [(device.name, device.description) for device in devices()],
    )
    digest = hashlib.sha256(json.dumps(hidden).encode()).hexdigest()[:_DIGEST_LENGTH]
    threads = settings.threads or performance_cores()
    return f"{file.name}/gpu{gpu_layers}/threads{threads}/{settings.kv_type}/llama-cpp-python {version()}/{digest}"
