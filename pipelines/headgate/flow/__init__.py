"""The way of a batch: ``sources``, ``bronze``, ``silver``, ``gold``, ``publish``.

``operations`` have a place among the batches. ``gates`` decide whether a version becomes visible.
"""
