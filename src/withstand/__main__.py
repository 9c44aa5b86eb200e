"""``python -m withstand`` is the ``withstand`` command."""

from withstand.cli import main

if __name__ == "__main__":
    main()
