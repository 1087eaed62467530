"""The middleware that checks answers, and its helpers."""
