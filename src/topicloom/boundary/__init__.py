"""Where topics begin: a small trained model over similarities and cues."""
