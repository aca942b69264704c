"""The modules of the command `rivals`; start with cli.py."""
