"""Where a pipeline's files are: one interface to local disks and object stores."""
