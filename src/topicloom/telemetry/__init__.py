"""What is told of turns and reviews to OpenTelemetry and to Prometheus."""
