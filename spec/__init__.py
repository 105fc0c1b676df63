"""Parse and check what people write: model files and stack files. No Pulumi, no network."""
