"""The databases that can hold a catalog, one class each. No other module asks which one it is."""
