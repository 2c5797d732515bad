"""The Delta log: staging files, committing them once, fencing zombies, reading a batch back."""
