"""Live use: an algorithm that asks, and is told rewards of the real world."""

from .session import Live, Ticket

__all__ = ["Live", "Ticket"]
