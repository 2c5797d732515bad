"""Where a pipeline's files are: one seam over local disk and object stores."""
