"""OpenTelemetry."""
