"""Which of a model's engines gets a request: pure but for the dice that are passed in."""

import random

from withstand.gateway.config import ModelConfig
from withstand.gateway.policies.lots import LeastInFlight, Random
from withstand.gateway.policies.policy import Choose, Header, Policy
from withstand.gateway.policies.prefix import Prefix
from withstand.gateway.policies.session import Session
from withstand.gateway.policies.turns import RoundRobin

__all__ = ["Choose", "Header", "Policy", "Prefix", "policy_of"]


def policy_of(config: ModelConfig, dice: random.Random) -> Policy:
    """The one that a model asks for."""
    match config.policy:
        case "round_robin":
            return RoundRobin()
        case "random":
            return Random(dice)
        case "least_inflight":
            return LeastInFlight(dice)
        case "session":
            return Session(config.session_by, config.load_bound, LeastInFlight(dice))
        case "prefix":
            return Prefix(config.load_bound, dice)
