"""Pondage's benchmark runner: every workload, side by side with its rivals, on a private PostgreSQL."""
