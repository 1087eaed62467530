"""How the constants of the ranker were chosen: the split of the open sets, their figures, the calibration."""
