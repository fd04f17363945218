"""``python -m vectorfield`` is the program ``vectorfield``."""

from vectorfield.cli import main

main()
