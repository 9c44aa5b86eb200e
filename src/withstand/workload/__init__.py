"""WHAT is sent and WHEN: seeded and pure. The same seed gives byte-identical requests, in any process."""

from withstand.workload.dataset import Dataset, Session, Turn, check_name, open_dataset
from withstand.workload.seed import Seed
from withstand.workload.stream import requests
from withstand.workload.tokenizers import Tokenizer, open_tokenizer

__all__ = [
    "Dataset",
    "Seed",
    "Session",
    "Tokenizer",
    "Turn",
    "check_name",
    "open_dataset",
    "open_tokenizer",
    "requests",
]
