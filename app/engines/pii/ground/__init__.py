"""What every part of the detector shares: labels, spans, the allow and deny lists, domains."""
