"""What maintenance does with the catalog and the driver's file system alone: plans of compaction, expiry, clean-up."""
