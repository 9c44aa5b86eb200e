"""How far a stage is, as a share, and how long the rest of it may take. Pure."""


def share_done(*, done: int | None, planned: int | None, elapsed_s: float, duration_s: float | None) -> float | None:
    """Between 0 and 1: by requests or by time, whichever is further; None where neither ends the stage."""
    shares = []
    if planned and done is not None:
        shares.append(done / planned)
    if duration_s:
        shares.append(elapsed_s / duration_s)
    return min(max(0.0, *shares), 1.0) if shares else None


def remaining_s(elapsed_s: float, share: float | None) -> float | None:
    """At the pace so far; None before there is one."""
    return elapsed_s * (1 - share) / share if share else None
