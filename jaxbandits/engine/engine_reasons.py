"""Why an engine plays, as `Runs.meta["engine_reason"]` says it in a few words."""

# Beginnings of reasons that need no line of their own: nothing kept a faster engine from playing.
FASTEST, ASKED = "fastest", "asked"
CONTEXTUAL: str = f"{FASTEST}: engines make no difference to a contextual problem"


def hindrance(reason: str) -> str:
    """What kept a faster engine from playing, by an `engine_reason`; "" where nothing did.

    >>> hindrance("fastest; native lacks sorting"), hindrance("asked")
    ('native lacks sorting', '')
    """
    parts = reason.split("; ")
    return "; ".join(part for part in parts if part and not part.startswith((ASKED, FASTEST)))
