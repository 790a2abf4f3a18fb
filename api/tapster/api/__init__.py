"""HTTP, page, command line and configuration."""
