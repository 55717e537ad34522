"""What the library says about itself: its version, and what it was built for."""

import ctypes

from localspec.engine.llama.library import lib, version

from llama_cpp._ggml import libggml as _ggml  # isort: skip

_ggml.ggml_backend_reg_count.restype = ctypes.c_size_t
_ggml.ggml_backend_reg_get.argtypes = [ctypes.c_size_t]
_ggml.ggml_backend_reg_get.restype = ctypes.c_void_p
_ggml.ggml_backend_reg_name.argtypes = [ctypes.c_void_p]
_ggml.ggml_backend_reg_name.restype = ctypes.c_char_p


def backends() -> list[str]:
    """The back ends that are compiled in, by ggml's names: "CPU", "CUDA", "MTL", "Vulkan"."""
    names = (_ggml.ggml_backend_reg_name(_ggml.ggml_backend_reg_get(i)) for i in range(_ggml.ggml_backend_reg_count()))
    return [name.decode("utf-8", "replace") for name in names]


def processor_features() -> list[str]:
    """What the CPU back end was compiled to use, as in "AVX2"."""
    text = lib.llama_print_system_info().decode("utf-8", "replace")
    pairs = (part.rsplit(":", 1)[-1].partition("=") for part in text.split("|"))
    return [name.strip() for name, _, value in pairs if value.strip() == "1"]


def library_versions() -> dict[str, str]:
    """Of llama-cpp-python, and of the llama.cpp inside it where that tells its own."""
    found = {"llama-cpp-python": version()}
    for name, function in (("llama.cpp", getattr(lib, "llama_version", None)), ("ggml", _text_of("ggml_version"))):
        if function and (text := function()):
            found[name] = text.decode("utf-8", "replace")
    commit = _text_of("ggml_commit")
    if commit and (text := commit()):
        found["commit"] = text.decode("utf-8", "replace")
    return found


def _text_of(name: str) -> "ctypes._NamedFuncPointer | None":
    """A function without arguments that returns a text; not every version of the library has all of them."""
    function: ctypes._NamedFuncPointer | None = getattr(_ggml, name, None)
    if function is not None:
        function.restype = ctypes.c_char_p
    return function
