"""What a pipeline keeps.

Files and documents (``storage``), tables with a log (``tables``), and what a driver and its
supervision tell each other (``control``).
"""
