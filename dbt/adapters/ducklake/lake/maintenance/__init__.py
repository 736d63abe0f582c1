"""What maintenance computes from the catalog alone: which snapshots expire, and which files nobody needs any more.

Nothing here reads a data file or needs Spark. `expiry` takes snapshots out of the catalog and schedules the files that
only they need for deletion. `cleanup` deletes scheduled files, `orphans` those that the catalog never knew. Only these
two delete files, and both ask `data_folder` and `known_files` first.
"""
