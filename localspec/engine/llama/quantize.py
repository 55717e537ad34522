"""Another quantization of a model file, through llama.cpp."""

import os
from pathlib import Path

from localspec.engine.errors import ModelError
from localspec.engine.gguf import inspect
from localspec.engine.llama.library import forget_errors, lib, recent_errors

_TYPES = {
    "F32": lib.LLAMA_FTYPE_ALL_F32,
    "F16": lib.LLAMA_FTYPE_MOSTLY_F16,
    "Q8_0": lib.LLAMA_FTYPE_MOSTLY_Q8_0,
    "Q4_0": lib.LLAMA_FTYPE_MOSTLY_Q4_0,
    "Q4_1": lib.LLAMA_FTYPE_MOSTLY_Q4_1,
    "Q4_K_M": lib.LLAMA_FTYPE_MOSTLY_Q4_K_M,
    "Q6_K": lib.LLAMA_FTYPE_MOSTLY_Q6_K,
    "Q2_K": lib.LLAMA_FTYPE_MOSTLY_Q2_K,
}


def quantize(source: Path, target: Path, kind: str, *, threads: int = 0) -> Path:
    """Write `source` again with the weights in `kind` (such as "Q2_K"), also from an already quantized file.

    `threads`: 0 for all. Raises ModelError, and leaves no half file under the target's name.
    """
    if kind not in _TYPES:
        raise ModelError(f"'{kind}' is not a known quantization; choose one of {', '.join(_TYPES)}.")
    inspect(source)
    params = lib.llama_model_quantize_default_params()
    params.ftype = _TYPES[kind]
    params.nthread = threads
    params.allow_requantize = True
    part = target.with_name(target.name + ".part")
    forget_errors()
    if lib.llama_model_quantize(os.fsencode(source), os.fsencode(part), params) != 0:
        part.unlink(missing_ok=True)
        detail = (recent_errors() or ["no reason given"])[-1]
        raise ModelError(f"{source.name} could not be written as {kind} ({detail}); check the free disk space.")
    return part.replace(target)
