"""The modules behind the command `rivals`; cli.py is where to start."""
