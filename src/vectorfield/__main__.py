"""``python -m vectorfield`` is the program ``vectorfield``."""

from vectorfield.cli import main

if __name__ == "__main__":
    main()
