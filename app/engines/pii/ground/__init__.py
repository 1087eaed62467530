"""What every part of the detector knows: labels, spans, lists of callers, domains."""
