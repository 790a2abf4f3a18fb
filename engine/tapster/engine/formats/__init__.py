"""Readers and writers of resource files; what they do not know they keep (spec/resources)."""
