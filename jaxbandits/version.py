"""Which version this is; what is stored names it."""

VERSION = "0.2.0"
