"""`sealog demo`, a module for each part of it; the command itself is in `command`."""
