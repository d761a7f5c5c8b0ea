"""Plans and starts benchmark runs, and leaves one run directory per case."""
