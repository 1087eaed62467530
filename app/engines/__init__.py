"""Heavy skills behind the contracts of core: detectors, cipher."""
