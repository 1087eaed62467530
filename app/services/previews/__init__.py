"""What a change would do before it is made: nothing here is stored but the event that says so."""
