"""Handles and the originals behind them: storing, restoring, erasing, keys."""
