"""The Delta log: stage files, commit them once, fence older drivers, read a batch back."""
