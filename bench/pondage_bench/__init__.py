"""Pondage's benchmarks: every workload side by side with rivals, on a private PostgreSQL."""
