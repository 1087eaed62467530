"""What servers offer and how it is named, grouped, described and filtered."""
