"""The steps of a review: it looks and judges beside the session, and changes it by one turn."""
