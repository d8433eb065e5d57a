"""Hostile tables for every method: a seeded search for anything but an answer or a sentence."""
