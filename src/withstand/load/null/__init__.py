"""The null server: answers that cost nothing to make, written at known times, to find out what the client can carry.

A process of its own (``server``), its prepared bytes (``answers``), what passes between it and whoever asks
(``talk``), and the asker's side (``host``). It knows nothing of records or verdicts.
"""

from withstand.load.null.host import NullServer
from withstand.load.null.talk import Account, Begin, Served

__all__ = ["Account", "Begin", "NullServer", "Served"]
