"""The databases that can hold a catalog, one class each. No other module tests which database it is."""
