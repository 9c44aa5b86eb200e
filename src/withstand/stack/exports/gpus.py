"""Types of GPUs as the nodes of a cluster are labelled with them. Pure.

NVIDIA's GPU feature discovery takes the driver's name of a product, dashes for spaces: one type has several labels.
"""

from collections.abc import Mapping
from typing import Any, Final

LABEL: Final = "nvidia.com/gpu.product"
_A100_40: Final = ("NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-PCIE-40GB")
_A100_80: Final = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe")
PRODUCTS: Final[Mapping[str, tuple[str, ...]]] = {
    "A10": ("NVIDIA-A10",),
    "A10G": ("NVIDIA-A10G",),
    "A100": (*_A100_40, *_A100_80),
    "A100-40GB": _A100_40,
    "A100-80GB": _A100_80,
    "B200": ("NVIDIA-B200",),
    "H100": ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "NVIDIA-H100-NVL"),
    "H200": ("NVIDIA-H200", "NVIDIA-H200-NVL"),
    "L4": ("NVIDIA-L4",),
    "L40S": ("NVIDIA-L40S",),
    "T4": ("Tesla-T4",),
    "V100": ("Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-32GB", "Tesla-V100-PCIE-16GB", "Tesla-V100-PCIE-32GB"),
}
"""As Modal and Ray call it → its labels."""


def products(gpu: str) -> tuple[str, ...]:
    """The labels of a type; what is not known is one itself."""
    return PRODUCTS.get(gpu.upper(), (gpu,))


def affinity(gpu: str) -> dict[str, Any]:
    """Of a pod to nodes that have one of them."""
    terms = [{"matchExpressions": [{"key": LABEL, "operator": "In", "values": list(products(gpu))}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
