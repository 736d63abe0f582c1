"""What a commit writes: the difference between what a transaction staged and the snapshot that it began on."""
