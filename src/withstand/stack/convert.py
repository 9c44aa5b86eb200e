"""GGUF → the same model with every weight in F16: ``python -m withstand.stack.convert SOURCE TARGET``.

The Q4_1 file that the package index carries is answered from wrongly by today's llama.cpp; its weights in F16 are not.
It runs as a process of its own: numpy and half a gigabyte of weights have no place in the process that measures.
Tensors go one by one, so it takes little memory.
"""

import sys
from pathlib import Path
from typing import Any

_F16_FILE_TYPE = 1


def to_f16(source: Path, target: Path) -> None:
    """Write ``target``; vectors (norms) stay in F32, as llama.cpp wants them."""
    import gguf  # noqa: PLC0415 - the extra `engine`: numpy and gguf are not in the core

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    _copy_facts(reader, writer)
    for tensor in reader.tensors:
        dtype, size = _kind(tensor)
        shape = [int(n) for n in reversed(tensor.shape)]
        writer.add_tensor_info(tensor.name, shape, dtype, int(tensor.n_elements) * size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(weights.astype(_kind(tensor)[0]))
    writer.close()


def _copy_facts(reader: Any, writer: Any) -> None:
    """Everything but what the writer states by itself."""
    import gguf  # noqa: PLC0415 - as above

    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key not in {"general.architecture", "general.file_type"}:
            sub_type = field.types[1] if len(field.types) > 1 else None
            writer.add_key_value(key, field.contents(), field.types[0], sub_type)
    writer.add_file_type(gguf.LlamaFileType(_F16_FILE_TYPE))


def _kind(tensor: Any) -> tuple[Any, int]:
    """The numpy type that a tensor gets, and its bytes."""
    import gguf  # noqa: PLC0415 - as above
    import numpy as np  # noqa: PLC0415 - as above

    return (
        (np.dtype(np.float32), 4) if tensor.tensor_type == gguf.GGMLQuantizationType.F32 else (np.dtype(np.float16), 2)
    )


if __name__ == "__main__":
    to_f16(Path(sys.argv[1]), Path(sys.argv[2]))
