"""Live use: an algorithm that asks what to pull, and is told real rewards."""

from ..signatures import publish
from .session import Live, Ticket

__all__ = ["Live", "Ticket"]

publish(globals())
